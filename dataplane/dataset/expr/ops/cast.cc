// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "dataplane/dataset/expr/ops/elementwise.h"

namespace penstock {
namespace {

// Converts a float to an integer, towards zero. A value that does not fit becomes the nearest
// integer that does; NaN becomes 0. (In C++ these conversions are undefined; in NumPy their result
// depends on the machine.)
template <class To, class From>
To Truncate(From x) {
  // The bounds as floats: the lowest is exact, the highest may round up to the first value that
  // does not fit.
  constexpr From kLowest = static_cast<From>(std::numeric_limits<To>::lowest());
  constexpr From kHighest = static_cast<From>(std::numeric_limits<To>::max());
  if (x >= kHighest) return std::numeric_limits<To>::max();
  if (x <= kLowest) return std::numeric_limits<To>::lowest();
  return x == x ? static_cast<To>(x) : To{0};
}

template <class To, class From>
To Convert(From x) {
  if constexpr (kIsComplex<To>) {
    if constexpr (kIsComplex<From>) {
      return To(x);
    } else {
      return To(static_cast<typename To::value_type>(x));
    }
  } else if constexpr (kIsHalf<To>) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_floating_point_v<From> && kIsInteger<To>) {
    return Truncate<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <class From>
Kernel CastFrom(DType to) {
  if (to == kBool) {
    return [](OpRun& run) {
      return RunUnary<From, uint8_t>(run, [](auto x) { return x != decltype(x){}; });
    };
  }
  if constexpr (kIsComplex<From>) {
    if (to == kComplex64)
      return [](OpRun& run) {
        return RunUnary<From, std::complex<float>>(run, Convert<std::complex<float>, From>);
      };
    return [](OpRun& run) {
      return RunUnary<From, std::complex<double>>(run, Convert<std::complex<double>, From>);
    };
  } else {
    return ForNumber(to, []<class To>() {
      return Kernel([](OpRun& run) {
        return RunUnary<From, To>(run, [](auto x) { return Convert<To>(x); });
      });
    });
  }
}

absl::StatusOr<std::vector<TensorSpec>> InferCast(const Attrs& attrs, InputSpecs inputs) {
  const DType to = Get<DType>(attrs, "dtype");
  const DType from = inputs[0].dtype;
  if (!IsKnown(to)) return absl::InvalidArgumentError("unknown dtype");
  if (from == to) return InferUnary(inputs, Takes::kAny);
  if (from == kString || to == kString) {
    return absl::InvalidArgumentError(absl::StrCat("cannot cast from ", Name(from), " to ",
                                                   Name(to), "; use StringToNumber or DecodeRaw"));
  }
  if (IsComplex(from) && !IsComplex(to) && to != kBool) {
    return absl::InvalidArgumentError(absl::StrCat("a cast from ", Name(from), " to ", Name(to),
                                                   " would drop the imaginary part"));
  }
  return InferUnary(inputs, Takes::kAny, to);
}

absl::StatusOr<Kernel> MakeCast(const OpDef& def, InputSpecs inputs) {
  const DType from = inputs[0].dtype;
  const DType to = Get<DType>(def.attrs, "dtype");
  if (from == to) return Kernel([](OpRun& run) { return run.View(0, run.input(0)); });
  if (from == kBool) return CastFrom<BoolByte>(to);
  return ForNumber(from, [to]<class From>() { return CastFrom<From>(to); });
}

}  // namespace

std::vector<OpRow> CastOps() {
  return {{.name = "Cast",
           .attrs = {{"dtype", kAttrIndex<DType>}},
           .infer = InferCast,
           .make = MakeCast,
           .over_rows = OverRows::kTrailing}};
}

}  // namespace penstock
