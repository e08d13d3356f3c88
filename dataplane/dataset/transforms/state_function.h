// SPDX-License-Identifier: Apache-2.0
// Functions of a state and an element, which Scan and Reduce carry along.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "dataplane/dataset/attr.h"
#include "dataplane/dataset/function.h"
#include "dataplane/memory/pool.h"
#include "penstock/element.h"
#include "penstock/map.h"
#include "penstock/spec.h"

namespace penstock {

// What such a function gives: the new state, or (new state, output).
enum class Gives { kState, kStateAndOutput };

// The values of an expression of constants. InvalidArgument for one that uses
// an element.
absl::StatusOr<ConstantElement> ConstantState(const Expr& initial_state);

// Calls `fn` with a symbolic state and a symbolic element. The function's input
// is Tuple(state, element); a dimension of the state that does not stay as it
// was in `initial` is unknown in it. InvalidArgument if the states' structure
// or dtypes do not fit each other.
absl::StatusOr<std::shared_ptr<const FunctionDef>> TraceStateFunction(const StateFunction& fn,
                                                                      const Spec& initial,
                                                                      const Spec& element,
                                                                      Gives gives);

// Checks what TraceStateFunction makes sure of, for a function from outside.
absl::Status CheckStateFunction(const FunctionDef& function, const Spec& initial,
                                const Spec& element, Gives gives);

// A state on its way over the elements. One thread.
class FoldedState {
 public:
  // The pool is for states, and outlives this.
  FoldedState(Pool& pool, std::shared_ptr<const BoundFunction> function, ConstantElement initial)
      : pool_(pool), function_(std::move(function)), initial_(std::move(initial)) {}

  // Takes the next element; its output, if there is one, goes into `output`
  // (else nullptr). On an error the state stays as it was: so too when the new
  // one takes more than `most_bytes`, which is ResourceExhausted.
  absl::Status Step(const Element& element, const RandomKey& random, size_t most_bytes,
                    ResultSink* output);

  const Element& state() const { return state_ ? state_ : *initial_; }
  const Spec& spec() const;  // that every state has
  void set_state(Element state) { state_ = std::move(state); }

 private:
  Pool& pool_;
  std::shared_ptr<const BoundFunction> function_;
  ConstantElement initial_;
  Element state_;  // none: the initial one
};

}  // namespace penstock
