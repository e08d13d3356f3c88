// SPDX-License-Identifier: Apache-2.0
// Changes and states as the bytes that a journal keeps (control/proto/journal.proto).
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/journal/journal.h"
#include "control/state/state.h"

namespace penstock::control {

// Protobuf reads messages of less than 2 GiB.
inline constexpr size_t kMostRecordBytes = size_t{1} << 30;

// One record: what was applied in one step, in order. `state` is the state they
// were applied to, before or after: it only says which datasets it has. ResourceExhausted for one
// of more bytes than that.
absl::StatusOr<std::string> EncodeChanges(absl::Span<const Change> changes, const State& state,
                                          size_t most_bytes = kMostRecordBytes);

// Applies a record to `state`. FailedPrecondition if it has a field that this release does not
// know; DataLoss if the bytes are no record, or a change does not fit. After an error `state` is
// not to be used.
absl::Status ApplyRecord(std::string_view record, State& state);

// The same of a record in which something cannot be. What fits is applied. An iteration with a
// change that does not is ended, and its further changes, in this record and in later ones, are
// passed over: `ended` has those. A line for people for each that is ended, and for each other
// change that is passed over. FailedPrecondition if it has a field that this release does not know,
// DataLoss for a change that cannot be read and where it cannot be told whose it is.
absl::StatusOr<std::vector<std::string>> ApplyWhatFits(std::string_view record, State& state,
                                                       std::set<IterationId>& ended);

// One line for people: "iteration_altered { … }"; for `penstock journal`.
std::string DescribeRecord(std::string_view record);

// A state in pieces, each a wire::Snapshot; Protobuf's merge of all is the whole. A piece is
// closed when it has 16 MiB; what cannot be cut (a dataset, a job, an iteration) may make one
// larger. ResourceExhausted where one would be larger than `most_piece_bytes`.
absl::StatusOr<std::vector<std::string>> EncodeState(
    const State& state, size_t most_piece_bytes = kMostSnapshotPieceBytes);
// Errors as ApplyRecord.
absl::StatusOr<State> DecodeState(absl::Span<const std::string> pieces);

}  // namespace penstock::control
