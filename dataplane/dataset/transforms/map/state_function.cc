// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/map/state_function.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/element_sink.h"
#include "dataplane/dataset/transforms/common_spec.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// Returns the part of a function's result that is the new state.
absl::StatusOr<Spec> StateIn(const Spec& result, Gives gives) {
  if (gives == Gives::kState) return result;
  if (result.kind() == Spec::Kind::kTuple && result.size() == 2) return result.member(0);
  return absl::InvalidArgumentError(
      absl::StrCat("the function must return Tuple({new state, output}), not ", result.ToString()));
}

// Sends the first `states` results to the state and the others to the output.
class StateSink final : public ResultSink {
 public:
  StateSink(ElementSink& state, size_t states, ResultSink* output)
      : state_(state), states_(states), output_(output) {}

  absl::StatusOr<absl::Span<std::byte>> Place(size_t i, DType dtype,
                                              absl::Span<const int64_t> dims) override {
    return i < states_ ? state_.Place(i, dtype, dims) : output_->Place(i - states_, dtype, dims);
  }
  absl::Status Copy(size_t i, const Tensor& value) override {
    return i < states_ ? state_.Copy(i, value) : output_->Copy(i - states_, value);
  }

 private:
  ElementSink& state_;
  const size_t states_;
  ResultSink* const output_;
};

}  // namespace

absl::StatusOr<ConstantElement> ConstantState(const Expr& initial_state) {
  const auto traced = TraceTo(SymbolicInput(Spec::Tuple({})), initial_state);
  if (!traced.ok()) {
    return Annotate(traced.status(), "initial_state must be made of constants");
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const BoundFunction> bound, BoundFunction::Bind(*traced));
  ElementSink sink(DefaultPool(), (*traced)->output);
  RETURN_IF_ERROR(bound->Run({}, RandomKey(), sink));
  ASSIGN_OR_RETURN(Element state, std::move(sink).Finish());
  return std::make_shared<const Element>(std::move(state));
}

absl::StatusOr<std::shared_ptr<const FunctionDef>> TraceStateFunction(const StateFunction& fn,
                                                                      const Spec& initial,
                                                                      const Spec& element,
                                                                      Gives gives) {
  Spec state = initial;
  while (true) {
    const Expr input = SymbolicInput(Spec::Tuple({state, element}));
    const Expr result = fn(input[0], input[1]);
    RETURN_IF_ERROR(result.status());
    ASSIGN_OR_RETURN(const Spec next, StateIn(result.spec(), gives));
    if (state.Admits(next).ok()) return TraceTo(input, result);
    ASSIGN_OR_RETURN(Spec wider, CommonSpec(state, next, "the states before and after an element"));
    if (wider == state) return state.Admits(next);
    state = std::move(wider);
  }
}

absl::Status CheckStateFunction(const FunctionDef& function, const Spec& initial,
                                const Spec& element, Gives gives) {
  const Spec& input = function.input;
  if (input.kind() != Spec::Kind::kTuple || input.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("the function must take (state, element), not ", input.ToString()));
  }
  RETURN_IF_ERROR(
      Annotate(input.member(0).Admits(initial), "the function does not accept the state"));
  RETURN_IF_ERROR(
      Annotate(input.member(1).Admits(element), "the function does not accept the elements"));
  ASSIGN_OR_RETURN(const Spec next, StateIn(function.output, gives));
  return Annotate(input.member(0).Admits(next), "the function returns a different state");
}

const Spec& FoldedState::spec() const {
  return function_->def().input.member(0);
}

absl::Status FoldedState::Step(const Element& element, const RandomKey& random, size_t most_bytes,
                               ResultSink* output) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < state().size(); ++i) inputs.push_back(state().tensor(i));
  for (size_t i = 0; i < element.size(); ++i) inputs.push_back(element.tensor(i));
  ElementSink next(pool_, spec());
  StateSink sink(next, spec().leaves().size(), output);
  RETURN_IF_ERROR(function_->Run(inputs, random, sink));
  ASSIGN_OR_RETURN(Element state, std::move(next).Finish());
  if (state.block().size() > most_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("the new state takes ", state.block().size(),
                                                     " bytes; the limit is ", most_bytes));
  }
  state_ = std::move(state);
  return absl::OkStatus();
}

}  // namespace penstock
