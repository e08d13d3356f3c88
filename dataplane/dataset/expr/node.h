// SPDX-License-Identifier: Apache-2.0
// An Expr while its function is being traced: a leaf that an operation makes or that comes from the
// element, a nest of Exprs, or an error.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "dataplane/dataset/expr/attr.h"
#include "penstock/expr.h"
#include "penstock/spec.h"

namespace penstock {

// One use of an operation. The Exprs of its outputs share it.
struct Application {
  // Destroys the inputs without recursion, because a chain may have thousands of operations.
  ~Application();

  absl::string_view op;  // the registry's copy of the name
  Attrs attrs;
  std::vector<Expr> inputs;  // leaves
  std::vector<TensorSpec> outputs;
  bool random = false;
  int depth = 1;  // length of the longest chain of operations that ends here
};

// The largest depth of a function.
inline constexpr int kMaxDepth = 10'000;

// The element of one function. Its address distinguishes the function's own leaves from the leaves
// of other functions.
struct TracedElement {
  Spec spec;
};

// A C++ number, which takes the dtype of the tensor it meets.
using Literal = std::variant<int64_t, uint64_t, double>;

// Constant after construction.
struct Expr::Node {
  absl::Status status;
  Spec spec;
  std::vector<Expr> members;                     // for a nest, in the spec's order
  std::shared_ptr<const Application> maker;      // for a leaf that an operation makes
  std::shared_ptr<const TracedElement> element;  // for a leaf of the element
  uint32_t number = 0;                           // of the maker's output, or of the element's leaf
  std::vector<Literal> literal;                  // one entry if this is a literal
};

// Makes an Expr from a node, and returns the node of an Expr. Users of the library do neither.
class ExprAccess {
 public:
  static const std::shared_ptr<const Expr::Node>& Node(const Expr& x) { return x.node_; }
  static Expr Make(Expr::Node node) {
    return Expr(std::make_shared<const Expr::Node>(std::move(node)));
  }
};
inline const std::shared_ptr<const Expr::Node>& NodeOf(const Expr& x) {
  return ExprAccess::Node(x);
}

// Returns an Expr with this status.
Expr Mistake(absl::Status status);

// Returns the outputs of an operation on leaves, or one Mistake if the operation does not accept
// them. REQUIRES: `op` is in the registry.
std::vector<Expr> Apply(absl::string_view op, Attrs attrs, std::vector<Expr> inputs);
// The same as Apply(), for operations with one output.
Expr Apply1(absl::string_view op, Attrs attrs, std::vector<Expr> inputs);

// Returns the nest of `spec` over these leaves. REQUIRES: there are as many as spec.leaves().
Expr NestOf(const Spec& spec, std::vector<Expr> leaves);

// Appends all leaves of a nest, in the order of its spec.
void AppendLeaves(const Expr& x, std::vector<Expr>& leaves);

// Makes a literal on either side fit the other side.
void AdaptLiterals(Expr& a, Expr& b);

// Returns a literal as a constant of `dtype`. Returns `x` unchanged if it is not a literal, or if
// `dtype` has no such constant.
Expr AdaptedTo(const Expr& x, DType dtype);

}  // namespace penstock
