// SPDX-License-Identifier: Apache-2.0
// The interpreter: runs operations in order and keeps a view of each value in a table. Results are
// made in the sink's memory, so that a batch's row is written only once.
#include "dataplane/dataset/expr/bound_function.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/expr/image_chain.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/expr/op_run.h"
#include "dataplane/dataset/expr/sliced_rows.h"
#include "dataplane/memory/arena.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

struct Step {
  Kernel kernel;
  std::vector<uint32_t> inputs;
  std::vector<OutputPlace> outputs;
  std::string name;              // for messages
  std::optional<uint32_t> file;  // the value with the name of the file that the input was read from
};

// Result number `result` is value number `value`. Results that are written in place have no entry.
struct Handed {
  size_t result;
  uint32_t value;
};

// True if `value` fits the promised `spec`.
bool FitsSpec(const Tensor& value, const TensorSpec& spec) {
  if (!value.present()) return spec.optional;
  if (value.dtype() != spec.dtype || value.kind() != spec.kind) return false;
  if (spec.kind == TensorSpec::Kind::kDense) return spec.shape.Admits(value.dims());
  if (spec.kind != TensorSpec::Kind::kRagged) return true;
  if (value.ragged_rank() != spec.ragged_rank) return false;
  if (!spec.shape.has_rank()) return true;
  // After the ragged dimensions, the flat values have the dims of the spec.
  const auto promised = spec.shape.dims();
  const auto dims = value.dims();
  if (promised.size() != dims.size() + spec.ragged_rank) return false;
  for (size_t i = 1; i < dims.size(); ++i) {
    const int64_t dim = promised[i + spec.ragged_rank];
    if (dim != kUnknownDim && dim != dims[i]) return false;
  }
  return true;
}

class Interpreter final : public BoundFunction {
 public:
  Interpreter(std::shared_ptr<const FunctionDef> def, OpMeans means)
      : def_(std::move(def)), means_(std::move(means)) {}

  absl::Status Prepare() {
    const auto inputs = def_->input.leaves();
    specs_.assign(inputs.begin(), inputs.end());
    for (const OpDef& op : def_->ops)
      specs_.insert(specs_.end(), op.outputs.begin(), op.outputs.end());
    results_of_.resize(specs_.size());
    for (size_t i = 0; i < def_->results.size(); ++i) {
      const uint32_t value = def_->results[i];
      // The first result that is this value is written in place. Later results that are the same
      // value, and results that are inputs, are copied.
      if (value >= inputs.size() && results_of_[value].empty()) {
        results_of_[value].push_back(static_cast<uint32_t>(i));
      } else {
        handed_.push_back({i, value});
      }
    }
    // A chain runs where its last operation would run.
    std::map<size_t, const ImageChain*> ends;
    std::set<size_t> inside;
    const std::vector<ImageChain> chains = FindImageChains(*def_);
    for (const ImageChain& chain : chains) {
      ends[chain.back()] = &chain;
      inside.insert(chain.begin(), chain.end() - 1);
    }
    // All slices of one value run where the first one would run.
    std::map<size_t, const SlicedRows*> firsts;
    const std::vector<SlicedRows> sliced = FindSlicedRows(*def_);
    for (const SlicedRows& slices : sliced) {
      firsts[slices.front()] = &slices;
      inside.insert(slices.begin() + 1, slices.end());
    }
    std::vector<uint32_t> first_outputs;  // for each operation
    auto next = static_cast<uint32_t>(inputs.size());
    for (const OpDef& op : def_->ops) {
      first_outputs.push_back(next);
      next += static_cast<uint32_t>(op.outputs.size());
    }
    for (size_t i = 0; i < def_->ops.size(); ++i) {
      if (const auto end = ends.find(i); end != ends.end()) {
        AddChain(*end->second, first_outputs[i]);
      } else if (const auto first = firsts.find(i); first != firsts.end()) {
        AddSlices(*first->second, first_outputs);
      } else if (!inside.contains(i)) {
        RETURN_IF_ERROR(AddStep(def_->ops[i], first_outputs[i]));
      }
    }
    return absl::OkStatus();
  }

  const FunctionDef& def() const override { return *def_; }

  absl::Status Run(absl::Span<const Tensor> inputs, const RandomKey& random,
                   ResultSink& sink) const override {
    RETURN_IF_ERROR(CheckInputs(inputs));
    Arena& arena = Arena::OfThisThread();
    ArenaScope scope(arena);
    Tensor* values = arena.AllocateArray<Tensor>(specs_.size());
    std::uninitialized_copy(inputs.begin(), inputs.end(), values);
    std::uninitialized_value_construct(values + inputs.size(), values + specs_.size());
    for (const Step& step : steps_) {
      OpRun run(step.inputs, step.outputs, values, arena, sink, random);
      if (absl::Status status = step.kernel(run); !status.ok()) [[unlikely]]
        return Failure(step, values, status);
    }
    for (const Handed& handed : handed_)
      RETURN_IF_ERROR(sink.Copy(handed.result, values[handed.value]));
    return absl::OkStatus();
  }

