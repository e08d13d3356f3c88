// SPDX-License-Identifier: Apache-2.0
// Functions of a state and an element, for Scan and Reduce.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "dataplane/dataset/expr/attr.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/memory/pool.h"
#include "penstock/element.h"
#include "penstock/map.h"
#include "penstock/spec.h"

namespace penstock {

// The result of such a function: the new state, or (new state, output).
enum class Gives { kState, kStateAndOutput };

// Computes the values of a constant expression. InvalidArgument if it uses an element.
absl::StatusOr<ConstantElement> ConstantState(const Expr& initial_state);

// Calls `fn` with a symbolic state and a symbolic element. The function's input is Tuple(state,
// element). If an element may change a dimension of the state, the dimension is unknown in the
// function's input. InvalidArgument if the states' structures or dtypes do not match.
absl::StatusOr<std::shared_ptr<const FunctionDef>> TraceStateFunction(const StateFunction& fn,
                                                                      const Spec& initial,
                                                                      const Spec& element,
                                                                      Gives gives);

// Checks an untrusted function for the properties that TraceStateFunction() guarantees.
absl::Status CheckStateFunction(const FunctionDef& function, const Spec& initial,
                                const Spec& element, Gives gives);

// A state that is folded over elements. One thread.
class FoldedState {
 public:
  // `pool` is for states and must outlive this object.
  FoldedState(Pool& pool, std::shared_ptr<const BoundFunction> function, ConstantElement initial)
      : pool_(pool), function_(std::move(function)), initial_(std::move(initial)) {}

  // Processes the next element. The function's output goes to `output`, which is nullptr if the
  // function has none. An error leaves the state unchanged. ResourceExhausted if the new state
  // takes more than `most_bytes`.
  absl::Status Step(const Element& element, const RandomKey& random, size_t most_bytes,
                    ResultSink* output);

  const Element& state() const { return state_ ? state_ : *initial_; }
  const Spec& spec() const;  // of every state
  void set_state(Element state) { state_ = std::move(state); }

 private:
  Pool& pool_;
  std::shared_ptr<const BoundFunction> function_;
  ConstantElement initial_;
  Element state_;  // empty: the initial state
};

}  // namespace penstock
