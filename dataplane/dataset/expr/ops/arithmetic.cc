// SPDX-License-Identifier: Apache-2.0
// + - * / % minimum maximum, negation, abs.
#include <cmath>
#include <complex>
#include <limits>

#include "dataplane/dataset/expr/ops/elementwise.h"
#include "include/status_macros.h"

namespace penstock {

absl::StatusOr<std::vector<TensorSpec>> InferBinary(InputSpecs inputs, Takes takes, DType out) {
  RETURN_IF_ERROR(CheckTakes(takes, inputs[0].dtype, 0));
  if (inputs[0].dtype != inputs[1].dtype) {
    return absl::InvalidArgumentError(absl::StrCat("argument 0 is ", Name(inputs[0].dtype),
                                                   " and argument 1 is ", Name(inputs[1].dtype),
                                                   "; Cast one of them"));
  }
  ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(inputs[0].shape, inputs[1].shape));
  return std::vector<TensorSpec>{
      Dense(out == DType::kInvalid ? inputs[0].dtype : out, std::move(shape))};
}

absl::StatusOr<std::vector<TensorSpec>> InferUnary(InputSpecs inputs, Takes takes, DType out) {
  RETURN_IF_ERROR(CheckTakes(takes, inputs[0].dtype, 0));
  return std::vector<TensorSpec>{
      Dense(out == DType::kInvalid ? inputs[0].dtype : out, inputs[0].shape)};
}

namespace {

struct Add {
  template <class T>
  static T Of(T a, T b) {
    if constexpr (kIsInteger<T>)
      return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
    else
      return a + b;
  }
};
struct Subtract {
  template <class T>
  static T Of(T a, T b) {
    if constexpr (kIsInteger<T>)
      return static_cast<T>(Wrapping<T>(a) - Wrapping<T>(b));
    else
      return a - b;
  }
};
struct Multiply {
  template <class T>
  static T Of(T a, T b) {
    if constexpr (kIsInteger<T>)
      return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b));
    else
      return a * b;
  }
};
// NaN if either value is NaN, as in np.minimum.
struct MinimumOf {
  template <class T>
  static T Of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return a < b || std::isnan(a) ? a : b;
    else
      return a < b ? a : b;
  }
};
struct MaximumOf {
  template <class T>
  static T Of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return a > b || std::isnan(a) ? a : b;
    else
      return a > b ? a : b;
  }
};

