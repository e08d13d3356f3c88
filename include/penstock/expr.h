// SPDX-License-Identifier: Apache-2.0
// Functions that travel with a dataset: a lambda over Expr is called once, when
// the dataset is built, and records a small typed graph (docs/expressions.md).
//
//   dataset.Map([](auto x) { return x["a"] * 2 + 1; })
//   dataset.Map([](auto x) { return ps::Struct({{"y", ps::Cast(x, ps::kFloat32)}}); })
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "penstock/dtype.h"
#include "penstock/spec.h"
#include "penstock/tensor.h"

namespace penstock {

struct FunctionDef;  // dataplane/dataset/function.h

// A value in a function that is being traced: a leaf or a nest of leaves. Cheap
// to copy. A mistake (dtypes that do not fit, a key that is not there) does not
// throw: the Expr becomes one with a status, which the dataset then reports.
class Expr {
 public:
  // Constants: a scalar of the C++ value's dtype. An integer or floating
  // literal takes the other operand's dtype in arithmetic, as in NumPy.
  // clang-format off
  template <class T>
    requires std::is_arithmetic_v<T>
  Expr(T value);  // NOLINT: x * 2 is the point
  // clang-format on
  Expr(std::string_view value);                               // NOLINT
  Expr(const char* value) : Expr(std::string_view(value)) {}  // NOLINT
  // A constant dense tensor, copied.
  static Expr Constant(const Tensor& value);

  Expr operator[](std::string_view key) const;  // member of a dict
  Expr operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  // Member of a tuple, else first-axis index.
  template <std::integral I>
  Expr operator[](I i) const {
    return At(static_cast<int64_t>(i));
  }
  Expr operator[](const Expr& index) const;  // first-axis index by a scalar

  const Spec& spec() const;
  const absl::Status& status() const;
  DType dtype() const;  // of a leaf

  struct Node;
  const std::shared_ptr<const Node>& node() const { return node_; }
  explicit Expr(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

 private:
  Expr At(int64_t i) const;
  std::shared_ptr<const Node> node_;
};

// Nests.
Expr Struct(std::vector<std::pair<std::string, Expr>> members);
Expr Tuple(std::vector<Expr> members);

// Arithmetic broadcasts as NumPy does; both sides must have one dtype (literals
// adapt). Comparison gives bool.
Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);  // integers: floor, as Python's //
Expr operator%(const Expr& a, const Expr& b);  // sign of the divisor, as Python
Expr operator-(const Expr& a);
Expr operator==(const Expr& a, const Expr& b);
Expr operator!=(const Expr& a, const Expr& b);
Expr operator<(const Expr& a, const Expr& b);
Expr operator<=(const Expr& a, const Expr& b);
Expr operator>(const Expr& a, const Expr& b);
Expr operator>=(const Expr& a, const Expr& b);
Expr operator&&(const Expr& a, const Expr& b);
Expr operator||(const Expr& a, const Expr& b);
Expr operator!(const Expr& a);

Expr Cast(const Expr& x, DType dtype);
Expr Reshape(const Expr& x, std::vector<int64_t> dims);  // one dimension may be -1
// A size of -1 is to the end.
Expr Slice(const Expr& x, std::vector<int64_t> begin, std::vector<int64_t> size);
Expr Gather(const Expr& x, const Expr& indices);  // along the first axis
Expr Where(const Expr& condition, const Expr& a, const Expr& b);
Expr ReduceSum(const Expr& x, std::vector<int> axes = {});  // {}: all
Expr ReduceMean(const Expr& x, std::vector<int> axes = {});
Expr ReduceMax(const Expr& x, std::vector<int> axes = {});
Expr ReduceMin(const Expr& x, std::vector<int> axes = {});
Expr OneHot(const Expr& indices, int64_t depth, DType dtype = kFloat32);
Expr Abs(const Expr& x);
Expr Exp(const Expr& x);
Expr Log(const Expr& x);
Expr Sqrt(const Expr& x);
Expr Minimum(const Expr& a, const Expr& b);
Expr Maximum(const Expr& a, const Expr& b);
Expr StringLength(const Expr& x);
Expr StringConcat(const Expr& a, const Expr& b);
Expr StringToNumber(const Expr& x, DType dtype);
Expr ShapeOf(const Expr& x);  // int64 [rank]

// Calls a function registered by PENSTOCK_REGISTER_MAP on this or another
// program's worker; see penstock/register.h.
Expr Call(std::string_view function, const Expr& x);

}  // namespace penstock
