// SPDX-License-Identifier: Apache-2.0
// Where a dataset is cut if each partition is a shard fixed in advance: processing modes FILE, DATA
// and HINT. FILE divides the splits of the dataset's sources. DATA takes every n-th element of the
// whole dataset (after a final Prefetch, which changes no element). HINT takes every n-th element
// at the Shard of kShardHint. The nodes before a cut must produce the same elements in each
// partition.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "dataplane/dataset/graph/split.h"
#include "penstock/dataset.h"
#include "penstock/distribute.h"

namespace penstock {

// FailedPrecondition for a hint without the policy HINT. InvalidArgument names a node that is not
// deterministic although it is before the cut of DATA or HINT.
absl::Status CheckShardable(const Dataset& dataset, ShardingPolicy mode);

// True if the dataset, including its functions, contains a Shard of kShardHint.
bool HasShardHint(const Dataset& dataset);
// Returns the dataset with shard `index` of `shards` in place of each hint. REQUIRES: the dataset
// does not belong to a function (CheckStandsAlone).
Dataset WithShardForHint(const Dataset& dataset, int64_t shards, int64_t index);
// True if `node` is after a hint, so that partitions may differ there. False for a node whose own
// function contains the hint: the node must open the same dataset in all partitions.
bool StandsBehindShardHint(const Dataset::Node& node);
// Returns FailedPrecondition for the hint of the node called `name`.
absl::Status HintWithoutPolicy(const std::string& name);

// Returns elements index, index + shards, … of `input`.
std::unique_ptr<NodeIterator> ShardOfIterator(std::unique_ptr<NodeIterator> input, int64_t shards,
                                              int64_t index);

// Returns for each provider of the dataset's plan whether FILE can divide it. FILE can divide a
// provider if each of its splits is one or several files: the provider is a source of files, or a
// FromTensorSlices of names of files that a function opens.
std::vector<bool> SplitsAreFiles(const Dataset& dataset, const SplitPlan& plan);

}  // namespace penstock
