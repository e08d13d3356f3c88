// SPDX-License-Identifier: Apache-2.0
// Divides an iteration in the modes FILE, DATA, FILE_OR_DATA and HINT, in which each partition is a
// shard that is fixed in advance. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/state/state.h"

namespace penstock::control {

// Returns "OFF", "DYNAMIC", …
std::string ToText(ShardingPolicy mode);

// Returns true for FILE, DATA, FILE_OR_DATA and HINT.
bool IsStatic(ShardingPolicy mode);

// Returns the mode in which `count` workers read the dataset: FILE_OR_DATA becomes FILE, or DATA if
// FILE is not possible. For FILE, returns NotFound with the name of a source that has no files to
// divide, or InvalidArgument if there are fewer files than workers. With one worker, all modes are
// possible. REQUIRES: IsStatic(mode), count ≥ 1.
absl::StatusOr<ShardingPolicy> ResolveMode(const DatasetSummary& dataset, ShardingPolicy mode,
                                           int64_t count);

// Returns the number of splits in shard `index` of `count`, for a provider with `splits` splits.
// The shard has the splits index, index + count, …
int64_t SplitsOfShard(int64_t splits, const ShardOf& shard);

}  // namespace penstock::control
