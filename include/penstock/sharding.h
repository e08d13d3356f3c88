// SPDX-License-Identifier: Apache-2.0
// Words for reading through the service by shards that are known beforehand
// (ShardingPolicy::kFile, kData, kFileOrData, kHint), and for choosing workers.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "penstock/distribute.h"

namespace penstock {

// Dataset::Shard(kShardHint, …): processing_mode kHint puts the number of workers and the
// worker's own here, whatever index is given. Read in any other way it is FailedPrecondition.
inline constexpr int64_t kShardHint = -1;

// "AUTO", "ANY", "LOCAL" in any case, or "" for kAuto; else InvalidArgument.
absl::StatusOr<TargetWorkers> TargetWorkersFromName(std::string_view name);

}  // namespace penstock
