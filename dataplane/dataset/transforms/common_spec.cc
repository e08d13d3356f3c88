// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/common_spec.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

absl::StatusOr<TensorSpec> CommonLeaf(const TensorSpec& a, const TensorSpec& b,
                                      const std::string& name, const std::string& what) {
  if (a.dtype != b.dtype || a.kind != b.kind || a.ragged_rank != b.ragged_rank) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " differ", name.empty() ? "" : absl::StrCat(" in ", name), ": ",
                     a.ToString(), " in the first, ", b.ToString(), " in the second"));
  }
  TensorSpec common = a;
  common.shape = a.shape.MostGeneral(b.shape);
  common.optional = a.optional || b.optional;
  return common;
}

}  // namespace

absl::StatusOr<Spec> CommonSpec(const Spec& a, const Spec& b, std::string_view what) {
  if (a.leaves().size() != b.leaves().size() || !(a.WithLeaves(b.leaves()) == b)) {
    return absl::InvalidArgumentError(absl::StrCat(
        std::string(what), " have different structures: ", a.ToString(), " and ", b.ToString()));
  }
  std::vector<TensorSpec> leaves;
  for (size_t i = 0; i < a.leaves().size(); ++i) {
    ASSIGN_OR_RETURN(TensorSpec leaf,
                     CommonLeaf(a.leaves()[i], b.leaves()[i], a.LeafName(i), std::string(what)));
    leaves.push_back(std::move(leaf));
  }
  return a.WithLeaves(leaves);
}

}  // namespace penstock
