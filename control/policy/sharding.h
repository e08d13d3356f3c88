// SPDX-License-Identifier: Apache-2.0
// Into what an iteration is divided in the modes FILE, DATA, FILE_OR_DATA and
// HINT, where each partition is a shard that is known beforehand. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/state/state.h"

namespace penstock::control {

// FILE, DATA, FILE_OR_DATA, HINT.
bool IsStatic(ShardingPolicy mode);

// The mode in which `count` workers read such a dataset: FILE_OR_DATA becomes
// FILE, or DATA where FILE cannot be. NotFound naming a source that has no files
// to divide, InvalidArgument for fewer files than workers, under FILE; with one
// worker anything can be.
// REQUIRES: IsStatic(mode), count ≥ 1.
absl::StatusOr<ShardingPolicy> ResolveMode(const DatasetSummary& dataset, ShardingPolicy mode,
                                           int64_t count);

// Splits of a provider of `splits` that are in shard `index` of `count`: index,
// index + count, …
int64_t SplitsOfShard(int64_t splits, const ShardOf& shard);

}  // namespace penstock::control
