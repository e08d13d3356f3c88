// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/listed_names.h"

#include <cstdint>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/sources/file_nodes.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

void Shuffle(RandomKey key, std::vector<int64_t>& order) {
  for (size_t i = order.size(); i > 1; --i) {
    key.element = i;
    const auto scaled = static_cast<unsigned __int128>(RandomBits(key, 0)) * i;
    std::swap(order[i - 1], order[static_cast<size_t>(scaled >> 64)]);
  }
}

}  // namespace

absl::StatusOr<ListedNames> NamesAt(const BuildSite& site, ListNames list) {
  ListedNames names;
  if (site.splits() != nullptr) {
    const auto& providers = site.run().plan->providers;
    if (static_cast<size_t>(site.provider()) >= providers.size()) {
      return absl::DataLossError(
          absl::StrCat(site.name(), ": the split plan does not contain this source"));
    }
    names.sorted = providers[site.provider()].files;
  } else {
    absl::StatusOr<std::vector<std::string>> listed =
        list(site.node().attrs, site.files(), site.run().stop);
    if (!listed.ok()) return AtNode(site, listed.status());
    names.sorted = *std::move(listed);
  }
  names.order.resize(names.sorted.size());
  std::iota(names.order.begin(), names.order.end(), 0);
  if (site.splits() == nullptr && site.attr<bool>("shuffle")) Shuffle(site.Random(), names.order);
  return names;
}

absl::StatusOr<SplitProviderPlan> PlanNames(const Dataset::Node& node, Files& files,
                                            ListNames list) {
  SplitProviderPlan plan;
  ASSIGN_OR_RETURN(plan.files, list(node.attrs, files, {}));
  plan.count = static_cast<int64_t>(plan.files.size());
  plan.shuffled = Get<bool>(node.attrs, "shuffle");
  if (auto seed = node.attrs.find("seed"); seed != node.attrs.end()) {
    plan.seeded = true;
    plan.seed = static_cast<uint64_t>(std::get<int64_t>(seed->second));
  }
  return plan;
}

}  // namespace penstock
