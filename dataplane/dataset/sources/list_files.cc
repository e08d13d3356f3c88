// SPDX-License-Identifier: Apache-2.0
// Dataset::ListFiles: the names of the files that match patterns.
#include <algorithm>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/env/files.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/sources/indexed_source.h"
#include "dataplane/dataset/sources/kinds.h"
#include "dataplane/dataset/sources/listed_names.h"
#include "dataplane/dataset/sources/scalar_string.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Names = std::vector<std::string>;

// Returns the names that match the patterns, in byte order, without duplicates. NotFound if a
// pattern matches none.
absl::StatusOr<Names> Resolve(const Attrs& attrs, Files& files, const std::stop_token& stop) {
  Names all;
  for (const std::string& pattern : Get<Names>(attrs, "patterns")) {
    ASSIGN_OR_RETURN(const Names found, files.Glob(pattern, stop));
    if (found.empty()) return absl::NotFoundError(absl::StrCat("no file matches ", pattern));
    all.insert(all.end(), found.begin(), found.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

class ListFilesIterator final : public IndexedSource {
 public:
  ListFilesIterator(const BuildSite& site, ListedNames names)
      : IndexedSource(site, names.order.size(), names.order.size()), names_(std::move(names)) {}

 private:
  absl::StatusOr<Element> Make(int64_t n) override {
    return ScalarString(site().pool(), names_.sorted[names_.order[n]]);
  }

  ListedNames names_;
};

absl::StatusOr<Inferred> InferListFiles(const Attrs& attrs, absl::Span<const NodePtr>) {
  if (Get<Names>(attrs, "patterns").empty())
    return absl::InvalidArgumentError("patterns must not be empty");
  return Inferred{Bytes(), kUnknown};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildListFiles(const BuildSite& site) {
  ASSIGN_OR_RETURN(ListedNames names, NamesAt(site, Resolve));
  return std::make_unique<ListFilesIterator>(site, std::move(names));
}

absl::StatusOr<SplitProviderPlan> PlanListFiles(const Dataset::Node& node, Files& files) {
  return PlanNames(node, files, Resolve);
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
  return DatasetOf(MakeNode("ListFiles", std::move(attrs), {}));
}

}  // namespace penstock
