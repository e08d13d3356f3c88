// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/distribute_options.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "control/protocol/positions.h"
#include "control/stub/target.h"
#include "penstock/sharding.h"
#include "penstock/status.h"

namespace penstock {
namespace client {
namespace {

// More than any job has trainers; bounds the cost of a wrong number.
constexpr int64_t kMostConsumers = 1 << 16;

// More than all workers have permits; bounds the cost of a wrong number.
constexpr int64_t kMostPartitions = 1 << 12;
// For order kDeterministic in mode DYNAMIC, if the options do not set a number.
constexpr int64_t kUsualPartitions = 8;

// Returns from how many partitions elements are merged; 0: as many as there are shards or permits.
int64_t PartitionsOf(const DistributeOptions& options) {
  if (options.order != MergeOrder::kDeterministic || options.partitions > 0) {
    return options.partitions;
  }
  return options.processing_mode == ShardingPolicy::kDynamic ? kUsualPartitions : 0;
}

// Rejects control characters: names are part of messages and logs.
absl::Status CheckName(std::string_view option, const std::string& name) {
  for (char c : name) {
    if (absl::ascii_iscntrl(c)) {
      return absl::InvalidArgumentError(
          absl::StrCat(std::string(option), " must not contain control characters"));
    }
  }
  if (name.size() <= 1024) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(option), " has ", name.size(), " bytes; at most 1024 are allowed"));
}

absl::Status CheckMode(ShardingPolicy mode) {
  if (mode <= ShardingPolicy::kHint) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("unknown processing_mode ", static_cast<int>(mode),
                   "; use OFF, DYNAMIC, FILE, DATA, FILE_OR_DATA or HINT"));
}

absl::Status CheckCompression(LinkCompression compression) {
  if (compression <= LinkCompression::kLz4) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown compression ", static_cast<int>(compression), "; use NONE, AUTO, SNAPPY or LZ4"));
}

// Checks the consumers of coordinated reads and of order kDeterministic.
absl::Status CheckConsumers(const DistributeOptions& options) {
  if (options.consumer_index.has_value() != options.num_consumers.has_value()) {
    return absl::InvalidArgumentError(
        "consumer_index and num_consumers go together: give both, or neither");
  }
  if (!options.num_consumers) return absl::OkStatus();
  if (options.job_name.empty()) {
    return absl::InvalidArgumentError(
        "num_consumers needs a job_name, under which the consumers find each other");
  }
  if (*options.num_consumers < 1 || *options.num_consumers > kMostConsumers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "num_consumers must be from 1 to ", kMostConsumers, ", not ", *options.num_consumers));
  }
  if (*options.consumer_index < 0 || *options.consumer_index >= *options.num_consumers) {
    return absl::InvalidArgumentError(absl::StrCat("consumer_index must be from 0 to ",
                                                   *options.num_consumers - 1, ", not ",
                                                   *options.consumer_index));
  }
  if (options.target_workers == TargetWorkers::kLocal) {
    return absl::InvalidArgumentError(
        "num_consumers needs workers that all consumers read; target_workers is LOCAL");
  }
  if (options.order == MergeOrder::kDeterministic &&
      (options.rests != Rests::kPad || options.on_error != RoundErrors::kSkipRound)) {
    return absl::InvalidArgumentError(
        "rests and on_error apply to the rounds of a coordinated read, which order kDeterministic "
        "does not have: leave out the order or these options");
  }
  if (options.cross_trainer_cache) {
    return absl::InvalidArgumentError(
        "coordinated reads give each element to one consumer, cross_trainer_cache to all");
  }
  return absl::OkStatus();
}

absl::Status CheckGroup(const DistributeOptions& options) {
  if (!options.consumer_group) return absl::OkStatus();
  const auto [size, member] = *options.consumer_group;
  if (!options.num_consumers) {
    return absl::InvalidArgumentError(
        "consumer_group requires a coordinated read; set num_consumers, the number of groups, and "
        "consumer_index");
  }
  if (size < 1 || size > kMostConsumers / *options.num_consumers) {
    return absl::InvalidArgumentError(absl::StrCat("consumer_group's size must be from 1 to ",
                                                   kMostConsumers / *options.num_consumers,
                                                   ", not ", size));
  }
  if (member < 0 || member >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat("consumer_group's member must be from 0 to ", size - 1, ", not ", member));
  }
  if (options.order == MergeOrder::kDeterministic) {
    return absl::InvalidArgumentError(
        "consumer_group requires rounds, which order kDeterministic does not have: leave out one");
  }
  return absl::OkStatus();
}

