// SPDX-License-Identifier: Apache-2.0
#include "control/proto/convert.h"

#include <limits>

namespace penstock::control {
namespace {

template <class Choice>
absl::Status ChoiceFromWire(const char* name, uint32_t from, Choice last, Choice& to) {
  if (from > static_cast<uint32_t>(last)) {
    return absl::InvalidArgumentError(absl::StrCat("unknown value ", from, " of ", name));
  }
  to = static_cast<Choice>(from);
  return absl::OkStatus();
}

}  // namespace

void ToWire(const absl::Status& from, wire::Status* to) {
  to->set_code(static_cast<int>(from.code()));
  to->set_message(std::string(from.message()));
}

absl::Status FromWire(const wire::Status& from) {
  if (from.code() == 0) return absl::OkStatus();
  if (from.code() < 0 || from.code() > 16) {
    return absl::UnknownError(absl::StrCat(from.message(), " (code ", from.code(), ")"));
  }
  return absl::Status(static_cast<absl::StatusCode>(from.code()), from.message());
}

void ToWire(const IndexSet& from, wire::IndexSet* to) {
  Index end = 0;
  for (const IndexSet::Interval& interval : from.intervals()) {
    to->add_gaps_and_lengths(static_cast<uint64_t>(interval.begin - end));
    to->add_gaps_and_lengths(static_cast<uint64_t>(interval.end - interval.begin));
    end = interval.end;
  }
}

absl::StatusOr<IndexSet> FromWire(const wire::IndexSet& from) {
  if (from.gaps_and_lengths_size() % 2 != 0) {
    return absl::InvalidArgumentError("a set of indices ends between a gap and its length");
  }
  IndexSet set;
  uint64_t end = 0;
  constexpr auto kMost = static_cast<uint64_t>(kMostIndices);
  for (int i = 0; i < from.gaps_and_lengths_size(); i += 2) {
    const uint64_t gap = from.gaps_and_lengths(i);
    const uint64_t length = from.gaps_and_lengths(i + 1);
    if (gap > kMost - end || length == 0 || length > kMost - end - gap) {
      return absl::InvalidArgumentError(
          absl::StrCat("a set of indices has a wrong interval number ", i / 2));
    }
    const uint64_t begin = end + gap;
    end = begin + length;
    set.Add(static_cast<Index>(begin), static_cast<Index>(end));
  }
  return set;
}

void ToWire(const protocol::Positions& from, wire::Positions* to) {
  to->set_partitions(from.partitions);
  to->set_consumers(from.consumers);
  to->set_first(from.first);
}

absl::StatusOr<protocol::Positions> FromWire(const wire::Positions& from) {
  constexpr int64_t kMost = 1 << 20;  // of partitions, or of consumers
  if (from.partitions() < 1 || from.partitions() > kMost || from.consumers() < 1 ||
      from.consumers() > kMost || from.first() < 0) {
    return absl::InvalidArgumentError(absl::StrCat("positions of ", from.partitions(),
                                                   " partitions and ", from.consumers(),
                                                   " consumers, from ", from.first(), " on"));
  }
  return protocol::Positions{from.partitions(), from.consumers(), from.first()};
}

void ToWire(const VersionRange& from, wire::VersionRange* to) {
  to->set_min(from.min);
  to->set_max(from.max);
}

VersionRange FromWire(const wire::VersionRange& from) {
  return {.min = from.min(), .max = from.max()};
}

void ToWire(const Life& from, wire::Life* to) {
  to->set_journal(from.journal);
  to->set_id(from.id);
  to->set_term(from.term.value());
}

Life FromWire(const wire::Life& from) {
  return {from.journal(), from.id(), Term(from.term())};
}

void ToWire(const Heard& from, wire::Heard* to) {
  ToWire(from.life, to->mutable_life());
  to->set_sequence(from.sequence);
}

Heard FromWire(const wire::Heard& from) {
  return {FromWire(from.life()), from.sequence()};
}

void ToWire(const PlacedPartition& from, wire::PlacedPartition* to) {
  to->set_journal(from.journal);
  to->set_iteration(from.iteration.value());
  to->set_partition(from.partition.value());
  to->set_placement(from.placement.value());
}

PlacedPartition FromWire(const wire::PlacedPartition& from) {
  return {IterationId(from.iteration()), PartitionId(from.partition()), Placement(from.placement()),
          from.journal()};
}

void ToWire(const TransferOffer& from, wire::TransferOffer* to) {
  to->set_protocol(from.protocol);
  to->set_address(from.address);
  to->set_compatibility(from.compatibility);
  to->set_preference(from.preference);
}

TransferOffer FromWire(const wire::TransferOffer& from) {
  return {from.protocol(), from.address(), from.compatibility(), from.preference()};
}

void ToWire(const LinkCounts& from, wire::LinkCounts* to) {
  to->set_worker(from.worker.value());
  to->set_protocol(from.protocol);
  to->set_reason(from.reason);
  to->set_open(from.open);
  to->set_elements(from.elements);
  to->set_bytes(from.bytes);
  to->set_credits(from.credits);
  to->set_waits(from.waits);
  to->set_waited_until_received_ns(absl::ToInt64Nanoseconds(from.waited_until_received));
  to->set_waited_after_received_ns(absl::ToInt64Nanoseconds(from.waited_after_received));
  to->set_down(from.down);
  if (from.filled == FilledElements()) return;
  to->mutable_filled()->set_in_place(from.filled.in_place);
  to->mutable_filled()->set_no_slot(from.filled.no_slot);
  to->mutable_filled()->set_for_another(from.filled.for_another);
  to->mutable_filled()->set_elsewhere(from.filled.elsewhere);
}

LinkCounts FromWire(const wire::LinkCounts& from) {
  return {.worker = WorkerId(from.worker()),
          .protocol = from.protocol(),
          .reason = from.reason(),
          .open = from.open(),
          .elements = from.elements(),
          .bytes = from.bytes(),
          .credits = from.credits(),
          .waits = from.waits(),
          .waited_until_received = absl::Nanoseconds(from.waited_until_received_ns()),
          .waited_after_received = absl::Nanoseconds(from.waited_after_received_ns()),
          .down = from.down(),
          .filled = {from.filled().in_place(), from.filled().no_slot(), from.filled().for_another(),
                     from.filled().elsewhere()}};
}

void ToWire(const StepCounts& from, wire::StepCounts* to) {
  to->set_elements(from.elements);
  to->set_own_ns(absl::ToInt64Nanoseconds(from.own));
  to->set_waited_ns(absl::ToInt64Nanoseconds(from.waited));
}

StepCounts FromWire(const wire::StepCounts& from) {
  return {.elements = from.elements(),
          .own = absl::Nanoseconds(from.own_ns()),
          .waited = absl::Nanoseconds(from.waited_ns())};
}

void ToWire(const IterationWork& from, wire::IterationWork* to) {
  to->set_iteration(from.iteration.value());
  to->set_elements(from.elements);
  to->set_busy_ns(absl::ToInt64Nanoseconds(from.busy));
  to->set_partitions(from.partitions);
}

IterationWork FromWire(const wire::IterationWork& from) {
  return {.iteration = IterationId(from.iteration()),
          .elements = from.elements(),
          .busy = absl::Nanoseconds(from.busy_ns()),
          .partitions = from.partitions()};
}

void ToWire(const JobFeed& from, wire::JobFeed* to) {
  to->set_wanted_per_s(from.wanted_per_s);
  to->set_worker_per_s(from.worker_per_s);
  to->set_busy(from.busy);
  to->set_workers(from.workers);
}

JobFeed FromWire(const wire::JobFeed& from) {
  return {.wanted_per_s = from.wanted_per_s(),
          .worker_per_s = from.worker_per_s(),
          .busy = from.busy(),
          .workers = from.workers()};
}

void ToWire(const DatasetWork& from, wire::DatasetWork* to) {
  to->set_dataset_id(from.dataset_id);
  for (const NodeStats& node : from.stats.nodes) {
    wire::NodeWork* wire = to->add_nodes();
    wire->set_node(node.node);
    wire->set_elements(node.elements);
    wire->set_bytes(node.bytes);
    wire->set_busy_ns(absl::ToInt64Nanoseconds(node.busy));
    wire->set_waiting_ns(absl::ToInt64Nanoseconds(node.waiting));
    wire->set_parallelism(node.parallelism);
    wire->set_ahead(node.ahead);
  }
}

DatasetWork FromWire(const wire::DatasetWork& from) {
  DatasetWork to{.dataset_id = from.dataset_id()};
  for (const wire::NodeWork& wire : from.nodes()) {
    to.stats.nodes.push_back({.node = wire.node(),
                              .elements = wire.elements(),
                              .bytes = wire.bytes(),
                              .busy = absl::Nanoseconds(wire.busy_ns()),
                              .waiting = absl::Nanoseconds(wire.waiting_ns()),
                              .parallelism = wire.parallelism(),
                              .ahead = wire.ahead()});
  }
  return to;
}

void ToWire(const SplitRun& from, wire::SplitRun* to) {
  to->set_provider(from.provider);
  to->set_repetition(from.repetition);
  to->set_first_ordinal(from.first_ordinal);
  to->mutable_numbers()->Add(from.numbers.begin(), from.numbers.end());
  to->set_no_more(from.no_more);
}

absl::StatusOr<SplitRun> FromWire(const wire::SplitRun& from) {
  if (from.provider() < 0 || from.repetition() < 0 || from.first_ordinal() < 0) {
    return absl::InvalidArgumentError("a run of splits with a negative number");
  }
  return SplitRun{.provider = from.provider(),
                  .repetition = from.repetition(),
                  .first_ordinal = from.first_ordinal(),
                  .numbers = {from.numbers().begin(), from.numbers().end()},
                  .no_more = from.no_more()};
}

void ToWire(const Reader& from, wire::Reader* to) {
  if (from.consumer >= 0) to->set_consumer(from.consumer);
  to->set_client(from.client.value());
  to->set_incarnation(from.incarnation.value());
}

Reader FromWire(const wire::Reader& from) {
  return {ClientId(from.client()), Incarnation(from.incarnation()),
          from.has_consumer() ? from.consumer() : -1};
}

void ToWire(const PartitionIndices& from, wire::PartitionIndices* to) {
  to->set_partition(from.partition.value());
  ToWire(from.indices, to->mutable_indices());
}

absl::StatusOr<PartitionIndices> FromWire(const wire::PartitionIndices& from) {
  ASSIGN_OR_RETURN(IndexSet indices, FromWire(from.indices()));
  return PartitionIndices{PartitionId(from.partition()), std::move(indices)};
}

void ToWire(const PartitionReport& from, wire::PartitionReport* to) {
  to->set_partition(from.partition.value());
  to->set_placement(from.placement.value());
  ToWire(from.delivered, to->mutable_delivered());
  ToWire(from.received, to->mutable_received());
  ToWire(from.returned, to->mutable_returned());
  ToWire(from.handed, to->mutable_handed());
  to->set_whole(from.whole);
}

absl::StatusOr<PartitionReport> FromWire(const wire::PartitionReport& from) {
  ASSIGN_OR_RETURN(IndexSet delivered, FromWire(from.delivered()));
  ASSIGN_OR_RETURN(IndexSet received, FromWire(from.received()));
  ASSIGN_OR_RETURN(IndexSet returned, FromWire(from.returned()));
  ASSIGN_OR_RETURN(IndexSet handed, FromWire(from.handed()));
  return PartitionReport{.partition = PartitionId(from.partition()),
                         .placement = Placement(from.placement()),
                         .delivered = std::move(delivered),
                         .received = std::move(received),
                         .handed = std::move(handed),
                         .returned = std::move(returned),
                         .whole = from.whole()};
}

void ToWire(const RequestId& from, wire::RequestId* to) {
  to->set_incarnation(from.incarnation.value());
  to->set_counter(from.counter);
}

RequestId FromWire(const wire::RequestId& from) {
  return {Incarnation(from.incarnation()), from.counter()};
}

static void ToWire(const NodeFingerprint& from, wire::NodeFingerprint* to) {
  to->set_name(from.name);
  to->set_fingerprint(from.fingerprint);
}

static void ToWire(const SplitProvider& from, wire::SplitProvider* to) {
  to->set_node(from.node);
  to->set_count(from.count);
  to->set_shuffled(from.shuffled);
  if (from.seed.has_value()) to->set_seed(*from.seed);
  for (const std::string& file : from.files) to->add_files(file);
  to->set_by_file(from.by_file);
}

void ToWire(const DatasetSummary& from, wire::DatasetSummary* to) {
  to->set_fingerprint(from.fingerprint);
  to->set_spec_fingerprint(from.spec_fingerprint);
  to->set_spec_text(from.spec_text);
  to->set_cardinality(from.cardinality);
  to->set_ends(from.ends);
  for (const NodeFingerprint& node : from.nodes) ToWire(node, to->add_nodes());
  for (const SplitProvider& provider : from.plan) ToWire(provider, to->add_plan());
}

absl::StatusOr<DatasetSummary> FromWire(const wire::DatasetSummary& from) {
  DatasetSummary summary{.fingerprint = from.fingerprint(),
                         .spec_fingerprint = from.spec_fingerprint(),
                         .spec_text = from.spec_text(),
                         .cardinality = from.cardinality(),
                         .ends = from.ends()};
  if (summary.cardinality < kUnknown) {
    return absl::InvalidArgumentError(
        absl::StrCat("a dataset's summary with cardinality ", summary.cardinality));
  }
  for (const wire::NodeFingerprint& node : from.nodes()) {
    summary.nodes.push_back({node.name(), node.fingerprint()});
  }
  for (const wire::SplitProvider& provider : from.plan()) {
    SplitProvider& to = summary.plan.emplace_back();
    to.node = provider.node();
    to.count = provider.count();
    to.shuffled = provider.shuffled();
    if (provider.has_seed()) to.seed = provider.seed();
    to.files.assign(provider.files().begin(), provider.files().end());
    to.by_file = provider.by_file();
  }
  return summary;
}

void PassesToWire(const std::map<int32_t, int64_t>& from,
                  google::protobuf::RepeatedPtrField<wire::PassOver>* to) {
  for (const auto& [provider, below] : from) {
    wire::PassOver* wire = to->Add();
    wire->set_provider(provider);
    wire->set_below(below);
  }
}

absl::StatusOr<std::map<int32_t, int64_t>> PassesFromWire(
    const google::protobuf::RepeatedPtrField<wire::PassOver>& from) {
  std::map<int32_t, int64_t> to;
  for (const wire::PassOver& wire : from) {
    if (wire.provider() < 0 || wire.below() < 0 ||
        wire.below() > std::numeric_limits<int64_t>::max() / 2)
      return absl::InvalidArgumentError("passes that are over lie outside of what there can be");
    to[wire.provider()] = wire.below();
  }
  return to;
}

void ToWire(const SplitMark& from, wire::SplitMark* to) {
  to->set_provider(from.provider);
  to->set_repetition(from.repetition);
  to->set_ordinal(from.ordinal);
}

SplitMark FromWire(const wire::SplitMark& from) {
  return {from.provider(), from.repetition(), from.ordinal()};
}

void ToWire(const RegisterDatasetAnswer& from, wire::RegisterDatasetAnswer* to) {
  to->set_dataset_id(from.dataset_id);
  to->set_existed(from.existed);
}

RegisterDatasetAnswer FromWire(const wire::RegisterDatasetAnswer& from) {
  return {from.dataset_id(), from.existed()};
}

void ToWire(const JobAnswer& from, wire::JobAnswer* to) {
  to->set_job(from.job.value());
  to->set_name(from.name);
  to->set_token(from.token);
  to->set_dataset_id(from.dataset_id);
  to->set_seed(from.seed);
  to->set_existed(from.existed);
}

JobAnswer FromWire(const wire::JobAnswer& from) {
  return {JobId(from.job()), from.name(), from.token(),
          from.dataset_id(), from.seed(), from.existed()};
}

absl::StatusOr<Keep> KeepFromWire(uint32_t from) {
  Keep keep;
  RETURN_IF_ERROR(ChoiceFromWire("keep", from, Keep::kCommitted, keep));
  return keep;
}

absl::StatusOr<ShardingPolicy> ShardingPolicyFromWire(uint32_t from) {
  if (from > static_cast<uint32_t>(ShardingPolicy::kHint)) {
    return absl::InternalError(
        absl::StrCat("processing mode ", from, " does not specify a valid sharding policy"));
  }
  return static_cast<ShardingPolicy>(from);
}

void ToWire(const Division& from, wire::Division* to) {
  to->set_mode(static_cast<uint32_t>(from.mode));
  to->set_count(from.count);
  for (int64_t shard : from.shards) to->add_shards(shard);
}

absl::StatusOr<Division> FromWire(const wire::Division& from) {
  Division to{.count = from.count(), .shards = {from.shards().begin(), from.shards().end()}};
  ASSIGN_OR_RETURN(to.mode, ShardingPolicyFromWire(from.mode()));
  return to;
}

void ToWire(const JobTerms& from, wire::JobTerms* to) {
  to->set_mode(static_cast<uint32_t>(from.mode));
  to->set_keep(static_cast<uint32_t>(from.keep));
  to->set_deterministic(from.deterministic);
  to->set_visitation(static_cast<uint32_t>(from.visitation));
  to->set_num_consumers(from.num_consumers);
  to->set_rests(static_cast<uint32_t>(from.rests));
  to->set_on_error(static_cast<uint32_t>(from.on_error));
  to->set_cross_trainer_cache(from.cross_trainer_cache);
  to->set_target_workers(static_cast<uint32_t>(from.target_workers));
  to->set_max_bytes_in_flight(from.quota.max_bytes_in_flight);
  to->set_max_permits(from.quota.max_permits);
  to->set_partitions(from.partitions);
  if (from.group_size > 1) to->set_group_size(from.group_size);
}

absl::StatusOr<JobTerms> FromWire(const wire::JobTerms& from) {
  JobTerms to{.deterministic = from.deterministic(),
              .partitions = from.partitions(),
              .num_consumers = from.num_consumers(),
              .group_size = from.group_size() == 0 ? 1 : from.group_size(),
              .cross_trainer_cache = from.cross_trainer_cache(),
              .quota = {from.max_bytes_in_flight(), from.max_permits()}};
  ASSIGN_OR_RETURN(to.mode, ShardingPolicyFromWire(from.mode()));
  ASSIGN_OR_RETURN(to.keep, KeepFromWire(from.keep()));
  RETURN_IF_ERROR(
      ChoiceFromWire("visitation", from.visitation(), Visitation::kAtLeastOnce, to.visitation));
  RETURN_IF_ERROR(ChoiceFromWire("rests", from.rests(), Rests::kError, to.rests));
  RETURN_IF_ERROR(ChoiceFromWire("on_error", from.on_error(), RoundErrors::kStop, to.on_error));
  RETURN_IF_ERROR(ChoiceFromWire("target_workers", from.target_workers(), TargetWorkers::kLocal,
                                 to.target_workers));
  constexpr int64_t kMostConsumers = 1 << 16;  // bounds the cost of a wrong number
  if (to.num_consumers > kMostConsumers) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_consumers is ", to.num_consumers, "; ", kMostConsumers, " are the most"));
  }
  if (to.num_consumers < 0 || to.quota.max_bytes_in_flight < 0 || to.quota.max_permits < 0 ||
      to.partitions < 0) {
    return absl::InvalidArgumentError("a number in the terms of a job is negative");
  }
  if (to.group_size < 1 || to.num_consumers % to.group_size != 0 ||
      (to.group_size > 1 && !to.coordinated())) {
    return absl::InvalidArgumentError(
        absl::StrCat(to.num_consumers, " consumers are no groups of ", to.group_size));
  }
  return to;
}

}  // namespace penstock::control
