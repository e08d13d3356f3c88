// SPDX-License-Identifier: Apache-2.0
// Partitions that are shards known beforehand (modes FILE, DATA and HINT), and
// whose workers a client reads. docs/protocol.md, "Shards".
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "penstock/distribute.h"

namespace penstock::control {

// What one partition reads.
struct ShardOf {
  ShardingPolicy mode = ShardingPolicy::kOff;  // never kFileOrData: that was decided
  int64_t count = 0;                           // of shards; 0: partitions are no shards
  int64_t index = 0;                           // in [0, count)
  friend bool operator==(const ShardOf&, const ShardOf&) = default;
};

// In the modes FILE, DATA and HINT: the shards that the partitions of an iteration are.
// Fixed when it begins.
struct Division {
  ShardingPolicy mode = ShardingPolicy::kOff;  // never kFileOrData: that was decided
  int64_t count = 0;                           // shards of the whole; 0: partitions are none
  std::vector<int64_t> shards;                 // [0] is that of partition 1
  friend bool operator==(const Division&, const Division&) = default;
};

// The tag that keeps a worker for the trainer in its own process.
inline constexpr char kColocatedTag[] = "COLOCATED";

// Whether a client whose job has that target reads a worker with these tags;
// `local`: they are one process.
inline bool Reads(TargetWorkers target, bool local, absl::Span<const std::string> tags) {
  if (local || target == TargetWorkers::kAny) return true;
  return target == TargetWorkers::kAuto &&
         std::none_of(tags.begin(), tags.end(), [](const std::string& tag) {
           return absl::EqualsIgnoreCase(tag, kColocatedTag);
         });
}

}  // namespace penstock::control
