// SPDX-License-Identifier: Apache-2.0
// DistributeOptions::delivery as flat fields. The attributes of the Distribute node and the
// keywords in Python have this form; before 0.9, C++ had it too.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "penstock/distribute.h"

#pragma GCC visibility push(default)
namespace penstock::client {

struct DeliveryFields {
  MergeOrder order = MergeOrder::kAny;
  int64_t partitions = 0;
  Visitation visitation = Visitation::kExactlyOnce;
  bool early_end = false;
  std::optional<int64_t> consumer_index;
  std::optional<int64_t> num_consumers;
  RemainderPolicy remainder_policy = RemainderPolicy::kPad;
  RoundErrorPolicy on_error = RoundErrorPolicy::kSkipRound;
  std::optional<ConsumerGroup> consumer_group;
  std::optional<CrossTrainerCache> cross_trainer_cache;
};

// Returns the fields of `options.delivery`, combined with the moved fields that are set.
DeliveryFields FieldsOf(const DistributeOptions& options);

// Returns the fields with consumers counted as the protocol counts them: each member of a consumer
// group is one consumer.
DeliveryFields OfMember(DeliveryFields fields);

// Returns InvalidArgument naming fields that exclude each other. Does not check the values of
// single fields.
absl::StatusOr<DeliveryMode> ToDelivery(const DeliveryFields& fields);

}  // namespace penstock::client
#pragma GCC visibility pop
