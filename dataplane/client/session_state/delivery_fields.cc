// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session_state/delivery_fields.h"

#include "absl/status/status.h"
#include "penstock/status.h"

namespace penstock::client {
namespace {

void Into(const FirstComeFirstServed& from, DeliveryFields& to) {
  to.order = from.fair ? MergeOrder::kFair : MergeOrder::kAny;
  to.visitation = from.visitation;
  to.early_end = from.early_end;
}

void Into(const CoordinatedRounds& from, DeliveryFields& to) {
  to.consumer_index = from.consumer_index;
  to.num_consumers = from.num_consumers;
  to.remainder_policy = from.remainder_policy;
  to.on_error = from.on_error;
  if (from.group != ConsumerGroup()) to.consumer_group = from.group;
}

void Into(const DeterministicOrder& from, DeliveryFields& to) {
  to.order = MergeOrder::kDeterministic;
  to.partitions = from.partitions;
  if (from == DeterministicOrder{.partitions = from.partitions}) return;
  to.consumer_index = from.consumer_index;
  to.num_consumers = from.num_consumers;
}

void Into(const CrossTrainerCache& from, DeliveryFields& to) {
  to.order = from.fair ? MergeOrder::kFair : MergeOrder::kAny;
  to.cross_trainer_cache = from;
}

// Returns the reason why `fields` exclude each other; nullptr if they do not.
const char* Mixture(const DeliveryFields& fields) {
  const bool deterministic = fields.order == MergeOrder::kDeterministic;
  const bool cached = fields.cross_trainer_cache.has_value();
  const bool consumers = fields.num_consumers.has_value();
  const bool rounds = consumers && !deterministic;
  const bool at_least_once = fields.visitation != Visitation::kExactlyOnce;
  const bool of_rounds = fields.remainder_policy != RemainderPolicy::kPad ||
                         fields.on_error != RoundErrorPolicy::kSkipRound;
  struct Rule {
    bool broken;
    const char* why;
  };
  const Rule rules[] = {
      {fields.order > MergeOrder::kDeterministic, "order must be ANY, FAIR or DETERMINISTIC"},
      {fields.consumer_index.has_value() != consumers,
       "consumer_index and num_consumers go together: give both, or neither"},
      {consumers && *fields.num_consumers < 1, "num_consumers must be at least 1"},
      {cached && consumers,
       "cross_trainer_cache and coordinated reads exclude each other: a coordinated read gives "
       "each element to one consumer, cross_trainer_cache gives it to all"},
      {cached && deterministic,
       "cross_trainer_cache skips elements that a slow trainer misses, which order kDeterministic "
       "does not allow"},
      {cached && at_least_once,
       "visitation kAtLeastOnce: elements of a cross_trainer_cache are never sent again"},
      {fields.partitions != 0 && !deterministic,
       "partitions requires order kDeterministic; set that order, or leave partitions out"},
      {fields.consumer_group && !consumers,
       "consumer_group requires a coordinated read; set num_consumers, the number of groups, and "
       "consumer_index"},
      {fields.consumer_group && deterministic,
       "consumer_group requires rounds, which order kDeterministic does not have: leave out one"},
      {of_rounds && deterministic,
       "remainder_policy and on_error apply to the rounds of a coordinated read, which order "
       "kDeterministic does not have: leave out the order or these options"},
      {of_rounds && !consumers, "remainder_policy and on_error require num_consumers"},
      {at_least_once && deterministic,
       "visitation kAtLeastOnce: an element that is sent again has no place in order "
       "kDeterministic"},
      {at_least_once && consumers,
       "visitation kAtLeastOnce: a round of a coordinated read cannot be given out twice"},
      {fields.early_end && (consumers || deterministic || cached),
       "early_end is for readers that share a job without num_consumers, order kDeterministic or "
       "cross_trainer_cache: leave out either"},
      {rounds && fields.order == MergeOrder::kFair,
       "order kFair is for readers without num_consumers: leave out either"},
  };
  for (const Rule& rule : rules) {
    if (rule.broken) return rule.why;
  }
  return nullptr;
}

}  // namespace

DeliveryFields FieldsOf(const DistributeOptions& options) {
  DeliveryFields fields;
  std::visit([&](const auto& delivery) { Into(delivery, fields); }, options.delivery);
  const auto take = [](const auto& moved, auto& field) {
    if (moved.given().has_value()) field = *moved.given();
  };
  take(options.order, fields.order);
  take(options.partitions, fields.partitions);
  take(options.visitation, fields.visitation);
  take(options.early_end, fields.early_end);
  take(options.consumer_index, fields.consumer_index);
  take(options.num_consumers, fields.num_consumers);
  take(options.rests, fields.remainder_policy);
  take(options.on_error, fields.on_error);
  take(options.consumer_group, fields.consumer_group);
  take(options.cross_trainer_cache, fields.cross_trainer_cache);
  return fields;
}

DeliveryFields OfMember(DeliveryFields fields) {
  if (!fields.consumer_group) return fields;
  const auto [size, member] = *fields.consumer_group;
  *fields.num_consumers *= size;
  fields.consumer_index = *fields.consumer_index * size + member;
  return fields;
}

absl::StatusOr<DeliveryMode> ToDelivery(const DeliveryFields& fields) {
  if (const char* mixture = Mixture(fields)) return absl::InvalidArgumentError(mixture);
  if (fields.cross_trainer_cache) {
    return CrossTrainerCache{.trainer_id = fields.cross_trainer_cache->trainer_id,
                             .fair = fields.order == MergeOrder::kFair};
  }
  if (fields.order == MergeOrder::kDeterministic) {
    return DeterministicOrder{.partitions = fields.partitions,
                              .consumer_index = fields.consumer_index.value_or(0),
                              .num_consumers = fields.num_consumers.value_or(0)};
  }
  if (fields.num_consumers) {
    return CoordinatedRounds{.consumer_index = *fields.consumer_index,
                             .num_consumers = *fields.num_consumers,
                             .remainder_policy = fields.remainder_policy,
                             .on_error = fields.on_error,
                             .group = fields.consumer_group.value_or(ConsumerGroup())};
  }
  return FirstComeFirstServed{.fair = fields.order == MergeOrder::kFair,
                              .visitation = fields.visitation,
                              .early_end = fields.early_end};
}

}  // namespace penstock::client
