// SPDX-License-Identifier: Apache-2.0
// The terms that all readers of a job agree on. Fixed when the job is made; a client that joins
// under its name must ask for the same (control/dispatcher/differences.h).
#pragma once

#include <cstdint>

#include "penstock/distribute.h"

namespace penstock::control {

struct JobTerms {
  ShardingPolicy mode = ShardingPolicy::kOff;
  AckMode ack_mode = AckMode::kOnDelivery;
  bool deterministic = false;  // MergeOrder::kDeterministic
  int64_t partitions = 0;      // of that order, from the start; 0: set by the mode
  Visitation visitation = Visitation::kExactlyOnce;
  int64_t num_consumers = 0;  // of rounds, or of order kDeterministic; 0: neither
  // How many consecutive consumers get the same elements; num_consumers counts each of them. A
  // partition of n elements has n * group_size indices: element i has those from i * group_size on.
  int64_t group_size = 1;
  RemainderPolicy remainder_policy = RemainderPolicy::kPad;
  RoundErrorPolicy on_error = RoundErrorPolicy::kSkipRound;
  bool cross_trainer_cache = false;
  TargetWorkers target_workers = TargetWorkers::kAuto;
  JobQuota quota;
  bool coordinated() const { return num_consumers > 0 && !deterministic; }  // it reads in rounds
  friend bool operator==(const JobTerms&, const JobTerms&) = default;
};

}  // namespace penstock::control
