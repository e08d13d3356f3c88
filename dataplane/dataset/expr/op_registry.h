// SPDX-License-Identifier: Apache-2.0
// The operations that functions are made of, one row each.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "dataplane/dataset/expr/attr.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/expr/op_run.h"
#include "penstock/spec.h"

namespace penstock {

class Files;       // control/env/files.h
class PythonHost;  // dataplane/dataset/expr/python_host.h

// The parts of the running dataset that some operations use. For members that are nullptr:
// DefaultFiles() and PythonHost::OfProcess().
struct OpMeans {
  std::shared_ptr<Files> files;
  std::shared_ptr<PythonHost> python;
};

// Runs one operation on one element. Called from any thread, and from several threads at once.
using Kernel = std::function<absl::Status(OpRun&)>;

namespace internal {
template <class T, class V>
struct PlaceIn;
template <class T, class... Rest>
struct PlaceIn<T, std::variant<T, Rest...>> {
  static constexpr size_t value = 0;
};
template <class T, class First, class... Rest>
struct PlaceIn<T, std::variant<First, Rest...>> {
  static constexpr size_t value = 1 + PlaceIn<T, std::variant<Rest...>>::value;
};
}  // namespace internal

// The index of a type in Attr.
template <class T>
inline constexpr size_t kAttrIndex = internal::PlaceIn<T, Attr>::value;

// A parameter that an operation must have; `type` is an index in Attr.
struct AttrRow {
  absl::string_view name;
  size_t type;
};

using InputSpecs = absl::Span<const TensorSpec>;

// How an operation must change to process all rows of a batch at once, as inputs with one more
// dimension in front (over_rows.h).
enum class OverRows : uint8_t {
  kNever,        // the result would differ
  kElementwise,  // unchanged, if inputs of lower rank get dimensions of 1 after the one in front
  kTrailing,     // unchanged: it treats each value of its one input separately
  kView,         // gives the values of its one input different dims
};

struct OpRow {
  absl::string_view name;
  // Raised when results change. Part of the fingerprint of every dataset that uses the operation.
  int version = 1;
  int min_inputs = 1;
  int max_inputs = 1;
  std::vector<AttrRow> attrs;
  // Returns dtypes and shapes of the outputs. The types of attributes and the number of inputs have
  // already been checked; infer checks the attributes' values and the specs.
  absl::StatusOr<std::vector<TensorSpec>> (*infer)(const Attrs& attrs, InputSpecs inputs) = nullptr;
  // REQUIRES: infer accepted the same attrs and inputs.
  absl::StatusOr<Kernel> (*make)(const OpDef& def, InputSpecs inputs) = nullptr;
  // Replaces `make` for an operation that uses `means`.
  absl::StatusOr<Kernel> (*make_with)(const OpDef& def, const OpMeans& means) = nullptr;
  // Draws random bits. Such an operation has the attribute "random", its number among the random
  // operations of its function, and is never shared or moved.
  bool random = false;
  // Argument 0 may be ragged; all other arguments are dense.
  bool takes_ragged = false;
  OverRows over_rows = OverRows::kNever;
};

// Operations that code in other files must recognize.
inline constexpr char kPythonCall[] = "PythonCall";
inline constexpr char kReadFile[] = "ReadFile";

// Returns nullptr if there is no such operation.
const OpRow* FindOp(absl::string_view name);
std::vector<const OpRow*> AllOps();

// Checks the number of inputs, and that exactly the declared attributes are present, each with its
// declared type; then calls infer. InvalidArgument or NotFound names the operation.
absl::StatusOr<std::vector<TensorSpec>> InferOp(const OpRow& row, const Attrs& attrs,
                                                InputSpecs inputs);

// The rows of each file of operations, joined by op_registry.cc.
std::vector<OpRow> ConstantOps();
std::vector<OpRow> ArithmeticOps();
std::vector<OpRow> CompareOps();
std::vector<OpRow> CastOps();
std::vector<OpRow> MathOps();
std::vector<OpRow> BitOps();
std::vector<OpRow> ShapeOps();
std::vector<OpRow> LayoutOps();
std::vector<OpRow> JoinOps();
std::vector<OpRow> SelectOps();
std::vector<OpRow> ReduceOps();
std::vector<OpRow> OrderOps();
std::vector<OpRow> MatMulOps();
std::vector<OpRow> StringOps();
std::vector<OpRow> TextOps();
std::vector<OpRow> RegexOps();
std::vector<OpRow> RaggedOps();
std::vector<OpRow> RandomOps();
std::vector<OpRow> FileOps();
std::vector<OpRow> DecodeOps();
std::vector<OpRow> ImageOps();
std::vector<OpRow> ColorOps();
std::vector<OpRow> ExampleOps();
std::vector<OpRow> CallOps();
std::vector<OpRow> PythonOps();

}  // namespace penstock
