// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/engine/static_shard.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/graph/decides_by_value.h"
#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/graph/registry.h"
#include "penstock/sharding.h"

namespace penstock {
namespace {

bool IsShardHint(const Dataset::Node& node) {
  return node.op == "Shard" && Get<int64_t>(node.attrs, "num_shards") == kShardHint;
}

template <class Predicate>
bool AnyNode(const Dataset::Node& root, Predicate predicate) {
  bool any = false;
  VisitNodes(root, [&](const Dataset::Node& node, int) { any = any || predicate(node); });
  return any;
}

// True for a source in a body whose file is named by the element that opens the body, such as
// TFRecordDatasetOf.
bool ReadsFileOfItsElement(const Dataset::Node& node) {
  constexpr std::string_view kOf = "Of";
  std::string_view over_names = node.op;
  if (!over_names.ends_with(kOf)) return false;
  over_names.remove_suffix(kOf.size());
  const NodeKind* kind = FindNodeKind(over_names);
  return kind != nullptr && std::any_of(kind->attrs.begin(), kind->attrs.end(),
                                        [](const AttrRule& rule) { return rule.name == "files"; });
}

// True if a function of `node` reads files whose names come from the elements of the node's input.
bool OpensFiles(const Dataset::Node& node) {
  const auto first_body = node.inputs.end() - FindNodeKind(node.op)->bodies;
  return std::any_of(first_body, node.inputs.end(),
                     [](const NodePtr& body) { return AnyNode(*body, ReadsFileOfItsElement); });
}

// Appends, for each provider of this tree, whether the provider is a FromTensorSlices below a node
// that opens files. The order is that of the providers' numbers.
void AddSlicesOfNames(const Dataset::Node& node, bool opened, std::vector<bool>& to) {
  const NodeKind& kind = *FindNodeKind(node.op);
  if (kind.plan != nullptr) return to.push_back(opened && node.op == "FromTensorSlices");
  if (kind.elsewhere) return;
  const size_t divided = node.inputs.size() - kind.bodies - kind.undivided;
  for (size_t i = 0; i < divided; ++i) {
    AddSlicesOfNames(*node.inputs[i], opened || OpensFiles(node), to);
  }
}

NodePtr WithShard(const NodePtr& node, int64_t shards, int64_t index) {
  std::vector<NodePtr> inputs;
  for (const NodePtr& input : node->inputs) inputs.push_back(WithShard(input, shards, index));
  Attrs attrs = node->attrs;
  if (IsShardHint(*node)) {
    attrs["num_shards"] = shards;
    attrs["index"] = index;
  } else if (inputs == node->inputs) {
    return node;
  }
  return MakeNode(node->op, std::move(attrs), std::move(inputs), node->open);
}

}  // namespace

absl::Status CheckShardable(const Dataset& dataset, ShardingPolicy mode) {
  absl::Status status;
  if (mode == ShardingPolicy::kData) status = CheckDeterministic(*NodeOf(dataset));
  VisitNodes(*NodeOf(dataset), [&](const Dataset::Node& node, int number) {
    if (!IsShardHint(node)) return;
    status.Update(mode == ShardingPolicy::kHint ? CheckDeterministic(*node.inputs[0])
                                                : HintWithoutPolicy(NodeName(node, number)));
  });
  return status;
}

bool HasShardHint(const Dataset& dataset) {
  return AnyNode(*NodeOf(dataset), IsShardHint);
}

Dataset WithShardForHint(const Dataset& dataset, int64_t shards, int64_t index) {
  return DatasetOf(WithShard(NodeOf(dataset), shards, index));
}

bool StandsBehindShardHint(const Dataset::Node& node) {
  if (IsShardHint(node)) return true;
  const auto first_body = node.inputs.end() - FindNodeKind(node.op)->bodies;
  const auto has_hint = [](const NodePtr& input) { return AnyNode(*input, IsShardHint); };
  return std::any_of(node.inputs.begin(), first_body, has_hint) &&
         std::none_of(first_body, node.inputs.end(), has_hint);
}

absl::Status HintWithoutPolicy(const std::string& name) {
  return absl::FailedPreconditionError(
      absl::StrCat(name,
                   ": num_shards is kShardHint, which only processing_mode kHint (the HINT "
                   "policy) replaces with a number; read the dataset in that mode, or give a "
                   "number"));
}

std::vector<bool> SplitsAreFiles(const Dataset& dataset, const SplitPlan& plan) {
  std::vector<bool> are_files;
  AddSlicesOfNames(*NodeOf(dataset), /*opened=*/false, are_files);
  for (size_t p = 0; p < plan.providers.size(); ++p) {
    const SplitProviderPlan& provider = plan.providers[p];
    const auto files = static_cast<int64_t>(provider.files.size());
    if (files > 0 && provider.count <= files) are_files[p] = true;
  }
  return are_files;
}

}  // namespace penstock
