// SPDX-License-Identifier: Apache-2.0
// Partitions that are shards fixed in advance (modes FILE, DATA and HINT), and the workers that a
// client reads. See docs/protocol.md, "Shards".
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "penstock/distribute.h"

namespace penstock::control {

// The shard that one partition reads.
struct ShardOf {
  ShardingPolicy mode = ShardingPolicy::kOff;  // never kFileOrData, which is resolved earlier
  int64_t count = 0;                           // number of shards; 0: partitions are not shards
  int64_t index = 0;                           // in [0, count)
  friend bool operator==(const ShardOf&, const ShardOf&) = default;
};

// The shards of an iteration's partitions in the modes FILE, DATA and HINT. Fixed when the
// iteration begins.
struct Division {
  ShardingPolicy mode = ShardingPolicy::kOff;  // never kFileOrData, which is resolved earlier
  int64_t count = 0;                           // number of all shards; 0: partitions are not shards
  std::vector<int64_t> shards;                 // [0] is the shard of partition 1
  friend bool operator==(const Division&, const Division&) = default;
};

// The tag that reserves a worker for the trainer in its own process.
inline constexpr char kColocatedTag[] = "COLOCATED";

// Returns whether a client whose job has the target `target` reads a worker with the tags `tags`.
// `local`: whether client and worker are in the same process.
inline bool Reads(TargetWorkers target, bool local, absl::Span<const std::string> tags) {
  if (local || target == TargetWorkers::kAny) return true;
  return target == TargetWorkers::kAuto &&
         std::none_of(tags.begin(), tags.end(), [](const std::string& tag) {
           return absl::EqualsIgnoreCase(tag, kColocatedTag);
         });
}

}  // namespace penstock::control
