// SPDX-License-Identifier: Apache-2.0
// Files that a pattern matches. They are listed once: when the splits are planned, or, without a
// split plan, by the process that reads the dataset. Nodes that list files this way may have the
// attributes "shuffle" and "seed".
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "control/env/files.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/split.h"

namespace penstock {

// Lists the files of a node with these attributes, sorted.
using ListNames = absl::StatusOr<std::vector<std::string>> (*)(const Attrs& attrs, Files& files,
                                                               const std::stop_token& stop);

// The files of one node.
struct ListedNames {
  std::vector<std::string> sorted;
  std::vector<int64_t> order;  // indices into `sorted`, in reading order
};
// Returns the list for the node at `site`. With a split plan, these are the files of the plan, and
// the dispatcher permutes the splits. Without one, the files are listed here, and shuffled if the
// node's attributes ask for that.
absl::StatusOr<ListedNames> NamesAt(const BuildSite& site, ListNames list);

// Makes the split plan of a node with these files. Each file is a split.
absl::StatusOr<SplitProviderPlan> PlanNames(const Dataset::Node& node, Files& files,
                                            ListNames list);

}  // namespace penstock
