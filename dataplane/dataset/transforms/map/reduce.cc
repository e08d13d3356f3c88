// SPDX-License-Identifier: Apache-2.0
// Dataset::Reduce: folds a whole dataset into one element, in this process.
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/random.h"
#include "dataplane/dataset/engine/interruptible.h"
#include "dataplane/dataset/transforms/map/state_function.h"
#include "include/status_macros.h"
#include "penstock/dataset.h"

namespace penstock {
namespace {

absl::StatusOr<FoldedState> Begin(const Expr& initial_state, const StateFunction& reduce_func,
                                  const Spec& element) {
  ASSIGN_OR_RETURN(ConstantElement initial, ConstantState(initial_state));
  ASSIGN_OR_RETURN(std::shared_ptr<const FunctionDef> function,
                   TraceStateFunction(reduce_func, initial->spec(), element, Gives::kState));
  ASSIGN_OR_RETURN(std::shared_ptr<const BoundFunction> bound,
                   BoundFunction::Bind(std::move(function)));
  return FoldedState(DefaultPool(), std::move(bound), std::move(initial));
}

}  // namespace

absl::StatusOr<Element> Dataset::Reduce(const Expr& initial_state, StateFunction reduce_func,
                                        IteratorOptions options) const {
  RETURN_IF_ERROR(status());
  if (cardinality() == kInfinite) {
    return absl::InvalidArgumentError(
        "Reduce: the dataset is infinite, so it has no final state; limit it with Take()");
  }
  absl::StatusOr<FoldedState> state = Begin(initial_state, reduce_func, element_spec());
  RETURN_IF_ERROR(Annotate(state.status(), "in Reduce"));
  RandomKey random{.seed = options.seed.value_or(RandomNumber())};
  const auto epoch = options.seed.has_value() ? std::optional<int64_t>(0) : std::nullopt;
  ASSIGN_OR_RETURN(std::unique_ptr<IteratorImpl> made,
                   MakeInterruptible(*this, {.seed = random.seed}, epoch));
  Iterator iterator(std::move(made));
  for (;; ++random.element) {
    absl::StatusOr<std::optional<Element>> next = iterator.Next();
    RETURN_IF_ERROR(Annotate(next.status(), "in Reduce, element ", random.element));
    if (!next->has_value()) return state->state().Copy();
    constexpr size_t kAnySize = std::numeric_limits<size_t>::max();
    RETURN_IF_ERROR(Annotate(state->Step(**next, random, kAnySize, nullptr), "in Reduce, element ",
                             random.element));
  }
}

}  // namespace penstock
