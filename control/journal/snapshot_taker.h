// SPDX-License-Identifier: Apache-2.0
// Takes snapshots of a state that goes on changing, a few pieces at a time, so that nobody waits
// long for a lock that guards the state.
//
// It knows which pieces have changed since the last snapshot (state_pieces.h). A snapshot has these
// pieces as they were when it began: before a further change to one of them, the piece is encoded
// first. If changes would need too many pieces at once, such as the end of a large iteration, the
// snapshot begins again after them; it keeps what is encoded and still true. No lock, no clock, no
// I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/journal/journal.h"
#include "control/journal/state_pieces.h"
#include "control/state/state.h"

namespace penstock::control {

// The bytes that changes may encode between two calls of Continue(): about 16 milliseconds' work.
inline constexpr size_t kSnapshotBytesBeforeChanges = size_t{1} << 20;

// The same state must be passed to all methods.
class SnapshotTaker {
 public:
  struct Taken {
    uint64_t sequence;
    SnapshotChanges changes;
  };

  explicit SnapshotTaker(size_t most_piece_bytes = kMostSnapshotPieceBytes,
                         size_t bytes_before_changes = kSnapshotBytesBeforeChanges)
      : most_piece_bytes_(most_piece_bytes), bytes_before_changes_(bytes_before_changes) {}

  // Called once, before the first change. The first snapshot is whole. If it is taken before
  // kPiecesFormat is finalised, the next one is whole too, and so on.
  void Begin(const State& state);
  // Must be called before each change of the state.
  void BeforeChange(const State& state, const Change& change);

  bool under_way() const { return under_way_; }
  // Begins a snapshot of the state as it is now, after record `sequence`.
  // REQUIRES: !under_way().
  void BeginSnapshot(const State& state, uint64_t sequence);
  // Encodes further pieces, until they have about `bytes`. The state is the one after record
  // `sequence`, with which the snapshot begins again if it must. Returns the snapshot once it has
  // all its pieces; it is then no longer under way. ResourceExhausted, which names the object, if a
  // piece is too large; the snapshot is given up, and the next one has its changes.
  // REQUIRES: under_way().
  absl::StatusOr<std::optional<Taken>> Continue(const State& state, uint64_t sequence,
                                                size_t bytes);

 private:
  // Encodes one of the due pieces. Returns about its bytes.
  size_t Encode(const State& state, std::set<PieceKey>::const_iterator piece);
  void BeginAgain(const State& state, uint64_t sequence);
  absl::Status GiveUp();

  size_t most_piece_bytes_;      // constant
  size_t bytes_before_changes_;  // constant
  std::set<PieceKey> changed_;   // since the last snapshot began; all, if the next one is whole
  bool next_is_whole_ = true;    // the next snapshot names all pieces
  // Of the snapshot that is under way:
  bool under_way_ = false;
  std::set<PieceKey> due_;      // not encoded yet, and unchanged since the snapshot began
  std::set<PieceKey> encoded_;  // whose pieces are in taken_; those also in due_ are out of date
  Taken taken_{};
  uint32_t format_ = 0;        // of the journal when the snapshot began
  size_t before_changes_ = 0;  // bytes that changes have encoded since the last Continue()
  bool begins_again_ = false;  // the next Continue() begins again
  int begun_again_ = 0;        // how often it has begun again
  absl::Status refused_;
};

}  // namespace penstock::control