absl::Status CheckOrder(const DistributeOptions& options) {
  const bool deterministic = options.order == MergeOrder::kDeterministic;
  if (options.partitions < 0 || options.partitions > kMostPartitions ||
      (options.partitions > 0 && !deterministic)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "partitions must be from 1 to ", kMostPartitions,
        ", or 0 for AUTO, and requires order kDeterministic if not 0; got ", options.partitions));
  }
  if (!deterministic) return absl::OkStatus();
  if (options.processing_mode == ShardingPolicy::kOff) {
    return absl::InvalidArgumentError(
        "order kDeterministic needs processing_mode DYNAMIC, or a static one: in mode OFF each "
        "worker reads the whole dataset, so the number of elements depends on their number");
  }
  // The partitions from which a reader gets elements.
  const protocol::Positions positions{.partitions = PartitionsOf(options),
                                      .consumers = options.num_consumers.value_or(1)};
  const int64_t shares = positions.shares();
  if (options.max_outstanding_requests > 0 && options.max_outstanding_requests < shares) {
    return absl::InvalidArgumentError(
        absl::StrCat("order kDeterministic takes an element of each of ", shares,
                     " partitions in turn: max_outstanding_requests must be at least that, not ",
                     options.max_outstanding_requests));
  }
  if (options.quota.max_permits > 0) {
    return absl::InvalidArgumentError(
        "order kDeterministic has a fixed number of partitions, which quota.max_permits would "
        "change; set partitions instead");
  }
  return absl::OkStatus();
}

absl::Status CheckVisitation(const DistributeOptions& options) {
  if (options.visitation == Visitation::kExactlyOnce) return absl::OkStatus();
  const char* wrong =
      options.visitation > Visitation::kAtLeastOnce
          ? "visitation is neither kExactlyOnce nor kAtLeastOnce"
      : options.num_consumers
          ? "visitation kAtLeastOnce: a round of a coordinated read cannot be given out twice"
      : options.order == MergeOrder::kDeterministic
          ? "visitation kAtLeastOnce: an element that is sent again has no place in order "
            "kDeterministic"
      : options.cross_trainer_cache
          ? "visitation kAtLeastOnce: elements of a cross_trainer_cache never come again"
          : nullptr;
  return wrong == nullptr ? absl::OkStatus() : absl::InvalidArgumentError(wrong);
}

absl::Status CheckCache(const DistributeOptions& options) {
  if (!options.cross_trainer_cache.has_value()) return absl::OkStatus();
  const char* wrong =
      options.cross_trainer_cache->trainer_id.empty()
          ? "cross_trainer_cache needs a non-empty trainer_id"
      : options.job_name.empty()
          ? "cross_trainer_cache needs a job_name, under which trainers share"
      : options.consumer_index || options.num_consumers
          ? "cross_trainer_cache and coordinated reads exclude each other"
      : options.order == MergeOrder::kDeterministic
          ? "cross_trainer_cache skips elements that a slow trainer misses, which order "
            "kDeterministic does not allow"
      : options.keep == Keep::kCommitted
          ? "cross_trainer_cache keeps no history of a trainer, which keep = "
            "kCommitted requires"
          : nullptr;
  if (wrong != nullptr) return absl::InvalidArgumentError(wrong);
  return CheckName("trainer_id", options.cross_trainer_cache->trainer_id);
}

}  // namespace

absl::Status Check(const DistributeOptions& options) {
  RETURN_IF_ERROR(CheckMode(options.processing_mode));
  RETURN_IF_ERROR(CheckCompression(options.compression));
  RETURN_IF_ERROR(control::ParseTarget(options.service).status());
  RETURN_IF_ERROR(CheckName("job_name", options.job_name));
  RETURN_IF_ERROR(CheckName("run_id", options.run_id));
  RETURN_IF_ERROR(CheckName("name_space", options.name_space));
  if (options.name_space.find('/') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("name_space must not contain '/', got '", options.name_space, "'"));
  }
  if (options.quota.max_bytes_in_flight < 0 || options.quota.max_permits < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the quota's max_bytes_in_flight and max_permits must be above 0, or 0 for no "
                     "bound, not ",
                     options.quota.max_bytes_in_flight, " and ", options.quota.max_permits));
  }
  if (!options.run_id.empty() && options.job_name.empty()) {
    return absl::InvalidArgumentError(
        "run_id distinguishes the runs of one job_name; set a job_name too");
  }
  if (options.max_outstanding_requests < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_outstanding_requests must be above 0, or 0 for AUTO, not ",
                     options.max_outstanding_requests));
  }
  if (options.max_outstanding_bytes <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_outstanding_bytes must be above 0, not ", options.max_outstanding_bytes));
  }
  if (options.timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("timeout must be above 0, not ", absl::FormatDuration(options.timeout)));
  }
  if (options.task_refresh_interval_hint < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("task_refresh_interval_hint must not be negative, got ",
                     absl::FormatDuration(options.task_refresh_interval_hint)));
  }
  if (options.target_workers > TargetWorkers::kLocal) {
    return absl::InvalidArgumentError(
        absl::StrCat("Unrecognized target workers: ", static_cast<int>(options.target_workers)));
  }
  RETURN_IF_ERROR(CheckCache(options));
  RETURN_IF_ERROR(CheckConsumers(options));
  RETURN_IF_ERROR(CheckGroup(options));
  RETURN_IF_ERROR(CheckOrder(options));
  return CheckVisitation(options);
}

