// SPDX-License-Identifier: Apache-2.0
// The two nodes of a source of files: over files by name ("TarShards"), and,
// inside a body, over the one that an outer element names ("TarShardsOf").
#pragma once

#include <string>
#include <vector>

#include "dataplane/dataset/registry.h"
#include "penstock/sources.h"

namespace penstock {

// Whether a node of these attributes is the one over files by name.
inline bool IsOverNames(const Attrs& attrs) {
  return attrs.contains("files");
}

// The attribute "files", or "argument", is as it should be.
absl::Status CheckFiles(const Attrs& attrs);

// `status` with the node's name in front; OK stays OK.
absl::Status AtNode(const BuildSite& site, const absl::Status& status);

// The names of the files of the node at `site`, whichever it is.
std::vector<std::string> FilesOf(const BuildSite& site);

// The plan of a source whose splits are its files.
absl::StatusOr<SplitProviderPlan> PlanFiles(const Dataset::Node& node, Files& files);

// `kind` has op, attrs, infer, build and, for the node over names, plan. Either
// is that with what tells the two apart; "Of" is added to the second's op.
NodeKind OverNames(NodeKind kind);
NodeKind OverElement(NodeKind kind);

// A node of `op` (or `op`Of) over these files.
Dataset OverFiles(const std::string& op, const FileNames& files, Attrs attrs);

}  // namespace penstock
