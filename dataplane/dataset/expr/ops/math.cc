// SPDX-License-Identifier: Apache-2.0
// Functions of one value and, at the end, of two: rounding, exponentials, trigonometry, powers.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/ops/elementwise.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Specs = std::vector<TensorSpec>;

// --- Of one floating-point value ------------------------------------------------

absl::StatusOr<Specs> InferFloating(const Attrs&, InputSpecs inputs) {
  return InferUnary(inputs, Takes::kFloating);
}

// Returns the row for f(x) on float and double. `f` is a lambda without captures.
template <class F>
OpRow FloatingRow(absl::string_view name, F) {
  return {.name = name,
          .infer = InferFloating,
          .make = [](const OpDef&, InputSpecs inputs) -> absl::StatusOr<Kernel> {
            return ForFloating(inputs[0].dtype, []<class T>() {
              return Kernel([](OpRun& run) { return RunUnary<T, T>(run, F()); });
            });
          },
          .over_rows = OverRows::kTrailing};
}

// Never divides by an overflowed value.
template <class T>
T SigmoidOf(T x) {
  const T e = std::exp(-std::fabs(x));
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

absl::StatusOr<Specs> InferPredicate(const Attrs&, InputSpecs inputs) {
  return InferUnary(inputs, Takes::kFloating, kBool);
}

template <class F>
OpRow PredicateRow(absl::string_view name, F) {
  return {.name = name,
          .infer = InferPredicate,
          .make = [](const OpDef&, InputSpecs inputs) -> absl::StatusOr<Kernel> {
            return ForFloating(inputs[0].dtype, []<class T>() {
              return Kernel([](OpRun& run) { return RunUnary<T, uint8_t>(run, F()); });
            });
          },
          .over_rows = OverRows::kTrailing};
}

// --- Sign: of integers too ----------------------------------------------------------

absl::StatusOr<Specs> InferSign(const Attrs&, InputSpecs inputs) {
  return InferUnary(inputs, Takes::kReal);
}
absl::StatusOr<Kernel> MakeSign(const OpDef&, InputSpecs inputs) {
  return ForReal(inputs[0].dtype, []<class T>() {
    return Kernel([](OpRun& run) {
      return RunUnary<T, T>(run, [](ComputedIn<T> x) -> ComputedIn<T> {
        if constexpr (!kIsInteger<T>)
          if (std::isnan(x)) return x;
        if constexpr (std::is_unsigned_v<T>)
          return x > 0;
        else
          return static_cast<ComputedIn<T>>((x > 0) - (x < 0));
      });
    });
  });
}

// --- Power and Atan2 -----------------------------------------------------------------

absl::StatusOr<Specs> InferPower(const Attrs&, InputSpecs inputs) {
  return InferBinary(inputs, Takes::kReal);
}

// Computes the power by squaring; wraps around. REQUIRES: exponent ≥ 0.
template <class T>
T IntegerPower(T base, T exponent) {
  Wrapping<T> result = 1;
  Wrapping<T> square = static_cast<Wrapping<T>>(base);
  for (; exponent > 0; exponent = static_cast<T>(exponent / 2)) {
    if (exponent % 2 != 0) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

template <class T>
absl::Status Power(OpRun& run) {
  if constexpr (!kIsInteger<T>) {
    return RunBinary<T, T>(
        run, [](ComputedIn<T> base, ComputedIn<T> exponent) { return std::pow(base, exponent); });
  } else {
    bool negative = false;
    RETURN_IF_ERROR((RunBinary<T, T>(run, [&](T base, T exponent) {
      if constexpr (std::is_signed_v<T>) {
        negative = negative || exponent < 0;
        if (exponent < 0) return T{0};
      }
      return IntegerPower(base, exponent);
    })));
    return negative ? absl::InvalidArgumentError(
                          "an integer to a negative power is not an integer; Cast to "
                          "floating-point first")
                    : absl::OkStatus();
  }
}
absl::StatusOr<Kernel> MakePower(const OpDef&, InputSpecs inputs) {
  return ForReal(inputs[0].dtype, []<class T>() { return Kernel(Power<T>); });
}

absl::StatusOr<Specs> InferAtan2(const Attrs&, InputSpecs inputs) {
  return InferBinary(inputs, Takes::kFloating);
}
absl::StatusOr<Kernel> MakeAtan2(const OpDef&, InputSpecs inputs) {
  return ForFloating(inputs[0].dtype, []<class T>() {
    return Kernel([](OpRun& run) {
      return RunBinary<T, T>(run,
                             [](ComputedIn<T> y, ComputedIn<T> x) { return std::atan2(y, x); });
    });
  });
}

}  // namespace

std::vector<OpRow> MathOps() {
  return {
      FloatingRow("Floor", [](auto x) { return std::floor(x); }),
      FloatingRow("Ceil", [](auto x) { return std::ceil(x); }),
      // In a program's initial rounding mode, halves round to even.
      FloatingRow("Round", [](auto x) { return std::nearbyint(x); }),
      FloatingRow("Sqrt", [](auto x) { return std::sqrt(x); }),
      FloatingRow("Exp", [](auto x) { return std::exp(x); }),
      FloatingRow("Expm1", [](auto x) { return std::expm1(x); }),
      FloatingRow("Log", [](auto x) { return std::log(x); }),
      FloatingRow("Log1p", [](auto x) { return std::log1p(x); }),
      FloatingRow("Sin", [](auto x) { return std::sin(x); }),
      FloatingRow("Cos", [](auto x) { return std::cos(x); }),
      FloatingRow("Tan", [](auto x) { return std::tan(x); }),
      FloatingRow("Asin", [](auto x) { return std::asin(x); }),
      FloatingRow("Acos", [](auto x) { return std::acos(x); }),
      FloatingRow("Atan", [](auto x) { return std::atan(x); }),
      FloatingRow("Sinh", [](auto x) { return std::sinh(x); }),
      FloatingRow("Cosh", [](auto x) { return std::cosh(x); }),
      FloatingRow("Tanh", [](auto x) { return std::tanh(x); }),
      FloatingRow("Sigmoid", [](auto x) { return SigmoidOf(x); }),
      PredicateRow("IsNan", [](auto x) { return std::isnan(x); }),
      PredicateRow("IsInf", [](auto x) { return std::isinf(x); }),
      PredicateRow("IsFinite", [](auto x) { return std::isfinite(x); }),
      {.name = "Sign", .infer = InferSign, .make = MakeSign, .over_rows = OverRows::kTrailing},
      {.name = "Power",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = InferPower,
       .make = MakePower,
       .over_rows = OverRows::kElementwise},
      {.name = "Atan2",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = InferAtan2,
       .make = MakeAtan2,
       .over_rows = OverRows::kElementwise},
  };
}

}  // namespace penstock
