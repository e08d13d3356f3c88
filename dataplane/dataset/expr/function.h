// SPDX-License-Identifier: Apache-2.0
// A traced function as data, and how it is run. Tracing turns the Expr that a lambda returns into a
// FunctionDef. The function takes the flat leaves of an element and returns flat leaves.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/expr/attr.h"
#include "penstock/expr.h"
#include "penstock/map.h"
#include "penstock/spec.h"
#include "penstock/tensor.h"

namespace penstock {

// One operation. Values are numbered: first the inputs' leaves, then the outputs of the operations,
// in order.
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

// Calls `fn` with a symbolic element of `input` and records its operations. InvalidArgument names
// the operation and the argument that does not fit.
absl::StatusOr<std::shared_ptr<const FunctionDef>> Trace(const MapFunction& fn, const Spec& input);

// The two halves of Trace(), for callers that already have an Expr (the arguments of a dataset made
// inside FlatMap): SymbolicInput() makes a symbolic element, and TraceTo() traces the Expr that was
// computed from it. InvalidArgument if `result` uses a value of another function's element.
Expr SymbolicInput(const Spec& spec);
absl::StatusOr<std::shared_ptr<const FunctionDef>> TraceTo(const Expr& input, const Expr& result);

// Checks an untrusted definition: operations are known, value numbers are in range and in order,
// and inference confirms the specs.
absl::Status CheckFunction(const FunctionDef& function);

// Identifies random bits for one element. The bits are counter-based (Philox 4x32-10): they depend
// only on these numbers, not on the order of calls.
struct RandomKey {
  uint64_t seed = 0;
  uint64_t repetition = 0;
  uint64_t partition = 0;  // 0 before the point where the data is divided
  uint32_t node = 0;
  uint64_t element = 0;
};
// `draw` distinguishes several draws for one element.
uint64_t RandomBits(const RandomKey& key, uint32_t draw);
double RandomUnit(const RandomKey& key, uint32_t draw);  // [0, 1)

// Receives results. A function asks for a result's memory when it knows the result's dims; the
// memory may be a row of a batch's block.
class ResultSink {
 public:
  virtual ~ResultSink() = default;
  // Returns memory for dense leaf `i`, in the layout of a row-major tensor of `dims`.
  virtual absl::StatusOr<absl::Span<std::byte>> Place(size_t i, DType dtype,
                                                      absl::Span<const int64_t> dims) = 0;
  // Copies a leaf that cannot be placed (strings, ragged tensors, inputs passed through). The sink
  // copies from `value` before it returns.
  virtual absl::Status Copy(size_t i, const Tensor& value) = 0;
};

// A function made ready to run. Thread-safe. Each call has its own scratch memory, which is reused,
// so that little is allocated in the steady state.
class BoundFunction {
 public:
  // NotFound if this program lacks a registered function; names the function and its version.
  static absl::StatusOr<std::shared_ptr<const BoundFunction>> Bind(
      std::shared_ptr<const FunctionDef> def);
  virtual ~BoundFunction() = default;
  virtual const FunctionDef& def() const = 0;

  // Runs on the leaves of one element. An error names the operation.
  virtual absl::Status Run(absl::Span<const Tensor> inputs, const RandomKey& random,
                           ResultSink& sink) const = 0;
};

}  // namespace penstock
