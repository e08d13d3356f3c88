// SPDX-License-Identifier: Apache-2.0
// Pairs each record of a state with its Protobuf message, by a list of fields
// (control/proto/fields.h). Shared by changes_proto.cc and state_proto.cc. Includes Protobuf.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "control/proto/convert.h"
#include "control/proto/journal.pb.h"
#include "control/state/state.h"

namespace penstock::control {

// Returns FailedPrecondition, with the field's number, if the message `bytes` of type `type`, or a
// message nested in it, has a field that this release does not know. Reserved numbers belong to
// older releases and are ignored.
absl::Status CheckKnown(std::string_view bytes, const google::protobuf::Descriptor& type);
// Converts sets to the bytes of a wire::ReceivedSetsByPartition in a journal of this format, and
// back. ReadFrom: InvalidArgument if the bytes are not such a message; FailedPrecondition if they
// have a field that this release does not know.
std::string BytesOf(const protocol::ReceivedSets& sets, uint32_t format);
absl::Status ReadFrom(const std::string& bytes, protocol::ReceivedSets& sets);
// FailedPrecondition if this release does not know the journal's format (control/state/format.h).
absl::Status CheckFormat(uint32_t format);

template <>
inline constexpr protocol::ReaderStatus kLast<protocol::ReaderStatus> =
    protocol::ReaderStatus::kExpired;
template <>
inline constexpr protocol::RoundEvent::Kind kLast<protocol::RoundEvent::Kind> =
    protocol::RoundEvent::Kind::kLeaves;

WIRE_PAIR(BegunLife, wire::BegunLife) {
  WIRE_FIELDS(life, begins, key_id);
  WIRE_NANOSECONDS(lease);
}
WIRE_PAIR(protocol::ReceivedSets, std::string) {
  if constexpr (Coder::kEncodes) {
    message = BytesOf(value, coder.format());
  } else if (absl::Status status = ReadFrom(message, value); !status.ok()) {
    coder.Fail(std::move(status));
  }
}
WIRE_STRUCT(protocol::Bookmark, wire::SavedPosition, index, bytes);
WIRE_STRUCT(MarkedBookmark, wire::MarkedBookmark, index, marks, versions);
WIRE_STRUCT(protocol::RoundEvent, wire::IterationAltered::RoundEvent, round, kind, partition);
WIRE_PAIR(DatasetRecord, wire::Dataset) {
  WIRE_FIELDS(id, definition, summary, edition, owner);
  if constexpr (!Coder::kEncodes) {
    if (value.edition == 0) value.edition = value.summary.fingerprint;
  }
}
WIRE_PAIR(std::shared_ptr<const DatasetRecord>, wire::Dataset) {
  if constexpr (Coder::kEncodes) {
    Fields(coder, *value, message);
  } else {
    auto dataset = std::make_shared<DatasetRecord>();
    Fields(coder, *dataset, message);
    value = std::move(dataset);
  }
}
WIRE_PAIR(WorkerRecord, wire::Worker) {
  WIRE_FIELDS(id, address, offers, tags, permits, draining, process, owner);
  WIRE_FIELD_IF(value.place >= 0, place);
}
WIRE_STRUCT(FormerWorker, wire::FormerWorker, id, owner);
WIRE_STRUCT(AnsweredJob, wire::JobAnswer, job, existed);
WIRE_PAIR(Answer, wire::Answered) {
  WIRE_CASE(RegisterDatasetAnswer, dataset);
  WIRE_CASE(AnsweredJob, job);
  coder.Require(message.answer_case() != 0, "unknown kind of answer");
}
WIRE_PAIR(AnswerRecord, wire::Answered) {
  WIRE_FIELDS(request);
  Fields(coder, value.answer, message);
}

// All fields except the dataset. WriteJob and ReadJob look up the dataset by its id in `state`, so
// that each definition is written only once.
WIRE_STRUCT(JobRecord, wire::Job, id, name, run_id, anonymous, terms, seed, nonce, token, cancelled,
            owner);
void WriteJob(const JobRecord& from, const State& state, wire::Job* to);
absl::StatusOr<JobRecord> ReadJob(const wire::Job& from, const State& state);

}  // namespace penstock::control
