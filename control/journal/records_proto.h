// SPDX-License-Identifier: Apache-2.0
// Converts the records of a state to and from their wire form; shared by changes_proto.cc and
// state_proto.cc. Includes Protobuf.
#pragma once

#include <string_view>

#include "control/proto/convert.h"
#include "control/proto/journal.pb.h"
#include "control/state/state.h"

namespace penstock::control {

// Returns FailedPrecondition with the field if `bytes`, a message of type `type`, has a field that
// this release does not know, in itself or in a nested message. Reserved numbers belong to older
// releases and are ignored.
absl::Status CheckKnown(std::string_view bytes, const google::protobuf::Descriptor& type);

void WriteLife(const BegunLife& from, wire::BegunLife* to);
BegunLife ReadLife(const wire::BegunLife& from);

void WriteReceivedSets(const protocol::ReceivedSets& from, wire::ReceivedSetsByPartition* to);
absl::StatusOr<protocol::ReceivedSets> ReadReceivedSets(const wire::ReceivedSetsByPartition& from);

void WriteBookmark(const protocol::Bookmark& from, wire::SavedPosition* to);
protocol::Bookmark ReadBookmark(const wire::SavedPosition& from);

void WriteMarked(const MarkedBookmark& from, wire::MarkedBookmark* to);
MarkedBookmark ReadMarked(const wire::MarkedBookmark& from);

void WriteDataset(const DatasetRecord& from, wire::Dataset* to);
absl::StatusOr<DatasetRecord> ReadDataset(const wire::Dataset& from);

// `state` maps ids to datasets, so that each definition is written only once.
void WriteJob(const JobRecord& from, const State& state, wire::Job* to);
absl::StatusOr<JobRecord> ReadJob(const wire::Job& from, const State& state);

void WriteWorker(const WorkerRecord& from, wire::Worker* to);
WorkerRecord ReadWorker(const wire::Worker& from);

void WriteAnswer(const AnswerRecord& from, wire::Answered* to);
absl::StatusOr<AnswerRecord> ReadAnswer(const wire::Answered& from);

absl::StatusOr<protocol::ReaderStatus> ReadReaderStatus(uint32_t from);

void WriteRoundEvent(const protocol::RoundEvent& from, wire::IterationAltered::RoundEvent* to);
absl::StatusOr<protocol::RoundEvent> ReadRoundEvent(const wire::IterationAltered::RoundEvent& from);

}  // namespace penstock::control
