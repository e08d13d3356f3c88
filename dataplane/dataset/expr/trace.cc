// SPDX-License-Identifier: Apache-2.0
// Turns Exprs into a FunctionDef, and checks an untrusted FunctionDef. Operations are in post-order
// of a depth-first walk from the results. The walk does not visit operations that no result needs,
// and equal operations are written only once.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/expr/node.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

void AppendPart(std::string& key, absl::string_view part) {
  absl::StrAppend(&key, part.size(), ":", part);
}

struct AppendAttr {
  std::string& key;
  void operator()(int64_t value) const { absl::StrAppend(&key, value, ";"); }
  void operator()(double value) const {
    key.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void operator()(bool value) const { absl::StrAppend(&key, value ? "t" : "f"); }
  void operator()(const std::string& value) const { AppendPart(key, value); }
  void operator()(DType value) const { absl::StrAppend(&key, static_cast<int>(value), ";"); }
  template <class T>
  void operator()(const std::vector<T>& values) const {
    absl::StrAppend(&key, values.size(), "[");
    for (const T& value : values) (*this)(value);
  }
  void operator()(const Spec& spec) const { AppendPart(key, spec.ToString()); }
  template <class T>
  void operator()(const std::shared_ptr<T>& value) const {
    absl::StrAppend(&key, reinterpret_cast<uintptr_t>(value.get()), ";");
  }
};

// Returns a key that is equal for operations that compute the same results.
std::string OpKey(const OpDef& def) {
  std::string key = def.op;
  for (uint32_t input : def.inputs) absl::StrAppend(&key, "|", input);
  for (const auto& [name, attr] : def.attrs) {
    AppendPart(key, name);
    absl::StrAppend(&key, attr.index(), "=");
    std::visit(AppendAttr{key}, attr);
  }
  return key;
}

// Returns whether a registered or Python function is declared deterministic; true for all other
// operations.
bool IsDeterministic(const OpDef& def) {
  const bool says = def.op == "Call" || def.op == kPythonCall;
  return !says || Get<bool>(def.attrs, "deterministic");
}

class Tracer {
 public:
  Tracer(const TracedElement* element, FunctionDef& def) : element_(element), def_(def) {
    next_value_ = static_cast<uint32_t>(def.input.leaves().size());
  }

  absl::StatusOr<uint32_t> ValueOf(const Expr& leaf) {
    if (const Application* maker = NodeOf(leaf)->maker.get(); maker != nullptr) {
      RETURN_IF_ERROR(Number(maker));
    }
    return Numbered(leaf);
  }

 private:
  // Numbers an operation and all operations that it depends on, each operation after those that it
  // uses. Does not recurse, because a chain may have thousands of operations.
  absl::Status Number(const Application* last) {
    std::vector<const Application*> stack = {last};
    while (!stack.empty()) {
      const Application* application = stack.back();
      const size_t before = stack.size();
      if (!by_identity_.contains(application)) {
        for (size_t i = application->inputs.size(); i-- > 0;) {
          const Application* maker = NodeOf(application->inputs[i])->maker.get();
          if (maker != nullptr && !by_identity_.contains(maker)) stack.push_back(maker);
        }
        if (stack.size() > before) continue;
        RETURN_IF_ERROR(Add(application));
      }
      stack.pop_back();
    }
    return absl::OkStatus();
  }

  // Returns the leaf's number. REQUIRES: its maker has a number.
  absl::StatusOr<uint32_t> Numbered(const Expr& leaf) const {
    const Expr::Node& node = *NodeOf(leaf);
    if (node.maker != nullptr) return by_identity_.at(node.maker.get()) + node.number;
    if (node.element.get() == element_) return node.number;
    return absl::InvalidArgumentError(
        "a function uses a value of another function's element; pass the value on as a part "
        "of its own element");
  }

