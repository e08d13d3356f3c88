// SPDX-License-Identifier: Apache-2.0
// The terms on which all readers of a job agree. They are fixed when the job is made. A client that
// joins the job by its name must ask for the same terms
// (control/dispatcher/messages/differences.h).
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "penstock/distribute.h"

namespace penstock::control {

struct JobTerms {
  ShardingPolicy mode = ShardingPolicy::kOff;
  AckMode ack_mode = AckMode::kOnDelivery;
  bool deterministic = false;  // MergeOrder::kDeterministic
  int64_t partitions = 0;      // of that order, all opened at the start; 0: set by the mode
  Visitation visitation = Visitation::kExactlyOnce;
  int64_t num_consumers = 0;  // of rounds, or of order kDeterministic; 0: neither
  // The number of consecutive consumers that get the same elements. num_consumers counts each of
  // these consumers. A partition of n elements has n * group_size indices: element i has the
  // group_size indices from i * group_size on.
  int64_t group_size = 1;
  RemainderPolicy remainder_policy = RemainderPolicy::kPad;
  RoundErrorPolicy on_error = RoundErrorPolicy::kSkipRound;
  bool cross_trainer_cache = false;
  TargetWorkers target_workers = TargetWorkers::kAuto;
  JobQuota quota;
  JobShare share;
  bool coordinated() const { return num_consumers > 0 && !deterministic; }  // reads in rounds
  friend bool operator==(const JobTerms&, const JobTerms&) = default;
};

inline constexpr int64_t kMostWeight = 1000;
inline constexpr int64_t kMostPriority = 1000;

// InvalidArgument if a number of the share is out of its range.
inline absl::Status CheckShare(const JobShare& share) {
  if (share.weight >= 1 && share.weight <= kMostWeight && share.priority >= -kMostPriority &&
      share.priority <= kMostPriority) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a job's weight must be from 1 to ", kMostWeight, ", and its priority from -", kMostPriority,
      " to ", kMostPriority, "; got weight ", share.weight, " and priority ", share.priority));
}

}  // namespace penstock::control
