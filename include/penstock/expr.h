// SPDX-License-Identifier: Apache-2.0
// Functions that are stored in a dataset and run wherever it is read. A lambda over Expr is called
// once, when the dataset is built, and records a small typed graph (docs/expressions.md).
//
//   dataset.Map([](auto x) { return x["a"] * 2 + 1; })
//   dataset.Map([](auto x) { return ps::Struct({{"y", ps::Cast(x, ps::kFloat32)}}); })
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "penstock/dtype.h"
#include "penstock/spec.h"
#include "penstock/tensor.h"

#pragma GCC visibility push(default)
namespace penstock {

struct FunctionDef;  // dataplane/dataset/expr/function.h

// A value in a function that is being traced: a leaf or a nest of leaves. Cheap to copy. A mistake
// (dtypes that do not match, a missing key) does not throw an exception: the result is an Expr with
// an error status, which the dataset reports.
class Expr {
 public:
  // A constant scalar of the C++ value's dtype. In arithmetic, an integer or floating-point literal
  // takes the dtype of the other operand, as in NumPy.
  // clang-format off
  template <class T>
    requires std::is_arithmetic_v<T>
  Expr(T value);  // NOLINT: allows x * 2
  // clang-format on
  Expr(std::string_view value);                               // NOLINT
  Expr(const char* value) : Expr(std::string_view(value)) {}  // NOLINT
  // A constant dense tensor, copied.
  static Expr Constant(const Tensor& value);

  Expr operator[](std::string_view key) const;  // member of a dict
  Expr operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  // Member of a tuple, or index along the first axis of a tensor.
  template <std::integral I>
  Expr operator[](I i) const {
    return At(static_cast<int64_t>(i));
  }
  Expr operator[](const Expr& index) const;  // index along the first axis; a scalar

  const Spec& spec() const;
  const absl::Status& status() const;
  DType dtype() const;  // the dtype of a leaf

  struct Node;  // dataplane/dataset/expr/node.h