// Rounds towards minus infinity. REQUIRES: b != 0.
template <class T>
T FloorDivide(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b == T{-1}) return static_cast<T>(Wrapping<T>(0) - Wrapping<T>(a));  // the lowest wraps
    const T quotient = static_cast<T>(a / b);
    return static_cast<T>(quotient - (a % b != 0 && (a < 0) != (b < 0)));
  } else {
    return static_cast<T>(a / b);
  }
}
template <class T>
T FloorRemainder(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b == T{-1}) return 0;
    const T remainder = static_cast<T>(a % b);
    return remainder != 0 && (remainder < 0) != (b < 0) ? static_cast<T>(remainder + b) : remainder;
  } else {
    return static_cast<T>(a % b);
  }
}
// As Python's %: the result has the sign of the divisor, even if the result is zero.
template <class T>
T FloatRemainder(T a, T b) {
  const T remainder = std::fmod(a, b);
  if (b == 0) return remainder;  // NaN
  if (remainder == 0) return std::copysign(T{0}, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

template <class Op, Takes kTakes>
absl::StatusOr<std::vector<TensorSpec>> InferArithmetic(const Attrs&, InputSpecs inputs) {
  return InferBinary(inputs, kTakes);
}

template <class Op>
absl::StatusOr<Kernel> MakeArithmetic(const OpDef&, InputSpecs inputs) {
  return ForNumber(inputs[0].dtype, []<class T>() {
    return Kernel([](OpRun& run) {
      return RunBinary<T, T>(run, [](ComputedIn<T> a, ComputedIn<T> b) { return Op::Of(a, b); });
    });
  });
}
template <class Op>
absl::StatusOr<Kernel> MakeRealArithmetic(const OpDef&, InputSpecs inputs) {
  return ForReal(inputs[0].dtype, []<class T>() {
    return Kernel([](OpRun& run) {
      return RunBinary<T, T>(run, [](ComputedIn<T> a, ComputedIn<T> b) { return Op::Of(a, b); });
    });
  });
}

// Integer division notes zeros during the loop and fails after it.
template <class T, T (*kDivide)(T, T)>
absl::Status RunIntegerDivision(OpRun& run) {
  bool by_zero = false;
  RETURN_IF_ERROR((RunBinary<T, T>(run, [&by_zero](T a, T b) {
    by_zero = by_zero || b == 0;
    return b == 0 ? T{0} : kDivide(a, b);
  })));
  return by_zero ? absl::InvalidArgumentError("integer division by zero") : absl::OkStatus();
}

absl::StatusOr<Kernel> MakeDivide(const OpDef&, InputSpecs inputs) {
  return ForNumber(inputs[0].dtype, []<class T>() {
    if constexpr (kIsInteger<T>) {
      return Kernel(RunIntegerDivision<T, FloorDivide<T>>);
    } else {
      return Kernel([](OpRun& run) {
        return RunBinary<T, T>(run, [](ComputedIn<T> a, ComputedIn<T> b) { return a / b; });
      });
    }
  });
}

absl::StatusOr<Kernel> MakeRemainder(const OpDef&, InputSpecs inputs) {
  return ForReal(inputs[0].dtype, []<class T>() {
    if constexpr (kIsInteger<T>) {
      return Kernel(RunIntegerDivision<T, FloorRemainder<T>>);
    } else {
      return Kernel([](OpRun& run) { return RunBinary<T, T>(run, FloatRemainder<ComputedIn<T>>); });
    }
  });
}

template <Takes kTakes>
absl::StatusOr<std::vector<TensorSpec>> InferSameNumber(const Attrs&, InputSpecs inputs) {
  return InferUnary(inputs, kTakes);
}

absl::StatusOr<Kernel> MakeNegate(const OpDef&, InputSpecs inputs) {
  return ForNumber(inputs[0].dtype, []<class T>() {
    return Kernel([](OpRun& run) {
      return RunUnary<T, T>(run, [](ComputedIn<T> x) {
        if constexpr (kIsInteger<T>)
          return static_cast<T>(Wrapping<T>(0) - Wrapping<T>(x));
        else
          return -x;
      });
    });
  });
}

DType AbsDType(DType dtype) {
  if (dtype == kComplex64) return kFloat32;
  return dtype == kComplex128 ? kFloat64 : dtype;
}
absl::StatusOr<std::vector<TensorSpec>> InferAbs(const Attrs&, InputSpecs inputs) {
  return InferUnary(inputs, Takes::kNumber, AbsDType(inputs[0].dtype));
}
absl::StatusOr<Kernel> MakeAbs(const OpDef&, InputSpecs inputs) {
  return ForNumber(inputs[0].dtype, []<class T>() {
    return Kernel([](OpRun& run) {
      if constexpr (kIsComplex<T>) {
        return RunUnary<T, typename T::value_type>(run, [](T x) { return std::abs(x); });
      } else {
        return RunUnary<T, T>(run, [](ComputedIn<T> x) {
          if constexpr (!kIsInteger<T>)
            return std::fabs(x);
          else
            return x < T{0} ? static_cast<T>(Wrapping<T>(0) - Wrapping<T>(x)) : x;
        });
      }
    });
  });
}

template <class Op>
OpRow ArithmeticRow(absl::string_view name) {
  return {.name = name,
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = InferArithmetic<Op, Takes::kNumber>,
          .make = MakeArithmetic<Op>,
          .over_rows = OverRows::kElementwise};
}
template <class Op>
OpRow RealBinary(absl::string_view name) {
  return {.name = name,
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = InferArithmetic<Op, Takes::kReal>,
          .make = MakeRealArithmetic<Op>,
          .over_rows = OverRows::kElementwise};
}
}  // namespace

std::vector<OpRow> ArithmeticOps() {
  return {
      ArithmeticRow<Add>("Add"),
      ArithmeticRow<Subtract>("Subtract"),
      ArithmeticRow<Multiply>("Multiply"),
      {.name = "Divide",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = InferArithmetic<void, Takes::kNumber>,
       .make = MakeDivide,
       .over_rows = OverRows::kElementwise},
      {.name = "Remainder",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = InferArithmetic<void, Takes::kReal>,
       .make = MakeRemainder,
       .over_rows = OverRows::kElementwise},
      RealBinary<MinimumOf>("Minimum"),
      RealBinary<MaximumOf>("Maximum"),
      {.name = "Negate",
       .infer = InferSameNumber<Takes::kNumber>,
       .make = MakeNegate,
       .over_rows = OverRows::kTrailing},
      {.name = "Abs", .infer = InferAbs, .make = MakeAbs, .over_rows = OverRows::kTrailing},
  };
}

}  // namespace penstock