  absl::Status Add(const Application* application) {
    OpDef def{.op = std::string(application->op),
              .attrs = application->attrs,
              .inputs = {},
              .outputs = application->outputs};
    for (const Expr& input : application->inputs) {
      ASSIGN_OR_RETURN(const uint32_t value, Numbered(input));
      def.inputs.push_back(value);
    }
    if (application->random) def.attrs["random"] = randoms_++;
    const bool shareable = !application->random;
    auto [place, is_new] =
        by_key_.try_emplace(shareable ? OpKey(def) : absl::StrCat("#", next_value_), next_value_);
    if (is_new) {
      next_value_ += static_cast<uint32_t>(def.outputs.size());
      def_.deterministic = def_.deterministic && IsDeterministic(def);
      def_.ops.push_back(std::move(def));
    }
    by_identity_[application] = place->second;
    return absl::OkStatus();
  }

  const TracedElement* element_;
  FunctionDef& def_;
  uint32_t next_value_;
  int64_t randoms_ = 0;
  std::map<const Application*, uint32_t> by_identity_;
  std::map<std::string, uint32_t> by_key_;
};

absl::Status CheckOp(const OpDef& def, std::vector<TensorSpec>& values) {
  const OpRow* row = FindOp(def.op);
  if (row == nullptr)
    return absl::NotFoundError(absl::StrCat("unknown operation '", def.op, "' in this version"));
  std::vector<TensorSpec> inputs;
  for (uint32_t input : def.inputs) {
    if (input >= values.size()) {
      return absl::InvalidArgumentError(absl::StrCat(def.op, ": uses value ", input, ", but only ",
                                                     values.size(), " come before it"));
    }
    inputs.push_back(values[input]);
  }
  ASSIGN_OR_RETURN(const std::vector<TensorSpec> outputs, InferOp(*row, def.attrs, inputs));
  if (outputs != def.outputs) {
    return absl::InvalidArgumentError(
        absl::StrCat(def.op, ": the stored outputs do not match its inputs"));
  }
  values.insert(values.end(), outputs.begin(), outputs.end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const FunctionDef>> TraceTo(const Expr& input, const Expr& result) {
  RETURN_IF_ERROR(input.status());
  RETURN_IF_ERROR(result.status());
  auto def = std::make_shared<FunctionDef>();
  def->input = input.spec();
  def->output = result.spec();
  std::vector<Expr> leaves;
  AppendLeaves(result, leaves);
  Tracer tracer(NodeOf(input)->element.get(), *def);
  for (const Expr& leaf : leaves) {
    ASSIGN_OR_RETURN(const uint32_t value, tracer.ValueOf(leaf));
    def->results.push_back(value);
  }
  return def;
}

absl::StatusOr<std::shared_ptr<const FunctionDef>> Trace(const MapFunction& fn, const Spec& input) {
  const Expr element = SymbolicInput(input);
  return TraceTo(element, fn(element));
}

absl::Status CheckFunction(const FunctionDef& function) {
  std::vector<TensorSpec> values(function.input.leaves().begin(), function.input.leaves().end());
  for (size_t i = 0; i < function.ops.size(); ++i)
    RETURN_IF_ERROR(
        Annotate(CheckOp(function.ops[i], values), "operation ", i, " of the function"));
  const bool deterministic = std::all_of(function.ops.begin(), function.ops.end(), IsDeterministic);
  if (function.deterministic != deterministic)
    return absl::InvalidArgumentError(
        "a function's deterministic flag does not match its operations");
  const absl::Span<const TensorSpec> outputs = function.output.leaves();
  if (function.results.size() != outputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat("a function has ", function.results.size(),
                                                   " results, but its spec has ", outputs.size(),
                                                   " leaves"));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (function.results[i] >= values.size())
      return absl::InvalidArgumentError(absl::StrCat(
          "result ", i, " of a function is value ", function.results[i], ", which does not exist"));
    if (values[function.results[i]] != outputs[i]) {
      return absl::InvalidArgumentError(absl::StrCat("result ", i, " of a function is ",
                                                     values[function.results[i]].ToString(),
                                                     ", but its spec has ", outputs[i].ToString()));
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock
