// SPDX-License-Identifier: Apache-2.0
// The two nodes of a source that reads files. One has the file names as an attribute ("TarShards").
// The other, inside a body, gets one name from an outer element ("TarShardsOf").
#pragma once

#include <string>
#include <vector>

#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/registry.h"
#include "penstock/sources.h"

namespace penstock {

// Returns whether `attrs` belong to the node with file names.
inline bool IsOverNames(const Attrs& attrs) {
  return attrs.contains("files");
}

// Checks the attribute "files" or "argument".
absl::Status CheckFiles(const Attrs& attrs);

// Returns `status` with the node's name in front of the message. OK stays OK.
absl::Status AtNode(const BuildSite& site, const absl::Status& status);

// Returns the file names of the node at `site`, which may be either of the two nodes.
std::vector<std::string> FilesOf(const BuildSite& site);

// Returns the split plan of a source whose splits are its files.
absl::StatusOr<SplitProviderPlan> PlanFiles(const Dataset::Node& node, Files& files);

// Makes one of the two node kinds from `kind`, which has op, attrs, infer, build and, for
// OverNames(), plan. Each function adds the parts that are specific to its node kind. OverElement()
// appends "Of" to op.
NodeKind OverNames(NodeKind kind);
NodeKind OverElement(NodeKind kind);

// Makes a node of `op`, or of `op`Of, that reads `files`.
Dataset OverFiles(const std::string& op, const FileNames& files, Attrs attrs);

}  // namespace penstock
