// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/expr/over_rows.h"

#include <algorithm>
#include <map>
#include <utility>

#include "dataplane/dataset/expr/op_registry.h"

namespace penstock {
namespace {

// The loop over a larger value is long enough by itself; joining values would be a needless copy.
constexpr int64_t kMostRowBytes = 512;

bool IsSmall(const TensorSpec& spec) {
  if (!spec.IsStatic()) return false;
  const int64_t count = spec.shape.ElementCount();
  return count > 0 && count <= kMostRowBytes / static_cast<int64_t>(SizeOf(spec.dtype));
}

TensorSpec WithRows(const TensorSpec& spec) {
  return Dense(spec.dtype, spec.shape.WithLeading(kUnknownDim));
}

// Rewrites a function. Each value of the old function becomes a value over rows, or stays as it is
// if it uses no input.
class Rewriter {
 public:
  explicit Rewriter(const FunctionDef& def) : from_(def) {}

  std::optional<FunctionOverRows> Rewrite() {
    if (!MapInputs()) return std::nullopt;
    for (const OpDef& op : from_.ops)
      if (!MapOp(op)) return std::nullopt;
    std::vector<TensorSpec> outputs;
    for (uint32_t result : from_.results) {
      const Value& value = values_[result];
      if (!value.rows || !IsSmall(value.spec)) return std::nullopt;
      to_->results.push_back(value.number);
      outputs.push_back(WithRows(value.spec));
    }
    to_->output = from_.output.WithLeaves(outputs);
    return FunctionOverRows{std::move(to_), std::move(leaves_)};
  }

 private:
  struct Value {
    uint32_t number = 0;  // in the new function
    bool rows = false;    // has the dimension in front
    TensorSpec spec;      // of one row
  };

  // The leaves that are used become the new function's inputs.
  bool MapInputs() {
    const auto leaves = from_.input.leaves();
    std::vector<bool> used(leaves.size(), false);
    const auto use = [&](uint32_t value) {
      if (value < leaves.size()) used[value] = true;
    };
    for (const OpDef& op : from_.ops) std::for_each(op.inputs.begin(), op.inputs.end(), use);
    std::for_each(from_.results.begin(), from_.results.end(), use);
    std::vector<Spec> inputs;
    for (size_t i = 0; i < leaves.size(); ++i) {
      values_.push_back({.number = next_, .rows = true, .spec = leaves[i]});
      if (!used[i]) continue;
      if (!IsSmall(leaves[i])) return false;
      inputs.emplace_back(WithRows(leaves[i]));
      leaves_.push_back(i);
      ++next_;
    }
    to_->input = Spec::Tuple(std::move(inputs));
    return !leaves_.empty();
  }

  bool MapOp(const OpDef& op) {
    const OpRow* row = FindOp(op.op);
    if (row == nullptr || row->random) return false;
    const bool rows = std::any_of(op.inputs.begin(), op.inputs.end(),
                                  [&](uint32_t input) { return values_[input].rows; });
    if (!rows) {
      OpDef same = op;
      for (uint32_t& input : same.inputs) input = values_[input].number;
      for (const TensorSpec& output : op.outputs)
        values_.push_back({.number = next_++, .rows = false, .spec = output});
      to_->ops.push_back(std::move(same));
      return true;
    }
    if (op.outputs.size() != 1 || !IsSmall(op.outputs[0])) return false;
    switch (row->over_rows) {
      case OverRows::kNever:
        return false;
      case OverRows::kElementwise:
        return MapElementwise(*row, op);
      case OverRows::kTrailing:
        AddOp(op.op, op.attrs, {values_[op.inputs[0]].number}, op.outputs[0]);
        return true;
      case OverRows::kView:
        AddReshape(values_[op.inputs[0]].number, op.outputs[0], op.outputs[0].shape.rank());
        return true;
    }
    return false;
  }

  // Shapes are aligned at their ends: a row with fewer dims than the result needs dims of 1 after
  // the new dimension.
  bool MapElementwise(const OpRow& row, const OpDef& op) {
    std::vector<uint32_t> inputs;
    for (uint32_t input : op.inputs) {
      const Value value = values_[input];
      uint32_t number = value.number;
      if (value.rows && value.spec.shape.rank() < op.outputs[0].shape.rank()) {
        number = AddReshape(number, value.spec, op.outputs[0].shape.rank());
        values_.pop_back();  // not a value of the old function
      }
      inputs.push_back(number);
    }
    AddOp(std::string(row.name), op.attrs, std::move(inputs), op.outputs[0]);
    return true;
  }

  // Adds an operation that gives the values of `input` the dims [rows, 1 …, dims of `spec`], with
  // `rank` dims after the rows.
  uint32_t AddReshape(uint32_t input, const TensorSpec& spec, int rank) {
    std::vector<int64_t> dims = {-1};
    dims.resize(1 + rank - spec.shape.rank(), 1);
    dims.insert(dims.end(), spec.shape.dims().begin(), spec.shape.dims().end());
    const TensorSpec row = Dense(spec.dtype, Shape({dims.begin() + 1, dims.end()}));
    return AddOp("Reshape", {{"dims", std::move(dims)}}, {input}, row);
  }

  uint32_t AddOp(std::string op, Attrs attrs, std::vector<uint32_t> inputs, const TensorSpec& row) {
    to_->ops.push_back({.op = std::move(op),
                        .attrs = std::move(attrs),
                        .inputs = std::move(inputs),
                        .outputs = {WithRows(row)}});
    values_.push_back({.number = next_, .rows = true, .spec = row});
    return next_++;
  }

  const FunctionDef& from_;
  std::shared_ptr<FunctionDef> to_ = std::make_shared<FunctionDef>();
  std::vector<Value> values_;  // of the old function
  std::vector<size_t> leaves_;
  uint32_t next_ = 0;
};

}  // namespace

std::optional<FunctionOverRows> OverRowsOf(const FunctionDef& def) {
  auto result = Rewriter(def).Rewrite();
  // Only a bug could make inference reject the function; the old function is then used.
  if (result.has_value() && !CheckFunction(*result->def).ok()) return std::nullopt;
  return result;
}

}  // namespace penstock
