// SPDX-License-Identifier: Apache-2.0
// Shows a dataset as a tree for people: attributes and specs, how each function runs, which nodes
// work per partition, and the cost of each node.
#include "penstock/explain.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/expr/image_chain.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/expr/python_host.h"
#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/graph/registry.h"
#include "dataplane/dataset/transforms/batch/map_batch.h"
#include "dataplane/dataset/transforms/batch/map_over_rows.h"

namespace penstock {
namespace {

struct AttrText {
  std::string operator()(int64_t value) const { return absl::StrCat(value); }
  std::string operator()(double value) const { return absl::StrCat(value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(DType value) const { return std::string(Name(value)); }
  std::string operator()(const Spec& value) const { return value.ToString(); }
  std::string operator()(const std::string& value) const {
    return absl::StrCat("\"", absl::CHexEscape(value), "\"");
  }
  template <class T>
  std::string operator()(const std::vector<T>& values) const {
    constexpr size_t kShown = 4;
    std::vector<std::string> texts;
    for (size_t i = 0; i < std::min(values.size(), kShown); ++i)
      texts.push_back((*this)(values[i]));
    if (values.size() > kShown) texts.push_back(absl::StrCat("… ", values.size(), " in all"));
    return absl::StrCat("[", absl::StrJoin(texts, ", "), "]");
  }
  std::string operator()(const std::shared_ptr<const FunctionDef>& function) const {
    return absl::StrCat(
        "{",
        absl::StrJoin(function->ops, " ",
                      [](std::string* out, const OpDef& op) { absl::StrAppend(out, op.op); }),
        "}");
  }
  std::string operator()(const ConstantElement& element) const {
    return element->spec().ToString();
  }
};

std::string NamedAttrText(const std::string& name, const Attr& value) {
  const bool open = name == "num_parallel_calls" || name == "buffer_size";
  const auto* number = std::get_if<int64_t>(&value);
  if (open && number != nullptr && *number == kAutotune) return "auto";
  return std::visit(AttrText{}, value);
}

// True for attributes that are not listed after the node's name: attributes that only programs
// need, and all attributes of a kind that has many, most of them with default values. For such a
// kind, the details show what a reader needs.
bool IsInDetails(const Dataset::Node& node, const std::string& attr) {
  const NodeKind* kind = FindNodeKind(node.op);
  if (kind != nullptr && kind->elsewhere && kind->explain_details != nullptr) return true;
  return node.attrs.contains("pickle") &&
         (attr == "pickle" || attr == "call" || attr == "version" || attr == "splits");
}

std::string CardinalityText(Cardinality cardinality) {
  if (cardinality == kInfinite) return "infinite";
  if (cardinality == kUnknown) return "unknown";
  return absl::StrCat(cardinality);
}

// True for nodes that count, group, order or keep elements. If the data is divided, they do so for
// each partition separately.
bool WorksPerPartition(const std::string& op) {
  static const auto* const ops = new std::set<std::string, std::less<>>{"Batch",
                                                                        "BucketBySequenceLength",
                                                                        "Cache",
                                                                        "ChooseFromDatasets",
                                                                        "Enumerate",
                                                                        "GroupByWindow",
                                                                        "Pack",
                                                                        "PaddedBatch",
                                                                        "RaggedBatch",
                                                                        "Rebatch",
                                                                        "RegisteredTransform",
                                                                        "Reduce",
                                                                        "Rounds",
                                                                        "SampleFromDatasets",
                                                                        "Scan",
                                                                        "Shard",
                                                                        "Shuffle",
                                                                        "Skip",
                                                                        "Take",
                                                                        "TakeWhile",
                                                                        "Window",
                                                                        "Zip"};
  return ops->contains(op);
}

// --- Functions -------------------------------------------------------------------

// Describes how the node that uses this node stores the results of this node's function.
std::string WhereTo(const Dataset::Node& node, const Dataset::Node* user, int user_number) {
  if (node.op != "Map" || user == nullptr) return "";
  const bool in_place =
      (user->op == "Batch" || user->op == "PaddedBatch" || user->op == "RaggedBatch") &&
      IsMapBatch(*user);
  if (!in_place) return "";
  return absl::StrCat(GoesOverRows(*user) ? ", over many rows at once, into the block of "
                                          : ", each result into its row of the block of ",
                      NodeName(*user, user_number));
}

absl::string_view DeterminismOf(const OpDef& call) {
  return Get<bool>(call.attrs, "deterministic") ? "" : " (not deterministic)";
}

std::string WayOfExpression(const FunctionDef& function) {
  std::vector<std::string> ways;
  for (const OpDef& op : function.ops) {
    if (op.op == kPythonCall)
      ways.push_back(absl::StrCat(WayOf(PythonFunctionOf(op.attrs)), DeterminismOf(op)));
    if (op.op != "Call") continue;
    ways.push_back(absl::StrCat("registered '", Get<std::string>(op.attrs, "function"),
                                "' version ", Get<int64_t>(op.attrs, "version"),
                                DeterminismOf(op)));
  }
  if (ways.size() < function.ops.size() || ways.empty()) ways.insert(ways.begin(), "traced");
  std::string way = absl::StrJoin(ways, " and ");
  for (const ImageChain& chain : FindImageChains(function)) {
    absl::StrAppend(&way, ", ",
                    absl::StrJoin(chain, " + ",
                                  [&](std::string* out, size_t place) {
                                    absl::StrAppend(out, function.ops[place].op);
                                  }),
                    " as one step");
  }
  return way;
}

// --- The tree ----------------------------------------------------------------------

class Tree {
 public:
  explicit Tree(const IteratorStats& stats) {
    for (const NodeStats& node : stats.nodes) stats_[node.node] = &node;
  }

  std::string Of(const Dataset::Node& root) {
    Append(root, root.size - 1, nullptr, 0, 0);
    return std::move(out_);
  }

 private:
  void Append(const Dataset::Node& node, int number, const Dataset::Node* user, int user_number,
              int depth) {
    const std::string name = NodeName(node, number);
    absl::StrAppend(&out_, std::string(2 * depth, ' '), name);
    for (const auto& [attr, value] : node.attrs)
      if (!IsInDetails(node, attr))
        absl::StrAppend(&out_, " ", attr, "=", NamedAttrText(attr, value));
    if (!node.status.ok()) {
      absl::StrAppend(&out_, " -> ", node.status.ToString(), "\n");
    } else {
      absl::StrAppend(&out_, " -> ", node.spec.ToString(), ", ", CardinalityText(node.cardinality),
                      "\n");
      AppendDetails(node, name, WhereTo(node, user, user_number), depth);
    }
    int input_number = number - node.size;
    for (const NodePtr& input : node.inputs) {
      input_number += input->size;
      Append(*input, input_number, &node, number, depth + 1);
    }
  }

  void AppendDetails(const Dataset::Node& node, const std::string& name,
                     const std::string& where_to, int depth) {
    for (const auto& [attr, value] : node.attrs)
      if (const auto* function = std::get_if<std::shared_ptr<const FunctionDef>>(&value))
        AppendDetail(absl::StrCat(attr, ": ", WayOfExpression(**function), where_to), depth);
    const NodeKind* kind = FindNodeKind(node.op);
    if (kind != nullptr && kind->explain_details != nullptr) {
      const std::string details = kind->explain_details(node);
      if (!details.empty()) AppendDetail(details, depth);
    }
    if (WorksPerPartition(node.op)) AppendDetail("works per partition", depth);
    if (const auto stats = stats_.find(name); stats != stats_.end())
      AppendDetail(CostOf(*stats->second), depth);
  }

  void AppendDetail(std::string_view detail, int depth) {
    absl::StrAppend(&out_, std::string(2 * depth, ' '), "  | ", std::string(detail), "\n");
  }

  static std::string CostOf(const NodeStats& stats) {
    std::string cost = absl::StrFormat(
        "%d elements, %d bytes, busy %s, waited for %s", stats.elements, stats.bytes,
        absl::FormatDuration(absl::Trunc(stats.busy, absl::Microseconds(1))),
        absl::FormatDuration(absl::Trunc(stats.waiting, absl::Microseconds(1))));
    if (stats.parallelism > 0) absl::StrAppend(&cost, ", ", stats.parallelism, " calls at a time");
    if (stats.ahead > 0) absl::StrAppend(&cost, ", ", stats.ahead, " ahead");
    return cost;
  }

  std::map<std::string, const NodeStats*, std::less<>> stats_;  // by node
  std::string out_;
};

}  // namespace

std::string Dataset::Explain() const {
  return Tree({}).Of(*node_);
}

std::string Explain(const Dataset& dataset, const IteratorStats& stats) {
  return Tree(stats).Of(*NodeOf(dataset));
}

}  // namespace penstock
