// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/distribute_options.h"

#include <algorithm>
#include <string>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "control/protocol/positions.h"
#include "control/protocol/scoped_name.h"
#include "control/stub/target.h"
#include "dataplane/client/session_state/delivery_fields.h"
#include "include/status_macros.h"
#include "penstock/sharding.h"

namespace penstock {
namespace client {
namespace {

// Above the number of trainers of any job; bounds the cost of a wrong number.
constexpr int64_t kMostConsumers = 1 << 16;

// Above the number of permits of all workers together; bounds the cost of a wrong number.
constexpr int64_t kMostPartitions = 1 << 12;
// The number of partitions for order kDeterministic in mode DYNAMIC, if the options give none.
constexpr int64_t kUsualPartitions = 8;

// Returns the number of partitions that an order is merged from; 0: the number of shards, or of
// permits.
int64_t PartitionsOf(const DistributeOptions& options) {
  const auto* order = std::get_if<DeterministicOrder>(&options.delivery);
  if (order == nullptr || order->partitions > 0) return order == nullptr ? 0 : order->partitions;
  return options.processing_mode == ShardingPolicy::kDynamic ? kUsualPartitions : 0;
}

// Rejects control characters, because names go into messages and logs.
absl::Status CheckName(std::string_view option, const std::string& name) {
  for (char c : name) {
    if (absl::ascii_iscntrl(c)) {
      return absl::InvalidArgumentError(
          absl::StrCat(std::string(option), " must not contain control characters"));
    }
  }
  if (name.size() <= control::kMaxNameBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(std::string(option), " has ", name.size(),
                                                 " bytes; at most ", control::kMaxNameBytes,
                                                 " are allowed"));
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

// Checks the options of one of several consumers of a job.
absl::Status CheckConsumer(const DistributeOptions& options, int64_t index, int64_t count) {
  if (options.job_name.empty()) {
    return absl::InvalidArgumentError(
        "num_consumers needs a job_name, under which the consumers find each other");
  }
  if (count < 1 || count > kMostConsumers) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_consumers must be from 1 to ", kMostConsumers, ", not ", count));
  }
  if (index < 0 || index >= count) {
    return absl::InvalidArgumentError(
        absl::StrCat("consumer_index must be from 0 to ", count - 1, ", not ", index));
  }
  if (options.target_workers == TargetWorkers::kLocal) {
    return absl::InvalidArgumentError(
        "num_consumers needs workers that all consumers read; target_workers is LOCAL");
  }
  return absl::OkStatus();
}

absl::Status CheckDelivery(const DistributeOptions&, const FirstComeFirstServed& delivery) {
  if (delivery.visitation <= Visitation::kAtLeastOnce) return absl::OkStatus();
  return absl::InvalidArgumentError("visitation is neither kExactlyOnce nor kAtLeastOnce");
}

absl::Status CheckDelivery(const DistributeOptions& options, const CoordinatedRounds& rounds) {
  RETURN_IF_ERROR(CheckConsumer(options, rounds.consumer_index, rounds.num_consumers));
  const auto [size, member] = rounds.group;
  if (size < 1 || size > kMostConsumers / rounds.num_consumers) {
    return absl::InvalidArgumentError(absl::StrCat("consumer_group's size must be from 1 to ",
                                                   kMostConsumers / rounds.num_consumers, ", not ",
                                                   size));
  }
  if (member < 0 || member >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat("consumer_group's member must be from 0 to ", size - 1, ", not ", member));
  }
  return absl::OkStatus();
}

absl::Status CheckDelivery(const DistributeOptions& options, const DeterministicOrder& order) {
  if (order.num_consumers != 0 || order.consumer_index != 0) {
    RETURN_IF_ERROR(CheckConsumer(options, order.consumer_index, order.num_consumers));
  }
  if (order.partitions < 0 || order.partitions > kMostPartitions) {
    return absl::InvalidArgumentError(absl::StrCat("partitions must be from 1 to ", kMostPartitions,
                                                   ", or 0 for AUTO, not ", order.partitions));
  }
  if (options.processing_mode == ShardingPolicy::kOff) {
    return absl::InvalidArgumentError(
        "order kDeterministic needs processing_mode DYNAMIC, or a static one: in mode OFF each "
        "worker reads the whole dataset, so the number of elements depends on their number");
  }
  // The number of partitions that have elements for one reader.
  const protocol::Positions positions{.partitions = PartitionsOf(options),
                                      .consumers = std::max<int64_t>(order.num_consumers, 1)};
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

absl::Status CheckDelivery(const DistributeOptions& options, const CrossTrainerCache& cache) {
  const char* wrong =
      cache.trainer_id.empty() ? "cross_trainer_cache needs a non-empty trainer_id"
      : options.job_name.empty()
          ? "cross_trainer_cache needs a job_name, under which trainers share"
      : options.ack_mode == AckMode::kOnCommit
          ? "cross_trainer_cache keeps no history of a trainer, which ack_mode = kOnCommit requires"
          : nullptr;
  if (wrong != nullptr) return absl::InvalidArgumentError(wrong);
  return CheckName("trainer_id", cache.trainer_id);
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
  RETURN_IF_ERROR(control::CheckShare(options.share));
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
  return std::visit([&](const auto& delivery) { return CheckDelivery(options, delivery); },
                    options.delivery);
}

control::JobTerms TermsOf(const DistributeOptions& options) {
  const DeliveryFields delivery = OfMember(FieldsOf(options));
  return {.mode = options.processing_mode,
          .ack_mode = options.ack_mode.value_or(AckMode::kOnDelivery),
          .deterministic = delivery.order == MergeOrder::kDeterministic,
          .partitions = PartitionsOf(options),
          .visitation = delivery.visitation,
          .num_consumers = delivery.num_consumers.value_or(0),
          .group_size = delivery.consumer_group.value_or(ConsumerGroup()).size,
          .remainder_policy = delivery.remainder_policy,
          .on_error = delivery.on_error,
          .cross_trainer_cache = delivery.cross_trainer_cache.has_value(),
          // The consumers of a job read from all workers.
          .target_workers = delivery.num_consumers ? TargetWorkers::kAny : options.target_workers,
          .quota = options.quota,
          .share = options.share};
}

Attrs ToAttrs(const DistributeOptions& options) {
  const DeliveryFields delivery = FieldsOf(options);
  Attrs attrs = {
      {"processing_mode", static_cast<int64_t>(options.processing_mode)},
      {"service", options.service},
      {"job_name", options.job_name},
      {"run_id", options.run_id},
      {"max_outstanding_requests", options.max_outstanding_requests},
      {"max_outstanding_bytes", options.max_outstanding_bytes},
      {"data_transfer_protocol", options.data_transfer_protocol},
      {"fallback", options.fallback},
      {"order", static_cast<int64_t>(delivery.order)},
      {"partitions", delivery.partitions},
      {"timeout_ns", absl::ToInt64Nanoseconds(options.timeout)},
      {"visitation", static_cast<int64_t>(delivery.visitation)},
      {"early_end", delivery.early_end},
      {"rests", static_cast<int64_t>(delivery.remainder_policy)},
      {"on_error", static_cast<int64_t>(delivery.on_error)},
      {"target_workers", static_cast<int64_t>(options.target_workers)},
      {"compression", static_cast<int64_t>(options.compression)},
      {"max_bytes_in_flight", options.quota.max_bytes_in_flight},
      {"max_permits", options.quota.max_permits},
      {"name_space", options.name_space},
      {"task_refresh_interval_hint_ns",
       absl::ToInt64Nanoseconds(options.task_refresh_interval_hint)},
  };
  // An earlier release reads a definition without these.
  if (options.share.weight != 1) attrs["weight"] = options.share.weight;
  if (options.share.priority != 0) attrs["priority"] = options.share.priority;
  if (delivery.consumer_index) attrs["consumer_index"] = *delivery.consumer_index;
  if (delivery.num_consumers) attrs["num_consumers"] = *delivery.num_consumers;
  if (delivery.consumer_group) {
    attrs["group_size"] = delivery.consumer_group->size;
    attrs["group_member"] = delivery.consumer_group->member;
  }
  if (delivery.cross_trainer_cache) attrs["trainer_id"] = delivery.cross_trainer_cache->trainer_id;
  const std::optional<AckMode>& ack_mode =
      options.ack_mode.has_value() ? options.ack_mode : options.keep.given();
  if (ack_mode.has_value()) attrs["keep"] = static_cast<int64_t>(*ack_mode);
  if (options.seed.has_value()) attrs["job_seed"] = static_cast<int64_t>(*options.seed);
  return attrs;
}

namespace {

DeliveryFields DeliveryFromAttrs(const Attrs& attrs) {
  DeliveryFields fields{
      .order = static_cast<MergeOrder>(Get<int64_t>(attrs, "order")),
      .partitions = Get<int64_t>(attrs, "partitions"),
      .visitation = static_cast<Visitation>(Get<int64_t>(attrs, "visitation")),
      .early_end = Get<bool>(attrs, "early_end"),
      .consumer_index = std::nullopt,
      .num_consumers = std::nullopt,
      .remainder_policy = static_cast<RemainderPolicy>(Get<int64_t>(attrs, "rests")),
      .on_error = static_cast<RoundErrorPolicy>(Get<int64_t>(attrs, "on_error")),
      .consumer_group = std::nullopt,
      .cross_trainer_cache = std::nullopt,
  };
  if (attrs.contains("consumer_index"))
    fields.consumer_index = Get<int64_t>(attrs, "consumer_index");
  if (attrs.contains("num_consumers")) fields.num_consumers = Get<int64_t>(attrs, "num_consumers");
  if (attrs.contains("group_size")) {
    fields.consumer_group = {Get<int64_t>(attrs, "group_size"),
                             Get<int64_t>(attrs, "group_member")};
  }
  if (attrs.contains("trainer_id")) {
    fields.cross_trainer_cache = CrossTrainerCache{Get<std::string>(attrs, "trainer_id")};
  }
  return fields;
}

}  // namespace

absl::StatusOr<DistributeOptions> FromAttrs(const Attrs& attrs) {
  DistributeOptions options;
  ASSIGN_OR_RETURN(options.delivery, ToDelivery(DeliveryFromAttrs(attrs)));
  options.processing_mode = static_cast<ShardingPolicy>(Get<int64_t>(attrs, "processing_mode"));
  options.service = Get<std::string>(attrs, "service");
  options.job_name = Get<std::string>(attrs, "job_name");
  options.run_id = Get<std::string>(attrs, "run_id");
  options.max_outstanding_requests = Get<int64_t>(attrs, "max_outstanding_requests");
  options.max_outstanding_bytes = Get<int64_t>(attrs, "max_outstanding_bytes");
  options.data_transfer_protocol = Get<std::string>(attrs, "data_transfer_protocol");
  options.fallback = Get<std::vector<std::string>>(attrs, "fallback");
  options.timeout = absl::Nanoseconds(Get<int64_t>(attrs, "timeout_ns"));
  options.target_workers = static_cast<TargetWorkers>(Get<int64_t>(attrs, "target_workers"));
  options.compression = static_cast<LinkCompression>(Get<int64_t>(attrs, "compression"));
  options.quota = {Get<int64_t>(attrs, "max_bytes_in_flight"), Get<int64_t>(attrs, "max_permits")};
  if (attrs.contains("weight")) options.share.weight = Get<int64_t>(attrs, "weight");
  if (attrs.contains("priority")) options.share.priority = Get<int64_t>(attrs, "priority");
  options.name_space = Get<std::string>(attrs, "name_space");
  options.task_refresh_interval_hint =
      absl::Nanoseconds(Get<int64_t>(attrs, "task_refresh_interval_hint_ns"));
  if (attrs.contains("keep")) options.ack_mode = static_cast<AckMode>(Get<int64_t>(attrs, "keep"));
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
      {"weight", AttrType::kInt, false, false},
      {"priority", AttrType::kInt, false, false},
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
