// SPDX-License-Identifier: Apache-2.0
// The pieces of a state in a snapshot. A change of the state changes few of them, and a snapshot
// writes only these. Each piece is a wire::Snapshot. The Protobuf merge of all
// pieces, in the order of their keys, is the whole state.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "control/journal/journal.h"
#include "control/state/state.h"

namespace penstock::control {

// The partitions of an iteration in one piece. An iteration of any size can be written, because its
// partitions and its readers are in several pieces.
inline constexpr size_t kPartitionsPerPiece = 16;

struct PieceKey {
  enum class Kind : uint8_t {
    kCommon,      // lives, the format, next numbers, former workers
    kAnswers,     // the latest answers
    kDataset,     // `name`
    kJob,         // `id`, and the job's name if it still has it
    kIteration,   // `id`, without its partitions and readers
    kPartitions,  // of iteration `id`: those from number part * kPartitionsPerPiece + 1 on
    kReader,      // of iteration `id`: the reader at position `part`
    kPast,        // the past repetition `part` of job `id`
    kWorker,      // `id`
  };
  Kind kind = Kind::kCommon;
  uint64_t id = 0;
  int64_t part = 0;
  std::string name = {};
  friend auto operator<=>(const PieceKey&, const PieceKey&) = default;
};

// Returns the key in SnapshotChanges. The pieces of an iteration are in the order of its partitions
// and readers.
std::string ToBytes(const PieceKey& key);

using PieceVisitor = absl::FunctionRef<void(PieceKey)>;
// Visits all pieces of the state.
void ForEachPiece(const State& state, PieceVisitor visit);
// Visits the pieces that `change` changes, makes or removes. `before`: the state without the
// change. Some may be visited twice, and some that the change leaves as they are.
void ForEachPieceOf(const State& before, const Change& change, PieceVisitor visit);

// Returns nullopt if the state has no such piece. ResourceExhausted, which names the object, if the
// piece would be larger than `most_bytes`. `format`: of the journal when the snapshot began.
absl::StatusOr<std::optional<std::string>> EncodePiece(const State& state, const PieceKey& key,
                                                       uint32_t format,
                                                       size_t most_bytes = kMostSnapshotPieceBytes);

}  // namespace penstock::control
