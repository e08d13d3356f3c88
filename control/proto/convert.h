// SPDX-License-Identifier: Apache-2.0
// Pairs each struct that occurs in both RPC messages and journal records with its Protobuf message,
// by a list of fields (fields.h). For *_proto.cc files only; no other file sees Protobuf.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "control/proto/control.pb.h"
#include "control/proto/fields.h"
#include "control/protocol/index_set.h"
#include "control/protocol/message_parts.h"
#include "control/protocol/requests.h"
#include "control/protocol/saved_reading.h"
#include "control/protocol/worker_messages.h"

namespace penstock::control {

template <>
inline constexpr AckMode kLast<AckMode> = AckMode::kOnCommit;
template <>
inline constexpr Visitation kLast<Visitation> = Visitation::kAtLeastOnce;
template <>
inline constexpr RemainderPolicy kLast<RemainderPolicy> = RemainderPolicy::kError;
template <>
inline constexpr RoundErrorPolicy kLast<RoundErrorPolicy> = RoundErrorPolicy::kStop;
template <>
inline constexpr TargetWorkers kLast<TargetWorkers> = TargetWorkers::kLocal;

// Structs that are not converted by a list of fields.
// `Message`: wire::Status, or a message that has its fields too.
template <class Message>
void Fields(Encoder&, const absl::Status& value, Message& message) {
  message.set_code(static_cast<int>(value.code()));
  message.set_message(std::string(value.message()));
}
template <class Message>
void Fields(Decoder&, absl::Status& value, const Message& message) {
  const bool known = message.code() >= 0 && message.code() <= 16;
  value = known
              ? absl::Status(static_cast<absl::StatusCode>(message.code()), message.message())
              : absl::UnknownError(absl::StrCat(message.message(), " (code ", message.code(), ")"));
}
void Fields(Encoder& coder, const IndexSet& value, wire::IndexSet& message);
void Fields(Decoder& coder, IndexSet& value, const wire::IndexSet& message);

void Fields(Encoder& coder, const PassesOver::value_type& value, wire::PassOver& message);
void Fields(Decoder& coder, PassesOver& value,
            const google::protobuf::RepeatedPtrField<wire::PassOver>& message);

void CheckTerms(Decoder& coder, const JobTerms& terms);

WIRE_PAIR(protocol::Positions, wire::Positions) {
  WIRE_FIELDS(partitions, consumers, first);
  constexpr int64_t kMost = 1 << 20;  // the maximum number of partitions or consumers
  coder.Require(value.partitions >= 1 && value.partitions <= kMost && value.consumers >= 1 &&
                    value.consumers <= kMost && value.first >= 0,
                "invalid positions: ", value.partitions, " partitions, ", value.consumers,
                " consumers, first ", value.first);
}
WIRE_STRUCT(VersionRange, wire::VersionRange, min, max);
WIRE_STRUCT(Life, wire::Life, journal, id, term);
WIRE_STRUCT(Heard, wire::Heard, life, sequence);
WIRE_STRUCT(PlacedPartition, wire::PlacedPartition, iteration, partition, placement, journal);
WIRE_STRUCT(TransferOffer, wire::TransferOffer, protocol, address, compatibility, preference);
WIRE_PAIR(SplitRun, wire::SplitRun) {
  WIRE_FIELDS(provider, repetition, first_ordinal, numbers, no_more);
  coder.Require(value.provider >= 0 && value.repetition >= 0 && value.first_ordinal >= 0,
                "a run of splits has a negative number");
}
WIRE_STRUCT(SplitMark, wire::SplitMark, provider, repetition, ordinal);
template <class Coder>
void CheckOperation(Coder& coder, const std::string& name) {
  coder.Require(name.size() <= kMostOperationBytes, "an operation's name has ", name.size(),
                " bytes; the limit is ", kMostOperationBytes);
}
WIRE_PAIR(PositionVersion, wire::PositionVersion) {
  WIRE_FIELDS(operation, version);
  CheckOperation(coder, value.operation);
}
WIRE_PAIR(PositionVersions, wire::PositionVersions) {
  WIRE_FIELDS(operation, lowest, highest);
  CheckOperation(coder, value.operation);
}
WIRE_PAIR(Reader, wire::Reader) {
  WIRE_FIELDS(client, incarnation);
  WIRE_FIELD_IF(value.consumer >= 0, consumer);
}
WIRE_STRUCT(RequestId, wire::RequestId, incarnation, counter);
WIRE_STRUCT(NodeFingerprint, wire::NodeFingerprint, name, fingerprint);
WIRE_STRUCT(SplitProvider, wire::SplitProvider, node, count, shuffled, seed, files, by_file);
WIRE_PAIR(DatasetSummary, wire::DatasetSummary) {
  WIRE_FIELDS(fingerprint, spec_fingerprint, spec_text, cardinality, ends, nodes, plan);
  coder.Require(value.cardinality >= kUnknown, "a dataset's summary has the invalid cardinality ",
                value.cardinality);
}
WIRE_STRUCT(RegisterDatasetAnswer, wire::RegisterDatasetAnswer, dataset_id, existed);
WIRE_STRUCT(JobAnswer, wire::JobAnswer, job, name, token, dataset_id, seed, existed);
WIRE_STRUCT(Division, wire::Division, mode, count, shards);
WIRE_PAIR(JobTerms, wire::JobTerms) {
  WIRE_FIELDS(mode, ack_mode, deterministic, visitation, num_consumers, remainder_policy, on_error,
              cross_trainer_cache, target_workers, partitions);
  WIRE_FIELD_AS(quota.max_bytes_in_flight, max_bytes_in_flight);
  WIRE_FIELD_AS(quota.max_permits, max_permits);
  WIRE_FIELD_AS(share.priority, priority);
  if constexpr (Coder::kEncodes) {
    if (value.group_size > 1) message.set_group_size(value.group_size);
    if (value.share.weight > 1) message.set_weight(value.share.weight);
  } else {
    if (message.group_size() != 0) value.group_size = message.group_size();
    if (message.weight() != 0) value.share.weight = message.weight();
    CheckTerms(coder, value);
  }
}
WIRE_STRUCT(GetOrCreateJobRequest, wire::GetOrCreateJobRequest, request, name, run_id, dataset_id,
            dataset_fingerprint, terms, seed, name_space);
WIRE_STRUCT(protocol::PartitionRow, wire::PartitionRow, partition, row);
WIRE_STRUCT(PartitionIndices, wire::PartitionIndices, partition, indices);

}  // namespace penstock::control
