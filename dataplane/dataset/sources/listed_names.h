// SPDX-License-Identifier: Apache-2.0
// Files that a pattern finds, listed once: by whoever hands out splits, or where
// the dataset is read whole. Nodes of such files may have the attributes
// "shuffle" and "seed".
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "control/env/files.h"
#include "dataplane/dataset/build_site.h"
#include "dataplane/dataset/split.h"

namespace penstock {

// The files of a node of these attributes, sorted.
using ListNames = absl::StatusOr<std::vector<std::string>> (*)(const Attrs& attrs, Files& files,
                                                               CancelFlag cancelled);

// The list for the node at `site`: that of the plan, whose splits the dispatcher
// permutes, or its own, shuffled if the node says so.
struct ListedNames {
  std::vector<std::string> sorted;
  std::vector<int64_t> order;  // numbers in `sorted`, in the order of reading
};
absl::StatusOr<ListedNames> NamesAt(const BuildSite& site, ListNames list);

// The plan of a node with these files, each a split.
absl::StatusOr<SplitProviderPlan> PlanNames(const Dataset::Node& node, Files& files,
                                            ListNames list);

}  // namespace penstock