DistributeOptions OfMember(DistributeOptions options) {
  if (!options.consumer_group) return options;
  const auto [size, member] = *options.consumer_group;
  *options.num_consumers *= size;
  options.consumer_index = *options.consumer_index * size + member;
  return options;
}

control::JobTerms TermsOf(const DistributeOptions& options) {
  return {.mode = options.processing_mode,
          .keep = options.keep.value_or(Keep::kTaken),
          .deterministic = options.order == MergeOrder::kDeterministic,
          .partitions = PartitionsOf(options),
          .visitation = options.visitation,
          .num_consumers = options.num_consumers.value_or(0),
          .group_size = options.consumer_group.value_or(ConsumerGroup()).size,
          .rests = options.rests,
          .on_error = options.on_error,
          .cross_trainer_cache = options.cross_trainer_cache.has_value(),
          // All consumers read all workers.
          .target_workers = options.num_consumers ? TargetWorkers::kAny : options.target_workers,
          .quota = options.quota};
}

Attrs ToAttrs(const DistributeOptions& options) {
  Attrs attrs = {
      {"processing_mode", static_cast<int64_t>(options.processing_mode)},
      {"service", options.service},
      {"job_name", options.job_name},
      {"run_id", options.run_id},
      {"max_outstanding_requests", options.max_outstanding_requests},
      {"max_outstanding_bytes", options.max_outstanding_bytes},
      {"data_transfer_protocol", options.data_transfer_protocol},
      {"fallback", options.fallback},
      {"order", static_cast<int64_t>(options.order)},
      {"partitions", options.partitions},
      {"timeout_ns", absl::ToInt64Nanoseconds(options.timeout)},
      {"visitation", static_cast<int64_t>(options.visitation)},
      {"early_end", options.early_end},
      {"rests", static_cast<int64_t>(options.rests)},
      {"on_error", static_cast<int64_t>(options.on_error)},
      {"target_workers", static_cast<int64_t>(options.target_workers)},
      {"compression", static_cast<int64_t>(options.compression)},
      {"max_bytes_in_flight", options.quota.max_bytes_in_flight},
      {"max_permits", options.quota.max_permits},
      {"name_space", options.name_space},
      {"task_refresh_interval_hint_ns",
       absl::ToInt64Nanoseconds(options.task_refresh_interval_hint)},
  };
  if (options.consumer_index) attrs["consumer_index"] = *options.consumer_index;
  if (options.num_consumers) attrs["num_consumers"] = *options.num_consumers;
  if (options.consumer_group) {
    attrs["group_size"] = options.consumer_group->size;
    attrs["group_member"] = options.consumer_group->member;
  }
  if (options.cross_trainer_cache) attrs["trainer_id"] = options.cross_trainer_cache->trainer_id;
  if (options.keep.has_value()) attrs["keep"] = static_cast<int64_t>(*options.keep);
  if (options.seed.has_value()) attrs["job_seed"] = static_cast<int64_t>(*options.seed);
  return attrs;
}

