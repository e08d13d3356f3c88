// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/graph/decides_by_value.h"

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/graph/registry.h"

namespace penstock {

absl::Status CheckDeterministic(const FunctionDef& function, std::string_view argument) {
  if (function.deterministic) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      std::string(argument),
      " calls a function that is registered as not deterministic, and its result decides which ",
      "elements follow; register it as deterministic, or do not base the decision on it"));
}

absl::Status CheckDeterministic(const Dataset::Node& input) {
  absl::Status first;
  VisitNodes(input, [&](const Dataset::Node& node, int number) {
    const NodeKind* kind = FindNodeKind(node.op);
    const bool says = kind != nullptr && (kind->takes_params || node.attrs.contains("pickle"));
    if (says && !Get<bool>(node.attrs, "deterministic")) {
      first.Update(absl::InvalidArgumentError(absl::StrCat(
          NodeName(node, number), " is '", Get<std::string>(node.attrs, "name"),
          "', which is registered as not deterministic, and its elements decide which other ",
          "elements follow; register it as deterministic, or do not base the decision on them")));
    }
    for (const auto& [name, value] : node.attrs) {
      const auto* function = std::get_if<std::shared_ptr<const FunctionDef>>(&value);
      if (function != nullptr && !(*function)->deterministic)
        first.Update(CheckDeterministic(**function, NodeName(node, number)));
    }
  });
  return first;
}

}  // namespace penstock
