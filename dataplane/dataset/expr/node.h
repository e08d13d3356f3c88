// SPDX-License-Identifier: Apache-2.0
// What an Expr is while its function is being traced: a leaf that an operation
// makes or that comes from the element, a nest of Exprs, or a mistake.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "dataplane/dataset/attr.h"
#include "penstock/expr.h"
#include "penstock/spec.h"

namespace penstock {

// One use of an operation. Shared by the Exprs of its outputs.
struct Application {
  // Lets go of what it alone has without recursion: there may be thousands, one behind the other.
  ~Application();

  absl::string_view op;  // the registry's own name
  Attrs attrs;
  std::vector<Expr> inputs;  // leaves
  std::vector<TensorSpec> outputs;
  bool random = false;
  int depth = 1;  // operations one behind the other, up to this one
};

// No function has more.
inline constexpr int kMaxDepth = 10'000;

// The element of one function. Its address tells the function's own leaves from
// those of another.
struct TracedElement {
  Spec spec;
};

// A C++ number that takes the dtype of the tensor it meets.
using Literal = std::variant<int64_t, uint64_t, double>;

// Constant after construction.
struct Expr::Node {
  absl::Status status;
  Spec spec;
  std::vector<Expr> members;                     // of a nest, in the spec's order
  std::shared_ptr<const Application> maker;      // of a leaf that an operation makes
  std::shared_ptr<const TracedElement> element;  // of a leaf of the element
  uint32_t number = 0;                           // which output of the maker, or leaf
  std::vector<Literal> literal;                  // one, if this is a literal
};

// An Expr with this status.
Expr Mistake(absl::Status status);

// The outputs of an operation on leaves; one Mistake if it does not fit them.
// REQUIRES: `op` is in the registry.
std::vector<Expr> Apply(absl::string_view op, Attrs attrs, std::vector<Expr> inputs);
// The same for operations with one output.
Expr Apply1(absl::string_view op, Attrs attrs, std::vector<Expr> inputs);

// The nest of `spec` over these leaves. REQUIRES: as many as spec.leaves().
Expr NestOf(const Spec& spec, std::vector<Expr> leaves);

// All leaves of a nest, in the order of its spec.
void AppendLeaves(const Expr& x, std::vector<Expr>& leaves);

}  // namespace penstock
