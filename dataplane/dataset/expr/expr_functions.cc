// SPDX-License-Identifier: Apache-2.0
// The operators and functions of penstock/expr.h that work on each value separately, and how
// literals take part in them.
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/dtype_dispatch.h"
#include "dataplane/dataset/expr/node.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "penstock/expr.h"

namespace penstock {
namespace {

// True if an integer of `T` can hold the literal.
template <class T>
bool HoldsLiteral(const Literal& literal) {
  if (const auto* i = std::get_if<int64_t>(&literal)) return std::in_range<T>(*i);
  if (const auto* u = std::get_if<uint64_t>(&literal)) return std::in_range<T>(*u);
  return false;
}

std::string LiteralText(const Literal& literal) {
  return std::visit([](auto value) { return absl::StrCat(value); }, literal);
}

// Returns the literal `x` as a constant of `dtype`. Returns `x` itself if `dtype` is not numeric,
// and a Mistake if `dtype` is an integer dtype that cannot hold the literal.
Expr Adapt(const Expr& x, DType dtype) {
  const Literal literal = NodeOf(x)->literal[0];
  if (!Fits(Takes::kNumber, dtype)) return x;
  return ForNumber(dtype, [&]<class T>() -> Expr {
    if constexpr (kIsInteger<T>) {
      if (!HoldsLiteral<T>(literal)) {
        return Mistake(absl::InvalidArgumentError(
            absl::StrCat("the literal ", LiteralText(literal), " cannot be represented as ",
                         Name(dtype), "; Cast the tensor to a dtype that can hold it")));
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
  return x.status().ok() && !NodeOf(x)->literal.empty();
}

}  // namespace

Expr AdaptedTo(const Expr& x, DType dtype) {
  return IsLiteral(x) ? Adapt(x, dtype) : x;
}

void AdaptLiterals(Expr& a, Expr& b) {
  if (!a.status().ok() || !b.status().ok()) return;
  if (IsLiteral(a) && IsLiteral(b)) {
    // If exactly one of two literals is floating-point, it decides the dtype; otherwise the wider
    // dtype does.
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

namespace {

Expr BinaryExpr(absl::string_view op, Expr a, Expr b) {
  AdaptLiterals(a, b);
  return Apply1(op, {}, {std::move(a), std::move(b)});
}

}  // namespace

Expr operator+(const Expr& a, const Expr& b) {
  return BinaryExpr("Add", a, b);
}
Expr operator-(const Expr& a, const Expr& b) {
  return BinaryExpr("Subtract", a, b);
}
Expr operator*(const Expr& a, const Expr& b) {
  return BinaryExpr("Multiply", a, b);
}
Expr operator/(const Expr& a, const Expr& b) {
  return BinaryExpr("Divide", a, b);
}
Expr operator%(const Expr& a, const Expr& b) {
  return BinaryExpr("Remainder", a, b);
}
Expr operator-(const Expr& a) {
  return Apply1("Negate", {}, {a});
}
Expr operator==(const Expr& a, const Expr& b) {
  return BinaryExpr("Equal", a, b);
}
Expr operator!=(const Expr& a, const Expr& b) {
  return BinaryExpr("NotEqual", a, b);
}
Expr operator<(const Expr& a, const Expr& b) {
  return BinaryExpr("Less", a, b);
}
Expr operator<=(const Expr& a, const Expr& b) {
  return BinaryExpr("LessEqual", a, b);
}
Expr operator>(const Expr& a, const Expr& b) {
  return BinaryExpr("Greater", a, b);
}
Expr operator>=(const Expr& a, const Expr& b) {
  return BinaryExpr("GreaterEqual", a, b);
}
Expr operator&&(const Expr& a, const Expr& b) {
  return BinaryExpr("And", a, b);
}
Expr operator||(const Expr& a, const Expr& b) {
  return BinaryExpr("Or", a, b);
}
Expr operator!(const Expr& a) {
  return Apply1("Not", {}, {a});
}
Expr Minimum(const Expr& a, const Expr& b) {
  return BinaryExpr("Minimum", a, b);
}
Expr Maximum(const Expr& a, const Expr& b) {
  return BinaryExpr("Maximum", a, b);
}

Expr operator&(const Expr& a, const Expr& b) {
  return BinaryExpr("BitAnd", a, b);
}
Expr operator|(const Expr& a, const Expr& b) {
  return BinaryExpr("BitOr", a, b);
}
Expr operator^(const Expr& a, const Expr& b) {
  return BinaryExpr("BitXor", a, b);
}
Expr operator~(const Expr& a) {
  return Apply1("BitNot", {}, {a});
}
Expr operator<<(const Expr& a, const Expr& b) {
  return BinaryExpr("ShiftLeft", a, b);
}
Expr operator>>(const Expr& a, const Expr& b) {
  return BinaryExpr("ShiftRight", a, b);
}
Expr Clip(const Expr& x, const Expr& low, const Expr& high) {
  return Minimum(Maximum(x, low), high);
}
Expr Power(const Expr& a, const Expr& b) {
  return BinaryExpr("Power", a, b);
}
Expr Atan2(const Expr& y, const Expr& x) {
  return BinaryExpr("Atan2", y, x);
}
Expr Where(const Expr& condition, const Expr& a, const Expr& b) {
  Expr x = a, y = b;
  AdaptLiterals(x, y);
  return Apply1("Where", {}, {condition, std::move(x), std::move(y)});
}
Expr Cast(const Expr& x, DType dtype) {
  return Apply1("Cast", {{"dtype", dtype}}, {x});
}

Expr Abs(const Expr& x) {
  return Apply1("Abs", {}, {x});
}
Expr Sign(const Expr& x) {
  return Apply1("Sign", {}, {x});
}
Expr Floor(const Expr& x) {
  return Apply1("Floor", {}, {x});
}
Expr Ceil(const Expr& x) {
  return Apply1("Ceil", {}, {x});
}
Expr Round(const Expr& x) {
  return Apply1("Round", {}, {x});
}
Expr Sqrt(const Expr& x) {
  return Apply1("Sqrt", {}, {x});
}
Expr Exp(const Expr& x) {
  return Apply1("Exp", {}, {x});
}
Expr Expm1(const Expr& x) {
  return Apply1("Expm1", {}, {x});
}
Expr Log(const Expr& x) {
  return Apply1("Log", {}, {x});
}
Expr Log1p(const Expr& x) {
  return Apply1("Log1p", {}, {x});
}
Expr Sin(const Expr& x) {
  return Apply1("Sin", {}, {x});
}
Expr Cos(const Expr& x) {
  return Apply1("Cos", {}, {x});
}
Expr Tan(const Expr& x) {
  return Apply1("Tan", {}, {x});
}
Expr Asin(const Expr& x) {
  return Apply1("Asin", {}, {x});
}
Expr Acos(const Expr& x) {
  return Apply1("Acos", {}, {x});
}
Expr Atan(const Expr& x) {
  return Apply1("Atan", {}, {x});
}
Expr Sinh(const Expr& x) {
  return Apply1("Sinh", {}, {x});
}
Expr Cosh(const Expr& x) {
  return Apply1("Cosh", {}, {x});
}
Expr Tanh(const Expr& x) {
  return Apply1("Tanh", {}, {x});
}
Expr Sigmoid(const Expr& x) {
  return Apply1("Sigmoid", {}, {x});
}
Expr IsNan(const Expr& x) {
  return Apply1("IsNan", {}, {x});
}
Expr IsInf(const Expr& x) {
  return Apply1("IsInf", {}, {x});
}
Expr IsFinite(const Expr& x) {
  return Apply1("IsFinite", {}, {x});
}

}  // namespace penstock
