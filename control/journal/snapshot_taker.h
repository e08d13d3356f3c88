// SPDX-License-Identifier: Apache-2.0
// Takes snapshots of a state that goes on changing, a few pieces at a time, so that nobody waits
// long for a lock that guards the state.
//
// It knows which pieces have changed since the last snapshot (state_pieces.h). A snapshot has these
// pieces as they were when it began: before a further change to one of them, the piece is encoded
// first. No lock, no clock, no I/O.
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

// The same state must be passed to all methods.
class SnapshotTaker {
 public:
  struct Taken {
    uint64_t sequence;
    SnapshotChanges changes;
  };

  explicit SnapshotTaker(size_t most_piece_bytes = kMostSnapshotPieceBytes)
      : most_piece_bytes_(most_piece_bytes) {}

  // Called once, before the first change. The first snapshot is whole. If it is taken before
  // kPiecesFormat is finalised, the next one is whole too, and so on.
  void Begin(const State& state);
  // Must be called before each change of the state.
  void BeforeChange(const State& state, const Change& change);

  bool under_way() const { return under_way_; }
  // Begins a snapshot of the state as it is now, after record `sequence`.
  // REQUIRES: !under_way().
  void BeginSnapshot(const State& state, uint64_t sequence);
  // Encodes further pieces, until they have about `bytes`. Returns the snapshot once it has all its
  // pieces; it is then no longer under way. ResourceExhausted, which names the object, if a piece
  // is too large; the snapshot is given up, and the next one has its changes.
  // REQUIRES: under_way().
  absl::StatusOr<std::optional<Taken>> Continue(const State& state, size_t bytes);

 private:
  // Encodes one of the due pieces. Returns its bytes.
  size_t Encode(const State& state, std::set<PieceKey>::const_iterator piece);
  absl::Status GiveUp();

  size_t most_piece_bytes_;     // constant
  std::set<PieceKey> changed_;  // since the last snapshot began; all, if the next one is whole
  bool next_is_whole_ = true;   // the next snapshot names all pieces
  // Of the snapshot that is under way:
  bool under_way_ = false;
  std::set<PieceKey> due_;      // not encoded yet, and unchanged since the snapshot began
  std::set<PieceKey> encoded_;  // whose pieces are in taken_
  Taken taken_{};
  absl::Status refused_;
};

}  // namespace penstock::control
