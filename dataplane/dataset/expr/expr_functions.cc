// SPDX-License-Identifier: Apache-2.0
// The operators and functions of penstock/expr.h: each one operation.
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/node.h"
#include "dataplane/dataset/expr/numeric.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "penstock/expr.h"

namespace penstock {
namespace {

// Whether an integer of `T` holds the literal.
template <class T>
bool Holds(const Literal& literal) {
  if (const auto* i = std::get_if<int64_t>(&literal)) return std::in_range<T>(*i);
  if (const auto* u = std::get_if<uint64_t>(&literal)) return std::in_range<T>(*u);
  return false;
}

std::string TextOf(const Literal& literal) {
  return std::visit([](auto value) { return absl::StrCat(value); }, literal);
}

// The literal as a constant of `dtype`. Integers take integer literals that fit.
Expr Adapt(const Expr& x, DType dtype) {
  const Literal literal = x.node()->literal[0];
  if (!Fits(Takes::kNumber, dtype)) return x;
  return ForNumber(dtype, [&]<class T>() -> Expr {
    if constexpr (kIsInteger<T>) {
      if (!Holds<T>(literal)) {
        return Mistake(absl::InvalidArgumentError(
            absl::StrCat("the literal ", TextOf(literal), " is no ", Name(dtype),
                         "; Cast the tensor to a dtype that has it")));
      }
    }
    T value = std::visit(
        [](auto number) {
          if constexpr (kIsHalf<T>)
            return T(static_cast<float>(number));
          else if constexpr (kIsComplex<T>)
            return T(static_cast<typename T::value_type>(number));
          else
            return static_cast<T>(number);
        },
        literal);
    return Expr::Constant(Tensor(dtype, {}, &value));
  });
}

bool IsLiteral(const Expr& x) {
  return x.status().ok() && !x.node()->literal.empty();
}

// Makes a literal on either side fit the other side.
void AdaptLiterals(Expr& a, Expr& b) {
  if (!a.status().ok() || !b.status().ok()) return;
  if (IsLiteral(a) && IsLiteral(b)) {
    // Two numbers: floating-point if one is, else the wider.
    const bool a_rules = IsFloating(a.dtype()) != IsFloating(b.dtype())
                             ? IsFloating(a.dtype())
                             : SizeOf(a.dtype()) >= SizeOf(b.dtype());
    (a_rules ? b : a) = Adapt(a_rules ? b : a, a_rules ? a.dtype() : b.dtype());
  } else if (IsLiteral(b)) {
    b = Adapt(b, a.dtype());
  } else if (IsLiteral(a)) {
    a = Adapt(a, b.dtype());
  }
}

Expr Binary(absl::string_view op, Expr a, Expr b) {
  AdaptLiterals(a, b);
  return Apply1(op, {}, {std::move(a), std::move(b)});
}

std::vector<int64_t> Wide(const std::vector<int>& axes) {
  return {axes.begin(), axes.end()};
}

}  // namespace

Expr operator+(const Expr& a, const Expr& b) {
  return Binary("Add", a, b);
}
Expr operator-(const Expr& a, const Expr& b) {
  return Binary("Subtract", a, b);
}
Expr operator*(const Expr& a, const Expr& b) {
  return Binary("Multiply", a, b);
}
Expr operator/(const Expr& a, const Expr& b) {
  return Binary("Divide", a, b);
}
Expr operator%(const Expr& a, const Expr& b) {
  return Binary("Remainder", a, b);
}
Expr operator-(const Expr& a) {
  return Apply1("Negate", {}, {a});
}
Expr operator==(const Expr& a, const Expr& b) {
  return Binary("Equal", a, b);
}
Expr operator!=(const Expr& a, const Expr& b) {
  return Binary("NotEqual", a, b);
}
Expr operator<(const Expr& a, const Expr& b) {
  return Binary("Less", a, b);
}
Expr operator<=(const Expr& a, const Expr& b) {
  return Binary("LessEqual", a, b);
}
Expr operator>(const Expr& a, const Expr& b) {
  return Binary("Greater", a, b);
}
Expr operator>=(const Expr& a, const Expr& b) {
  return Binary("GreaterEqual", a, b);
}
Expr operator&&(const Expr& a, const Expr& b) {
  return Binary("And", a, b);
}
Expr operator||(const Expr& a, const Expr& b) {
  return Binary("Or", a, b);
}
Expr operator!(const Expr& a) {
  return Apply1("Not", {}, {a});
}
Expr Minimum(const Expr& a, const Expr& b) {
  return Binary("Minimum", a, b);
}
Expr Maximum(const Expr& a, const Expr& b) {
  return Binary("Maximum", a, b);
}

Expr Cast(const Expr& x, DType dtype) {
  return Apply1("Cast", {{"dtype", dtype}}, {x});
}
Expr Abs(const Expr& x) {
  return Apply1("Abs", {}, {x});
}
Expr Exp(const Expr& x) {
  return Apply1("Exp", {}, {x});
}
Expr Log(const Expr& x) {
  return Apply1("Log", {}, {x});
}
Expr Sqrt(const Expr& x) {
  return Apply1("Sqrt", {}, {x});
}

Expr Reshape(const Expr& x, std::vector<int64_t> dims) {
  return Apply1("Reshape", {{"dims", std::move(dims)}}, {x});
}
Expr Slice(const Expr& x, std::vector<int64_t> begin, std::vector<int64_t> size) {
  return Apply1("Slice", {{"begin", std::move(begin)}, {"size", std::move(size)}}, {x});
}
Expr Gather(const Expr& x, const Expr& indices) {
  return Apply1("Gather", {}, {x, indices});
}
Expr Where(const Expr& condition, const Expr& a, const Expr& b) {
  Expr x = a, y = b;
  AdaptLiterals(x, y);
  return Apply1("Where", {}, {condition, std::move(x), std::move(y)});
}
Expr ReduceSum(const Expr& x, std::vector<int> axes) {
  return Apply1("ReduceSum", {{"axes", Wide(axes)}}, {x});
}
Expr ReduceMean(const Expr& x, std::vector<int> axes) {
  return Apply1("ReduceMean", {{"axes", Wide(axes)}}, {x});
}
Expr ReduceMax(const Expr& x, std::vector<int> axes) {
  return Apply1("ReduceMax", {{"axes", Wide(axes)}}, {x});
}
Expr ReduceMin(const Expr& x, std::vector<int> axes) {
  return Apply1("ReduceMin", {{"axes", Wide(axes)}}, {x});
}
Expr OneHot(const Expr& indices, int64_t depth, DType dtype) {
  return Apply1("OneHot", {{"depth", depth}, {"dtype", dtype}}, {indices});
}
Expr StringLength(const Expr& x) {
  return Apply1("StringLength", {}, {x});
}
Expr StringConcat(const Expr& a, const Expr& b) {
  return Apply1("StringConcat", {}, {a, b});
}
Expr StringToNumber(const Expr& x, DType dtype) {
  return Apply1("StringToNumber", {{"dtype", dtype}}, {x});
}
Expr ShapeOf(const Expr& x) {
  return Apply1("ShapeOf", {}, {x});
}

}  // namespace penstock
