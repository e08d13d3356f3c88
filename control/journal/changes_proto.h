// SPDX-License-Identifier: Apache-2.0
// Converts changes and states to and from the bytes in a journal (control/proto/journal.proto).
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/journal/journal.h"
#include "control/state/state.h"

namespace penstock::control {

// The maximum size of a record. Protobuf cannot read messages of 2 GiB or more.
inline constexpr size_t kMostRecordBytes = size_t{1} << 30;

// Encodes one record: the changes that were applied in one step, in order. `state`: the state
// before or after these changes, used only to look up datasets. ResourceExhausted if the record
// would be larger than `most_bytes`.
absl::StatusOr<std::string> EncodeChanges(absl::Span<const Change> changes, const State& state,
                                          size_t most_bytes = kMostRecordBytes);

// Applies a record to `state`. FailedPrecondition if it has a field that this release does not
// know; DataLoss if the bytes are not a record, or if a change does not fit. After an error,
// `state` must not be used.
// `before` is called for each change before it is applied.
absl::Status ApplyRecord(
    std::string_view record, State& state,
    absl::FunctionRef<void(const Change&)> before = [](const Change&) {});

// Applies the changes in a damaged record that fit `state`. If a change of an iteration does not
// fit, the iteration is ended and added to `ended`. Further changes of the iterations in `ended`
// are ignored, in this record and in later ones. Returns a readable line for each iteration that is
// ended, and for each other change that is ignored. FailedPrecondition if the record has a field
// that this release does not know; DataLoss for an unreadable change whose iteration is unknown.
absl::StatusOr<std::vector<std::string>> ApplyWhatFits(std::string_view record, State& state,
                                                       std::set<IterationId>& ended);

// Returns one readable line, "iteration_altered { … }", for `penstock journal`.
std::string DescribeRecord(std::string_view record);

// Encodes all pieces of a state (state_pieces.h). ResourceExhausted, which names the object, if a
// piece would be larger than kMostSnapshotPieceBytes.
absl::StatusOr<SnapshotChanges> EncodeSnapshot(const State& state);
// The same, as DecodeState takes them.
absl::StatusOr<std::vector<std::string>> EncodeState(const State& state);
// Has the errors of ApplyRecord.
absl::StatusOr<State> DecodeState(absl::Span<const std::string> pieces);

}  // namespace penstock::control
