// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/file_nodes.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"

namespace penstock {
namespace {

using Names = std::vector<std::string>;

}  // namespace

absl::Status CheckFiles(const Attrs& attrs) {
  if (IsOverNames(attrs)) {
    for (const std::string& file : Get<Names>(attrs, "files"))
      if (file.empty()) return absl::InvalidArgumentError("files contains an empty name");
    return absl::OkStatus();
  }
  const Spec& argument = Get<Spec>(attrs, "argument");
  if (argument == Spec(Bytes())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("file must be a scalar string, not ", argument.ToString()));
}

absl::Status AtNode(const BuildSite& site, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(site.name(), ": ", status.message()));
}

Names FilesOf(const BuildSite& site) {
  if (IsOverNames(site.node().attrs)) return site.attr<Names>("files");
  return {std::string(site.argument()[0].string())};
}

absl::StatusOr<SplitProviderPlan> PlanFiles(const Dataset::Node& node, Files&) {
  const Names& files = Get<Names>(node.attrs, "files");
  return SplitProviderPlan{.count = static_cast<int64_t>(files.size()), .files = files};
}

NodeKind OverNames(NodeKind kind) {
  kind.attrs.push_back({"files", AttrType::kStrings});
  kind.min_inputs = kind.max_inputs = 0;
  return kind;
}

NodeKind OverElement(NodeKind kind) {
  kind.op += "Of";
  kind.attrs.push_back({"argument", AttrType::kSpec});
  kind.min_inputs = kind.max_inputs = 0;
  kind.takes_argument = true;
  kind.plan = nullptr;
  return kind;
}

Dataset OverFiles(const std::string& op, const FileNames& files, Attrs attrs) {
  if (!files.element().has_value()) {
    attrs.emplace("files", files.names());
    return DatasetOf(MakeNode(op, std::move(attrs), {}));
  }
  attrs.emplace("argument", files.element()->spec());
  return DatasetOf(MakeNode(op + "Of", std::move(attrs), {}, {*files.element()}));
}

}  // namespace penstock
