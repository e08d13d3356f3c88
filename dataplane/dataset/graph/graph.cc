// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/graph/graph.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "dataplane/dataset/graph/fingerprint.h"
#include "dataplane/dataset/graph/registry.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// True if a registered source or transform may have `value` as a param.
bool IsParam(const Attr& value) {
  return !std::holds_alternative<Spec>(value) && !std::holds_alternative<DType>(value) &&
         !std::holds_alternative<std::shared_ptr<const FunctionDef>>(value) &&
         !std::holds_alternative<ConstantElement>(value);
}

// Checks that every attribute that the kind requires is present and has its type, and that there
// are no further attributes.
absl::Status CheckNodeAttrs(const NodeKind& kind, const Attrs& attrs) {
  size_t known = 0;
  for (const AttrRule& rule : kind.attrs) {
    auto it = attrs.find(rule.name);
    if (it == attrs.end()) {
      if (!rule.required) continue;
      return absl::InvalidArgumentError(absl::StrCat("the attribute ", rule.name, " is missing"));
    }
    if (it->second.index() != static_cast<size_t>(rule.type)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the attribute ", rule.name, " is not of type ", std::string(Name(rule.type))));
    }
    ++known;
  }
  if (known == attrs.size()) return absl::OkStatus();
  for (const auto& [name, value] : attrs) {
    bool found = kind.takes_params && absl::StartsWith(name, kParamPrefix) && IsParam(value);
    for (const AttrRule& rule : kind.attrs) found = found || rule.name == name;
    if (!found)
      return absl::InvalidArgumentError(absl::StrCat("has no attribute ", absl::CHexEscape(name)));
  }
  return absl::OkStatus();
}

absl::Status CheckInputCount(const NodeKind& kind, size_t count) {
  if (count >= static_cast<size_t>(kind.min_inputs) &&
      count <= static_cast<size_t>(kind.max_inputs))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("takes ", kind.min_inputs,
                   kind.min_inputs == kind.max_inputs ? "" : absl::StrCat(" to ", kind.max_inputs),
                   " inputs, not ", count));
}

// Sets size, providers and arguments, which depend only on inputs and kind.
void CountParts(const NodeKind* kind, Dataset::Node& node) {
  const size_t bodies = kind == nullptr ? 0 : kind->bodies;
  const size_t undivided = kind == nullptr ? 0 : kind->undivided;
  const bool elsewhere = kind != nullptr && kind->elsewhere;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Dataset::Node& input = *node.inputs[i];
    node.size += input.size;
    if (elsewhere || i + bodies >= node.inputs.size()) continue;
    if (i + bodies + undivided < node.inputs.size()) node.providers += input.providers;
    node.arguments.insert(node.arguments.end(), input.arguments.begin(), input.arguments.end());
    node.open.insert(node.open.end(), input.open.begin(), input.open.end());
  }
  if (kind != nullptr && kind->plan != nullptr) node.providers = 1;
}

absl::Status CheckAndInfer(const NodeKind* kind, Dataset::Node& node) {
  if (kind == nullptr)
    return absl::InvalidArgumentError("this program has no operation of this name");
  RETURN_IF_ERROR(CheckInputCount(*kind, node.inputs.size()));
  RETURN_IF_ERROR(CheckNodeAttrs(*kind, node.attrs));
  ASSIGN_OR_RETURN(Inferred inferred, kind->infer(node.attrs, node.inputs));
  node.spec = std::move(inferred.spec);
  node.cardinality = inferred.cardinality;
  if (kind->takes_argument) node.arguments.push_back(Get<Spec>(node.attrs, "argument"));
  return absl::OkStatus();
}

absl::Status WithName(const Dataset::Node& node, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(NodeName(node, node.size - 1), ": ", status.message()));
}

// InvalidArgument for a tree that is too large, whose inputs are then dropped. A dataset that is
// joined with itself again and again has more nodes than a program can walk over.
absl::Status CheckNodeCount(Dataset::Node& node) {
  if (node.size <= kMaxNodes) return absl::OkStatus();
  node.inputs.clear();
  node.size = 1;
  node.providers = 0;
  node.arguments.clear();
  node.open.clear();
  return absl::InvalidArgumentError(
      absl::StrCat(node.op, ": the dataset has more than ", kMaxNodes, " nodes"));
}

absl::Status FirstMistake(const std::vector<NodePtr>& inputs) {
  for (const NodePtr& input : inputs) RETURN_IF_ERROR(input->status);
  return absl::OkStatus();
}

}  // namespace

NodePtr MakeNode(std::string op, Attrs attrs, std::vector<NodePtr> inputs, std::vector<Expr> open) {
  auto node = std::make_shared<Dataset::Node>();
  const NodeKind* kind = FindNodeKind(op);
  node->op = std::move(op);
  node->attrs = std::move(attrs);
  node->inputs = std::move(inputs);
  node->version = kind == nullptr ? 0 : kind->version;
  node->status = FirstMistake(node->inputs);
  CountParts(kind, *node);
  node->status.Update(CheckNodeCount(*node));
  if (!node->status.ok()) return node;
  for (Expr& argument : open) {
    if (!argument.status().ok()) {
      node->status = WithName(*node, argument.status());
      return node;
    }
    node->open.push_back(std::move(argument));
  }
  node->status = CheckAndInfer(kind, *node);
  if (!node->status.ok()) {
    node->status = WithName(*node, node->status);
    return node;
  }
  node->fingerprint =
      FingerprintOf(node->op, node->version, Identifying(*kind, node->attrs), node->inputs);
  return node;
}

NodePtr FailedNode(std::string op, std::vector<NodePtr> inputs, absl::Status status) {
  auto node = std::make_shared<Dataset::Node>();
  node->op = std::move(op);
  node->inputs = std::move(inputs);
  CountParts(FindNodeKind(node->op), *node);
  node->status = FirstMistake(node->inputs);
  node->status.Update(CheckNodeCount(*node));
  if (node->status.ok()) node->status = WithName(*node, status);
  return node;
}

absl::Status CheckStandsAlone(const Dataset& dataset) {
  RETURN_IF_ERROR(dataset.status());
  if (NodeOf(dataset)->arguments.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "a dataset made of values of an element can be read only inside the function given to "
      "FlatMap or Interleave");
}

std::string NodeName(const Dataset::Node& node, int number) {
  return absl::StrCat(node.op, "#", number);
}

}  // namespace penstock
