// SPDX-License-Identifier: Apache-2.0
// A node that reads a part of its input's files (AutoShardPolicy::kFile).
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "penstock/dataset.h"

namespace penstock::replica {

// Returns OK if every source of the dataset reads files one by one, and has no files or at least
// `shards` of them. Lists the files to count them. Returns NotFound if there is no source, NotFound
// naming a source that does not read files one by one, or InvalidArgument naming a source that has
// too few files.
absl::Status CheckFiles(const Dataset& dataset, int64_t shards);

// Reads the files index, index + shards, … of each source. If a source's files are shuffled, the
// indices refer to the shuffled order of each repetition, which depends on the run's seed.
// REQUIRES: CheckFiles() returns OK, and the nodes that read the result have one input each.
Dataset ShardFiles(const Dataset& dataset, int64_t shards, int64_t index);

}  // namespace penstock::replica
