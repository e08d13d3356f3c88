// SPDX-License-Identifier: Apache-2.0
// Converts between the plain values of control/protocol/session_messages.h and their wire form: the
// pieces that both the RPC messages and the journal's records consist of. For *_proto.cc files
// only; no other file sees Protobuf.
//
// ToWire cannot fail. FromWire checks what comes from outside: InvalidArgument names the wrong
// field.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/proto/control.pb.h"
#include "control/protocol/index_set.h"
#include "control/protocol/session_messages.h"
#include "penstock/status.h"

namespace penstock::control {

void ToWire(const absl::Status& from, wire::Status* to);
absl::Status FromWire(const wire::Status& from);

// Indices and rows are below this number: nobody makes more elements (two years of a million a
// second), and their products with numbers of consumers and partitions still fit.
inline constexpr Index kMostIndices = Index{1} << 46;

void ToWire(const IndexSet& from, wire::IndexSet* to);
absl::StatusOr<IndexSet> FromWire(const wire::IndexSet& from);

void ToWire(const protocol::Positions& from, wire::Positions* to);
absl::StatusOr<protocol::Positions> FromWire(const wire::Positions& from);

void ToWire(const VersionRange& from, wire::VersionRange* to);
VersionRange FromWire(const wire::VersionRange& from);

void ToWire(const Life& from, wire::Life* to);
Life FromWire(const wire::Life& from);

void ToWire(const Heard& from, wire::Heard* to);
Heard FromWire(const wire::Heard& from);

void ToWire(const PlacedPartition& from, wire::PlacedPartition* to);
PlacedPartition FromWire(const wire::PlacedPartition& from);

void ToWire(const TransferOffer& from, wire::TransferOffer* to);
TransferOffer FromWire(const wire::TransferOffer& from);
void ToWire(const LinkCounts& from, wire::LinkCounts* to);
LinkCounts FromWire(const wire::LinkCounts& from);

void ToWire(const StepCounts& from, wire::StepCounts* to);
StepCounts FromWire(const wire::StepCounts& from);

void ToWire(const IterationWork& from, wire::IterationWork* to);
IterationWork FromWire(const wire::IterationWork& from);

void ToWire(const JobFeed& from, wire::JobFeed* to);
JobFeed FromWire(const wire::JobFeed& from);

void ToWire(const DatasetWork& from, wire::DatasetWork* to);
DatasetWork FromWire(const wire::DatasetWork& from);

void ToWire(const SplitRun& from, wire::SplitRun* to);
absl::StatusOr<SplitRun> FromWire(const wire::SplitRun& from);

void ToWire(const Reader& from, wire::Reader* to);
Reader FromWire(const wire::Reader& from);

void ToWire(const PartitionIndices& from, wire::PartitionIndices* to);
absl::StatusOr<PartitionIndices> FromWire(const wire::PartitionIndices& from);

void ToWire(const PartitionReport& from, wire::PartitionReport* to);
absl::StatusOr<PartitionReport> FromWire(const wire::PartitionReport& from);

void ToWire(const RequestId& from, wire::RequestId* to);
RequestId FromWire(const wire::RequestId& from);

void ToWire(const DatasetSummary& from, wire::DatasetSummary* to);
absl::StatusOr<DatasetSummary> FromWire(const wire::DatasetSummary& from);

void PassesToWire(const std::map<int32_t, int64_t>& from,
                  google::protobuf::RepeatedPtrField<wire::PassOver>* to);
absl::StatusOr<std::map<int32_t, int64_t>> PassesFromWire(
    const google::protobuf::RepeatedPtrField<wire::PassOver>& from);
void ToWire(const SplitMark& from, wire::SplitMark* to);
SplitMark FromWire(const wire::SplitMark& from);

void ToWire(const RegisterDatasetAnswer& from, wire::RegisterDatasetAnswer* to);
RegisterDatasetAnswer FromWire(const wire::RegisterDatasetAnswer& from);

void ToWire(const JobAnswer& from, wire::JobAnswer* to);
JobAnswer FromWire(const wire::JobAnswer& from);

absl::StatusOr<ShardingPolicy> ShardingPolicyFromWire(uint32_t from);
absl::StatusOr<Keep> KeepFromWire(uint32_t from);
void ToWire(const Division& from, wire::Division* to);
absl::StatusOr<Division> FromWire(const wire::Division& from);
void ToWire(const JobTerms& from, wire::JobTerms* to);
absl::StatusOr<JobTerms> FromWire(const wire::JobTerms& from);

// --- Lists of the above ------------------------------------------------------------

template <class Value, class Wire>
void ListToWire(const std::vector<Value>& from, google::protobuf::RepeatedPtrField<Wire>* to) {
  to->Reserve(static_cast<int>(from.size()));
  for (const Value& value : from) ToWire(value, to->Add());
}

template <class Wire>
auto ListFromWire(const google::protobuf::RepeatedPtrField<Wire>& from) {
  using One = decltype(FromWire(from.Get(0)));
  if constexpr (requires(One one) { one.status(); }) {
    using Value = typename One::value_type;
    std::vector<Value> values;
    values.reserve(from.size());
    for (const Wire& wire : from) {
      One one = FromWire(wire);
      if (!one.ok()) return absl::StatusOr<std::vector<Value>>(one.status());
      values.push_back(*std::move(one));
    }
    return absl::StatusOr<std::vector<Value>>(std::move(values));
  } else {
    std::vector<One> values;
    values.reserve(from.size());
    for (const Wire& wire : from) values.push_back(FromWire(wire));
    return values;
  }
}

}  // namespace penstock::control
