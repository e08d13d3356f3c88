// SPDX-License-Identifier: Apache-2.0
// A node that reads part of its input's files (AutoShardPolicy::kFile).
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "penstock/dataset.h"

namespace penstock::replica {

// OK if every source of the dataset reads files, at least as many as `shards`, or
// none at all. NotFound naming a source that has no files to divide,
// InvalidArgument naming one that has too few. Lists the files.
absl::Status CheckFiles(const Dataset& dataset, int64_t shards);

// The files index, index + shards, … of each source; where they are shuffled, of
// their order in each repetition, which follows the run's seed.
// REQUIRES: CheckFiles() says OK; what reads the result are nodes of one input each.
Dataset ShardFiles(const Dataset& dataset, int64_t shards, int64_t index);

}  // namespace penstock::replica
