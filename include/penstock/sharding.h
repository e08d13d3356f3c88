// SPDX-License-Identifier: Apache-2.0
// Helpers for reading static shards through the service (ShardingPolicy::kFile, kData, kFileOrData,
// kHint), and for choosing workers.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "penstock/distribute.h"

#pragma GCC visibility push(default)
namespace penstock {

// In Dataset::Shard(kShardHint, …), processing_mode kHint fills in the number of workers and each
// worker's own index. The index argument is ignored. FailedPrecondition if the dataset is read in
// any other mode.
inline constexpr int64_t kShardHint = -1;

// Parses "AUTO", "ANY" or "LOCAL" in any case; "" is kAuto. InvalidArgument for any other name.
absl::StatusOr<TargetWorkers> TargetWorkersFromName(std::string_view name);

}  // namespace penstock
#pragma GCC visibility pop
