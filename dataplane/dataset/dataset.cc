// SPDX-License-Identifier: Apache-2.0
// What one may ask a dataset. Sources and transforms are defined with their
// nodes, iterators in iterator.cc.
#include "penstock/dataset.h"

#include <string>
#include <variant>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "dataplane/dataset/function.h"
#include "dataplane/dataset/graph.h"
#include "dataplane/dataset/registry.h"

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

std::string CardinalityText(Cardinality cardinality) {
  if (cardinality == kInfinite) return "infinite";
  if (cardinality == kUnknown) return "unknown";
  return absl::StrCat(cardinality);
}

void AppendTree(const Dataset::Node& node, int number, int depth, std::string& out) {
  absl::StrAppend(&out, std::string(2 * depth, ' '), NodeName(node, number));
  for (const auto& [name, value] : node.attrs)
    absl::StrAppend(&out, " ", name, "=", std::visit(AttrText{}, value));
  if (node.status.ok()) {
    absl::StrAppend(&out, " -> ", node.spec.ToString(), ", ", CardinalityText(node.cardinality));
    const NodeKind* kind = FindNodeKind(node.op);
    if (kind->remark != nullptr) absl::StrAppend(&out, "; ", kind->remark(node));
    absl::StrAppend(&out, "\n");
  } else {
    absl::StrAppend(&out, " -> ", node.status.ToString(), "\n");
  }
  int input_number = number - node.size;
  for (const NodePtr& input : node.inputs) {
    input_number += input->size;
    AppendTree(*input, input_number, depth + 1, out);
  }
}

}  // namespace

Dataset::Dataset() : Dataset(FromTensors({}, Spec())) {}

const absl::Status& Dataset::status() const {
  return node_->status;
}
const Spec& Dataset::element_spec() const {
  return node_->spec;
}
Cardinality Dataset::cardinality() const {
  return node_->cardinality;
}
uint64_t Dataset::fingerprint() const {
  return node_->fingerprint;
}

std::string Dataset::Explain() const {
  std::string out;
  AppendTree(*node_, node_->size - 1, 0, out);
  return out;
}

Dataset DatasetFunction::operator()(const Expr& element) const {
  return trace_(element);
}

}  // namespace penstock
