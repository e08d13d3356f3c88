// SPDX-License-Identifier: Apache-2.0
// Where a dataset is cut when each partition is a shard of it that is known
// beforehand: processing modes FILE, DATA and HINT. FILE divides the splits of
// its sources. DATA takes every n-th element of the whole (behind a Prefetch that
// ends it, which changes no element), HINT that at the Shard of kShardHint; what
// stands above the cut must give the same in each partition.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/dataset/node_iterator.h"
#include "dataplane/dataset/split.h"
#include "penstock/dataset.h"
#include "penstock/distribute.h"

namespace penstock {

// FailedPrecondition for a hint without the policy HINT; InvalidArgument naming
// what is not deterministic above the cut of DATA or HINT.
absl::Status CheckShardable(const Dataset& dataset, ShardingPolicy mode);

// Whether a Shard of kShardHint stands in it, inside functions too.
bool HasShardHint(const Dataset& dataset);
// The same dataset with that shard in the place of each hint. REQUIRES: it is no
// dataset of a function's own (CheckStandsAlone).
Dataset WithShardForHint(const Dataset& dataset, int64_t shards, int64_t index);
// Whether `node` stands behind a hint, so that partitions may differ there; not a node
// that has the hint in a function of its own, which must open the same in all.
bool StandsBehindShardHint(const Dataset::Node& node);
// FailedPrecondition for the hint of the node called `name`.
absl::Status HintWithoutPolicy(const std::string& name);

// Elements index, index + shards, … of `input`.
std::unique_ptr<NodeIterator> ShardOfIterator(std::unique_ptr<NodeIterator> input, int64_t shards,
                                              int64_t index);

// For each provider of the dataset's plan whether its splits are files, one or
// several each, so that FILE can divide it: a source of files, or FromTensorSlices
// of names that a function opens.
std::vector<bool> SplitsAreFiles(const Dataset& dataset, const SplitPlan& plan);

}  // namespace penstock
