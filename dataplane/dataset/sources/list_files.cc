// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/list_files.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/env/files.h"
#include "dataplane/dataset/sources/indexed_source.h"
#include "dataplane/dataset/sources/scalar_string.h"
#include "penstock/status.h"

namespace penstock {
namespace {

using Names = std::vector<std::string>;

// What the patterns match, in the order of the names' bytes, each once.
absl::StatusOr<Names> Resolve(const Names& patterns, Files& files, CancelFlag cancelled = nullptr) {
  Names all;
  for (const std::string& pattern : patterns) {
    ASSIGN_OR_RETURN(const Names found, files.Glob(pattern, cancelled));
    if (found.empty()) return absl::NotFoundError(absl::StrCat("no file matches ", pattern));
    all.insert(all.end(), found.begin(), found.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

void Shuffle(RandomKey key, Names& names) {
  for (size_t i = names.size(); i > 1; --i) {
    key.element = i;
    const auto scaled = static_cast<unsigned __int128>(RandomBits(key, 0)) * i;
    std::swap(names[i - 1], names[static_cast<size_t>(scaled >> 64)]);
  }
}

class ListFilesIterator final : public IndexedSource {
 public:
  ListFilesIterator(const BuildSite& site, Names names)
      : IndexedSource(site, names.size(), names.size()), names_(std::move(names)) {}

 private:
  absl::StatusOr<Element> Make(int64_t n) override {
    return ScalarString(site().pool(), names_[n]);
  }

  Names names_;
};

absl::StatusOr<Inferred> InferListFiles(const Attrs& attrs, absl::Span<const NodePtr>) {
  if (Get<Names>(attrs, "patterns").empty())
    return absl::InvalidArgumentError("patterns must not be empty");
  return Inferred{Bytes(), kUnknown};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildListFiles(const BuildSite& site) {
  // Whoever hands out splits has resolved the patterns and permutes the files.
  if (site.splits() != nullptr) {
    const auto& providers = site.run().plan->providers;
    if (static_cast<size_t>(site.provider()) >= providers.size()) {
      return absl::DataLossError(
          absl::StrCat(site.name(), ": the split plan knows nothing of this source"));
    }
    return std::make_unique<ListFilesIterator>(site, providers[site.provider()].files);
  }
  absl::StatusOr<Names> names =
      Resolve(site.attr<Names>("patterns"), site.files(), site.run().cancelled);
  if (!names.ok()) {
    return absl::Status(names.status().code(),
                        absl::StrCat(site.name(), ": ", names.status().message()));
  }
  if (site.attr<bool>("shuffle")) Shuffle(site.Random(), *names);
  return std::make_unique<ListFilesIterator>(site, *std::move(names));
}

absl::StatusOr<SplitProviderPlan> PlanListFiles(const Dataset::Node& node, Files& files) {
  SplitProviderPlan plan;
  ASSIGN_OR_RETURN(plan.files, Resolve(Get<Names>(node.attrs, "patterns"), files));
  plan.count = static_cast<int64_t>(plan.files.size());
  plan.shuffled = Get<bool>(node.attrs, "shuffle");
  if (auto seed = node.attrs.find("seed"); seed != node.attrs.end()) {
    plan.seeded = true;
    plan.seed = static_cast<uint64_t>(std::get<int64_t>(seed->second));
  }
  return plan;
}

}  // namespace

NodeKind ListFilesKind() {
  return {.op = "ListFiles",
          .attrs = {{"patterns", AttrType::kStrings},
                    {"shuffle", AttrType::kBool},
                    {"seed", AttrType::kInt, false}},
          .min_inputs = 0,
          .max_inputs = 0,
          .infer = InferListFiles,
          .build = BuildListFiles,
          .plan = PlanListFiles};
}

Dataset Dataset::ListFiles(std::vector<std::string> patterns, ListFilesOptions options) {
  Attrs attrs = {{"patterns", std::move(patterns)}, {"shuffle", options.shuffle}};
  if (options.seed.has_value()) attrs.emplace("seed", static_cast<int64_t>(*options.seed));
  return Dataset(MakeNode("ListFiles", std::move(attrs), {}));
}

}  // namespace penstock
