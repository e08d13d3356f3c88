// SPDX-License-Identifier: Apache-2.0
// DistributeOptions::delivery as flat fields: the form used by attributes of the node Distribute,
// by keywords in Python, and by C++ before 0.9.
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

// Returns the fields with consumers counted as the protocol does: each member of a group is one.
DeliveryFields OfMember(DeliveryFields fields);

// InvalidArgument names fields that exclude each other. The values of single fields are not
// checked.
absl::StatusOr<DeliveryMode> ToDelivery(const DeliveryFields& fields);

}  // namespace penstock::client
#pragma GCC visibility pop