DistributeOptions FromAttrs(const Attrs& attrs) {
  DistributeOptions options;
  options.processing_mode = static_cast<ShardingPolicy>(Get<int64_t>(attrs, "processing_mode"));
  options.service = Get<std::string>(attrs, "service");
  options.job_name = Get<std::string>(attrs, "job_name");
  options.run_id = Get<std::string>(attrs, "run_id");
  options.max_outstanding_requests = Get<int64_t>(attrs, "max_outstanding_requests");
  options.max_outstanding_bytes = Get<int64_t>(attrs, "max_outstanding_bytes");
  options.data_transfer_protocol = Get<std::string>(attrs, "data_transfer_protocol");
  options.fallback = Get<std::vector<std::string>>(attrs, "fallback");
  options.order = static_cast<MergeOrder>(Get<int64_t>(attrs, "order"));
  options.partitions = Get<int64_t>(attrs, "partitions");
  options.timeout = absl::Nanoseconds(Get<int64_t>(attrs, "timeout_ns"));
  options.visitation = static_cast<Visitation>(Get<int64_t>(attrs, "visitation"));
  options.early_end = Get<bool>(attrs, "early_end");
  options.rests = static_cast<Rests>(Get<int64_t>(attrs, "rests"));
  options.on_error = static_cast<RoundErrors>(Get<int64_t>(attrs, "on_error"));
  options.target_workers = static_cast<TargetWorkers>(Get<int64_t>(attrs, "target_workers"));
  options.compression = static_cast<LinkCompression>(Get<int64_t>(attrs, "compression"));
  options.quota = {Get<int64_t>(attrs, "max_bytes_in_flight"), Get<int64_t>(attrs, "max_permits")};
  options.name_space = Get<std::string>(attrs, "name_space");
  options.task_refresh_interval_hint =
      absl::Nanoseconds(Get<int64_t>(attrs, "task_refresh_interval_hint_ns"));
  if (attrs.contains("consumer_index")) {
    options.consumer_index = Get<int64_t>(attrs, "consumer_index");
  }
  if (attrs.contains("num_consumers")) {
    options.num_consumers = Get<int64_t>(attrs, "num_consumers");
  }
  if (attrs.contains("group_size")) {
    options.consumer_group = {Get<int64_t>(attrs, "group_size"),
                              Get<int64_t>(attrs, "group_member")};
  }
  if (attrs.contains("trainer_id")) {
    options.cross_trainer_cache = CrossTrainerCache{Get<std::string>(attrs, "trainer_id")};
  }
  if (attrs.contains("keep")) options.keep = static_cast<Keep>(Get<int64_t>(attrs, "keep"));
  if (attrs.contains("job_seed")) {
    options.seed = static_cast<uint64_t>(Get<int64_t>(attrs, "job_seed"));
  }
  return options;
}

std::vector<AttrRule> DistributeRules() {
  return {
      {"processing_mode", AttrType::kInt},
      {"service", AttrType::kString, true, false},
      {"job_name", AttrType::kString},
      {"run_id", AttrType::kString, true, false},
      {"max_outstanding_requests", AttrType::kInt, true, false},
      {"max_outstanding_bytes", AttrType::kInt, true, false},
      {"data_transfer_protocol", AttrType::kString, true, false},
      {"fallback", AttrType::kStrings, true, false},
      {"order", AttrType::kInt, true, false},
      {"partitions", AttrType::kInt, true, false},
      {"timeout_ns", AttrType::kInt, true, false},
      {"visitation", AttrType::kInt},
      {"early_end", AttrType::kBool, true, false},
      {"rests", AttrType::kInt, true, false},
      {"on_error", AttrType::kInt, true, false},
      {"target_workers", AttrType::kInt, true, false},
      {"compression", AttrType::kInt, true, false},
      {"max_bytes_in_flight", AttrType::kInt, true, false},
      {"max_permits", AttrType::kInt, true, false},
      {"name_space", AttrType::kString, true, false},
      {"task_refresh_interval_hint_ns", AttrType::kInt, true, false},
      {"consumer_index", AttrType::kInt, false, false},
      {"num_consumers", AttrType::kInt, false, false},
      {"group_size", AttrType::kInt, false, false},
      {"group_member", AttrType::kInt, false, false},
      {"trainer_id", AttrType::kString, false, false},
      {"keep", AttrType::kInt, false},
      {"job_seed", AttrType::kInt, false},
  };
}

}  // namespace client

absl::StatusOr<TargetWorkers> TargetWorkersFromName(std::string_view name) {
  const absl::string_view given(name.data(), name.size());
  if (given.empty() || absl::EqualsIgnoreCase(given, "AUTO")) return TargetWorkers::kAuto;
  if (absl::EqualsIgnoreCase(given, "ANY")) return TargetWorkers::kAny;
  if (absl::EqualsIgnoreCase(given, "LOCAL")) return TargetWorkers::kLocal;
  return absl::InvalidArgumentError(
      absl::StrCat("Unrecognized target workers: ", given, "; there are AUTO, ANY and LOCAL"));
}

absl::StatusOr<ShardingPolicy> ProcessingModeFromName(std::string_view name) {
  if (name == "parallel_epochs") return ShardingPolicy::kOff;
  if (name == "distributed_epoch") return ShardingPolicy::kDynamic;
  return absl::InvalidArgumentError(
      absl::StrCat("processing mode '", std::string(name),
                   "' is none of \"parallel_epochs\", \"distributed_epoch\""));
}

}  // namespace penstock