 private:
  static absl::Status Failure(const Step& step, const Tensor* values, const absl::Status& status) {
    std::string message = absl::StrCat(step.name, ": ", status.message());
    if (step.file) {
      const std::string_view file = values[*step.file].string();
      absl::StrAppend(&message, "; file '", absl::string_view(file.data(), file.size()), "'");
    }
    return absl::Status(status.code(), message);
  }

  absl::Status AddStep(const OpDef& op, uint32_t first_output) {
    std::vector<TensorSpec> inputs;
    for (uint32_t input : op.inputs) inputs.push_back(specs_[input]);
    const OpRow* row = FindOp(op.op);
    if (row == nullptr) return absl::NotFoundError(absl::StrCat("unknown operation '", op.op, "'"));
    Step step;
    step.name = op.op;
    step.inputs = op.inputs;
    absl::StatusOr<Kernel> kernel =
        row->make_with != nullptr ? row->make_with(op, means_) : row->make(op, inputs);
    if (!kernel.ok())
      return absl::Status(kernel.status().code(),
                          absl::StrCat(op.op, ": ", kernel.status().message()));
    step.kernel = *std::move(kernel);
    AddOutputs(step, op, first_output);
    steps_.push_back(std::move(step));
    return absl::OkStatus();
  }

  void AddChain(const ImageChain& chain, uint32_t first_output) {
    Step step;
    for (size_t place : chain) {
      if (!step.name.empty()) step.name += "+";
      step.name += def_->ops[place].op;
    }
    step.inputs = def_->ops[chain.front()].inputs;
    step.kernel = MakeImageChain(*def_, chain);
    AddOutputs(step, def_->ops[chain.back()], first_output);
    steps_.push_back(std::move(step));
  }

  void AddSlices(const SlicedRows& slices, const std::vector<uint32_t>& first_outputs) {
    Step step;
    step.name = def_->ops[slices.front()].op;
    step.inputs = def_->ops[slices.front()].inputs;
    step.kernel = MakeSlicedRows(*def_, slices);
    for (size_t slice : slices) AddOutputs(step, def_->ops[slice], first_outputs[slice]);
    steps_.push_back(std::move(step));
  }

  void AddOutputs(Step& step, const OpDef& op, uint32_t first_output) {
    if (!step.inputs.empty()) {
      const auto file = file_of_.find(step.inputs[0]);
      if (file != file_of_.end()) step.file = file->second;
    }
    if (op.op == kReadFile) file_of_[first_output] = op.inputs[0];
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      const uint32_t value = first_output + static_cast<uint32_t>(i);
      step.outputs.push_back({.value = value,
                              .dtype = op.outputs[i].dtype,
                              .spec = &specs_[value],
                              .results = results_of_[value]});
    }
  }

  absl::Status CheckInputs(absl::Span<const Tensor> inputs) const {
    const auto specs = def_->input.leaves();
    if (inputs.size() != specs.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a function of ", specs.size(), " leaves was given ", inputs.size(), " values"));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!FitsSpec(inputs[i], specs[i])) [[unlikely]] {
        return absl::InvalidArgumentError(
            absl::StrCat("leaf '", def_->input.LeafName(i), "' is ", inputs[i].ToString(0),
                         "; the function takes ", specs[i].ToString()));
      }
    }
    return absl::OkStatus();
  }

  std::shared_ptr<const FunctionDef> def_;
  OpMeans means_;
  std::vector<TensorSpec> specs_;  // for all values
  std::vector<std::vector<uint32_t>> results_of_;
  std::vector<Handed> handed_;
  std::vector<Step> steps_;
  std::map<uint32_t, uint32_t> file_of_;  // from the value of a file's contents to that of its name
};

}  // namespace

absl::StatusOr<std::shared_ptr<const BoundFunction>> BindWith(
    std::shared_ptr<const FunctionDef> def, OpMeans means) {
  auto function = std::make_shared<Interpreter>(std::move(def), std::move(means));
  RETURN_IF_ERROR(function->Prepare());
  return function;
}

absl::StatusOr<std::shared_ptr<const BoundFunction>> BoundFunction::Bind(
    std::shared_ptr<const FunctionDef> def) {
  return BindWith(std::move(def), OpMeans());
}

}  // namespace penstock
