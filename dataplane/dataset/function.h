// SPDX-License-Identifier: Apache-2.0
// A traced function as data: what an Expr became when it left its lambda, and
// how it is run. It takes the flat leaves of an element and yields flat leaves.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/attr.h"
#include "penstock/expr.h"
#include "penstock/map.h"
#include "penstock/spec.h"
#include "penstock/tensor.h"

namespace penstock {

// One operation. Values are numbered: first the inputs' leaves, then the
// outputs of the operations in their order.
struct OpDef {
  std::string op;
  Attrs attrs;
  std::vector<uint32_t> inputs;     // numbers of values
  std::vector<TensorSpec> outputs;  // inferred when traced, checked when parsed
};

struct FunctionDef {
  Spec input;
  std::vector<OpDef> ops;
  std::vector<uint32_t> results;  // numbers of values, in the order of output.leaves()
  Spec output;
  bool deterministic = true;
};

// Calls `fn` with a symbolic element of `input` and records what it does.
// InvalidArgument names the operation and the argument that does not fit.
absl::StatusOr<std::shared_ptr<const FunctionDef>> Trace(const MapFunction& fn, const Spec& input);

// The two halves of Trace, for those who build a function from an Expr in hand
// (the arguments of a dataset made inside FlatMap): a symbolic element, and
// what was made of it. InvalidArgument if `result` uses a value of another
// function's element.
Expr SymbolicInput(const Spec& spec);
absl::StatusOr<std::shared_ptr<const FunctionDef>> TraceTo(const Expr& input, const Expr& result);

// Checks a definition that came from outside: known operations, numbers in
// range and in order, specs that inference confirms.
absl::Status CheckFunction(const FunctionDef& function);

// Random bits for one element: counter-based (Philox 4x32-10), so that they
// depend on these numbers only, not on the order of calls.
struct RandomKey {
  uint64_t seed = 0;
  uint64_t repetition = 0;
  uint64_t partition = 0;  // 0 above the point where data is divided
  uint32_t node = 0;
  uint64_t element = 0;
};
// `draw` tells apart several draws of one element.
uint64_t RandomBits(const RandomKey& key, uint32_t draw);
double RandomUnit(const RandomKey& key, uint32_t draw);  // [0, 1)

// Where results go. A function asks for memory of a result when it knows its
// dims; the answer may be a row of a batch's block.
class ResultSink {
 public:
  virtual ~ResultSink() = default;
  // Memory for dense leaf `i`, in the layout of a row-major tensor of `dims`.
  virtual absl::StatusOr<absl::Span<std::byte>> Place(size_t i, DType dtype,
                                                      absl::Span<const int64_t> dims) = 0;
  // For leaves that cannot be placed (strings, ragged, inputs handed through):
  // the sink copies from the view before it returns.
  virtual absl::Status Copy(size_t i, const Tensor& value) = 0;
};

// A function made ready to run. Thread-safe; scratch memory is per call and
// reused, so that a steady state allocates little.
class BoundFunction {
 public:
  // NotFound for a registered function this program does not have, naming it
  // and its version.
  static absl::StatusOr<std::shared_ptr<const BoundFunction>> Bind(
      std::shared_ptr<const FunctionDef> def);
  virtual ~BoundFunction() = default;
  virtual const FunctionDef& def() const = 0;

  // Runs on the leaves of one element. An error names the operation.
  virtual absl::Status Run(absl::Span<const Tensor> inputs, const RandomKey& random,
                           ResultSink& sink) const = 0;
};

}  // namespace penstock