 private:
  friend class ExprAccess;  // dataplane/dataset/expr/node.h
  explicit Expr(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  Expr At(int64_t i) const;
  std::shared_ptr<const Node> node_;
};

// --- Nests --------------------------------------------------------------------
Expr Struct(std::vector<std::pair<std::string, Expr>> members);
Expr Tuple(std::vector<Expr> members);

// --- Elementwise -------------------------------------------------------------
// Operands broadcast as in NumPy and must have the same dtype (literals adapt).
// docs/expressions.md lists the dtypes and edge cases of each operation.

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);  // floors integers, as Python's //
Expr operator%(const Expr& a, const Expr& b);  // sign of the divisor, as in Python
Expr operator-(const Expr& a);
Expr operator==(const Expr& a, const Expr& b);  // comparisons return bool
Expr operator!=(const Expr& a, const Expr& b);
Expr operator<(const Expr& a, const Expr& b);
Expr operator<=(const Expr& a, const Expr& b);
Expr operator>(const Expr& a, const Expr& b);
Expr operator>=(const Expr& a, const Expr& b);
Expr operator&&(const Expr& a, const Expr& b);
Expr operator||(const Expr& a, const Expr& b);
Expr operator!(const Expr& a);
Expr operator&(const Expr& a, const Expr& b);  // bitwise, on integers
Expr operator|(const Expr& a, const Expr& b);
Expr operator^(const Expr& a, const Expr& b);
Expr operator~(const Expr& a);
Expr operator<<(const Expr& a, const Expr& b);
Expr operator>>(const Expr& a, const Expr& b);  // keeps the sign of signed integers
Expr Minimum(const Expr& a, const Expr& b);
Expr Maximum(const Expr& a, const Expr& b);
Expr Clip(const Expr& x, const Expr& low, const Expr& high);
Expr Power(const Expr& a, const Expr& b);
Expr Atan2(const Expr& y, const Expr& x);
Expr Where(const Expr& condition, const Expr& a, const Expr& b);

Expr Cast(const Expr& x, DType dtype);
Expr Abs(const Expr& x);
Expr Sign(const Expr& x);
Expr Floor(const Expr& x);
Expr Ceil(const Expr& x);
Expr Round(const Expr& x);  // halves to even
Expr Sqrt(const Expr& x);
Expr Exp(const Expr& x);
Expr Expm1(const Expr& x);
Expr Log(const Expr& x);
Expr Log1p(const Expr& x);
Expr Sin(const Expr& x);
Expr Cos(const Expr& x);
Expr Tan(const Expr& x);
Expr Asin(const Expr& x);
Expr Acos(const Expr& x);
Expr Atan(const Expr& x);
Expr Sinh(const Expr& x);
Expr Cosh(const Expr& x);
Expr Tanh(const Expr& x);
Expr Sigmoid(const Expr& x);
Expr IsNan(const Expr& x);
Expr IsInf(const Expr& x);
Expr IsFinite(const Expr& x);

// --- Shapes and moving values ----------------------------------------------------
// Axes count from 0, negative axes from the end.

Expr ShapeOf(const Expr& x);                             // int64 [rank]
Expr Size(const Expr& x);                                // number of values, int64
Expr Reshape(const Expr& x, std::vector<int64_t> dims);  // one dimension may be -1
Expr ExpandDims(const Expr& x, std::vector<int> axes);   // adds dims of 1 at these result axes
Expr ExpandDims(const Expr& x, int axis);
Expr Squeeze(const Expr& x, std::vector<int> axes = {});           // {}: all dims known to be 1
Expr Transpose(const Expr& x, std::vector<int> permutation = {});  // {}: reversed axes
Expr BroadcastTo(const Expr& x, std::vector<int64_t> dims);
Expr Tile(const Expr& x, std::vector<int64_t> multiples);
Expr Reverse(const Expr& x, std::vector<int> axes);

// A size of -1 means up to the end.
Expr Slice(const Expr& x, std::vector<int64_t> begin, std::vector<int64_t> size);
// Python's begin:end:step, cut to the size of the tensor. Without begin or end, the range is open
// at that side.
struct SliceRange {
  std::optional<int64_t> begin = std::nullopt;
  std::optional<int64_t> end = std::nullopt;
  int64_t step = 1;
};
// Slices the first axes, with one range for each. The other axes stay whole.
Expr StridedSlice(const Expr& x, std::vector<SliceRange> ranges);
Expr Gather(const Expr& x, const Expr& indices, int axis = 0);

Expr Concat(std::vector<Expr> parts, int axis = 0);
Expr Stack(std::vector<Expr> parts, int axis = 0);       // along a new axis
std::vector<Expr> Unstack(const Expr& x, int axis = 0);  // REQUIRES: the dimension is known

enum class PadMode : uint8_t {
  kConstant = 0,
  kReflect = 1,    // c b | a b c | b a
  kSymmetric = 2,  // b a | a b c | c b
};
// `paddings` is {before, after} for each axis. kConstant fills with `value`; not given: 0, false
// or "".
Expr Pad(const Expr& x, std::vector<std::pair<int64_t, int64_t>> paddings,
         PadMode mode = PadMode::kConstant, std::optional<Expr> value = std::nullopt);

// start, start + delta, …, up to but excluding limit. The arguments are integer or floating-point
// scalars of one dtype.
Expr Range(const Expr& start, const Expr& limit, const Expr& delta = 1);
Expr OneHot(const Expr& indices, int64_t depth, DType dtype = kFloat32);

// --- Order, sums and products -----------------------------------------------------
// NaN sorts after all numbers. Equal values keep their order.

Expr Sort(const Expr& x, int axis = -1, bool descending = false);
Expr ArgSort(const Expr& x, int axis = -1, bool descending = false);  // int64
// The `k` largest values of the last axis, largest first: a tuple (values, int64 indices).
Expr TopK(const Expr& x, int64_t k);
Expr CumSum(const Expr& x, int axis = 0, bool exclusive = false, bool reverse = false);

Expr ReduceSum(const Expr& x, std::vector<int> axes = {}, bool keep_dims = false);  // {}: all axes
Expr ReduceMean(const Expr& x, std::vector<int> axes = {}, bool keep_dims = false);
Expr ReduceProd(const Expr& x, std::vector<int> axes = {}, bool keep_dims = false);
Expr ReduceMax(const Expr& x, std::vector<int> axes = {}, bool keep_dims = false);
Expr ReduceMin(const Expr& x, std::vector<int> axes = {}, bool keep_dims = false);
Expr ReduceAny(const Expr& x, std::vector<int> axes = {}, bool keep_dims = false);  // bool
Expr ReduceAll(const Expr& x, std::vector<int> axes = {}, bool keep_dims = false);
Expr ArgMax(const Expr& x, int axis = 0);  // int64; the first maximum, or the first NaN
Expr ArgMin(const Expr& x, int axis = 0);
Expr MatMul(const Expr& a, const Expr& b);  // of the last two axes; other axes broadcast

// --- Strings: bytes, not text in an encoding ----------------------------------------

Expr StringLength(const Expr& x);
Expr Substr(const Expr& x, const Expr& begin, const Expr& length);
Expr StringConcat(const Expr& a, const Expr& b);
Expr StringJoin(std::vector<Expr> parts, std::string_view separator = "");
Expr ReduceJoin(const Expr& x, int axis = -1, std::string_view separator = "");
// A scalar yields its parts, string [n]. A vector yields ragged rows of parts. An empty separator
// splits at runs of whitespace.
Expr StringSplit(const Expr& x, std::string_view separator = "");
Expr StringLower(const Expr& x);  // ASCII letters only
Expr StringUpper(const Expr& x);
Expr StringStrip(const Expr& x);  // ASCII whitespace at both ends
Expr StringToNumber(const Expr& x, DType dtype);
// Numbers as text with `precision` digits after the point; -1: as few digits as identify the value.
Expr AsString(const Expr& x, int precision = -1);
// Patterns are in RE2 syntax. \1 … \9 in the rewrite stand for groups.
Expr RegexFullMatch(const Expr& x, std::string_view pattern);
Expr RegexReplace(const Expr& x, std::string_view pattern, std::string_view rewrite,
                  bool replace_global = true);
// FarmHash Fingerprint64 modulo `buckets`, as tf.strings.to_hash_bucket_fast.
Expr StringToHashBucket(const Expr& x, int64_t buckets);

// --- Ragged tensors ------------------------------------------------------------------

Expr RowLengths(const Expr& x);  // int64 [rows] of the outermost level
Expr FlatValues(const Expr& x);  // the dense values of all rows
// Dense, as wide as the longest row. Fills with `value`; not given: 0, false or "".
Expr ToTensor(const Expr& x, std::optional<Expr> value = std::nullopt);
// Divides the rows of a dense tensor into one ragged level.
Expr FromRowLengths(const Expr& values, const Expr& lengths);

// --- Randomness: depends on the dataset's seed and the element's number -----------

// Uniformly distributed values in [low, high), of the bounds' dtype: float32, float64, int32 or
// int64.
Expr RandomUniform(std::vector<int64_t> dims, const Expr& low = 0.0f, const Expr& high = 1.0f);
Expr RandomNormal(std::vector<int64_t> dims, double mean = 0, double stddev = 1,
                  DType dtype = kFloat32);

// Calls a function that was registered with PENSTOCK_REGISTER_MAP (penstock/register.h). It must be
// registered in the program in which the call runs: this program or a worker.
Expr Call(std::string_view function, const Expr& x);

}  // namespace penstock
#pragma GCC visibility pop
