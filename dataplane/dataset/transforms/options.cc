// SPDX-License-Identifier: Apache-2.0
// Dataset::WithOptions: changes how the nodes before it run, not which elements they return.
// `deterministic` is for the code that merges partitions; inside one partition the order is always
// fixed.
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "penstock/status.h"

namespace penstock {
namespace {

constexpr int64_t kMostThreads = 1024;

absl::StatusOr<Inferred> InferOptions(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  if (attrs.contains("threads")) {
    const int64_t threads = Get<int64_t>(attrs, "threads");
    if (threads < 1 || threads > kMostThreads) {
      return absl::InvalidArgumentError(
          absl::StrCat("threads must be in [1, ", kMostThreads, "], not ", threads));
    }
  }
  return Inferred{inputs[0]->spec, inputs[0]->cardinality};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildOptions(const BuildSite& site) {
  if (!site.node().attrs.contains("threads")) return site.BuildInput(0);
  return site.WithThreads(static_cast<int>(site.attr<int64_t>("threads"))).BuildInput(0);
}

}  // namespace

NodeKind OptionsKind() {
  return {.op = "Options",
          .attrs = {{"deterministic", AttrType::kBool, false}, {"threads", AttrType::kInt, false}},
          .hands_on = true,
          .infer = InferOptions,
          .build = BuildOptions};
}

Dataset Dataset::WithOptions(DatasetOptions options) const {
  Attrs attrs;
  if (options.deterministic.has_value()) attrs["deterministic"] = *options.deterministic;
  if (options.threads.has_value()) attrs["threads"] = *options.threads;
  return DatasetOf(MakeNode("Options", std::move(attrs), {node_}));
}

}  // namespace penstock
