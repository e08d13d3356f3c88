// SPDX-License-Identifier: Apache-2.0
// The bits of integers: and, or, exclusive or, complement, shifts.
#include <functional>
#include <limits>

#include "dataplane/dataset/expr/ops/elementwise.h"

namespace penstock {
namespace {

absl::StatusOr<std::vector<TensorSpec>> InferBits(const Attrs&, InputSpecs inputs) {
  return InferBinary(inputs, Takes::kInteger);
}
absl::StatusOr<std::vector<TensorSpec>> InferBitNot(const Attrs&, InputSpecs inputs) {
  return InferUnary(inputs, Takes::kInteger);
}

template <class Op>
absl::StatusOr<Kernel> MakeBits(const OpDef&, InputSpecs inputs) {
  return ForInteger(inputs[0].dtype, []<class T>() {
    return Kernel([](OpRun& run) {
      return RunBinary<T, T>(run, [](T a, T b) { return static_cast<T>(Op()(a, b)); });
    });
  });
}
absl::StatusOr<Kernel> MakeBitNot(const OpDef&, InputSpecs inputs) {
  return ForInteger(inputs[0].dtype, []<class T>() {
    return Kernel(
        [](OpRun& run) { return RunUnary<T, T>(run, [](T x) { return static_cast<T>(~x); }); });
  });
}

// True if the count is negative or at least the number of bits: all bits are shifted out, as in
// NumPy.
template <class T>
bool ShiftsAllOut(T count) {
  return static_cast<std::make_unsigned_t<T>>(count) >= sizeof(T) * 8;
}
struct Left {
  template <class T>
  T operator()(T x, T count) const {
    if (ShiftsAllOut(count)) return 0;
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) << count);
  }
};
struct Right {
  template <class T>
  T operator()(T x, T count) const {
    if (ShiftsAllOut(count)) return x < T{0} ? static_cast<T>(-1) : T{0};
    return static_cast<T>(x >> count);
  }
};

template <class Op>
OpRow BitwiseRow(absl::string_view name) {
  return {.name = name,
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = InferBits,
          .make = MakeBits<Op>,
          .over_rows = OverRows::kElementwise};
}

}  // namespace

std::vector<OpRow> BitOps() {
  return {
      BitwiseRow<std::bit_and<>>("BitAnd"),
      BitwiseRow<std::bit_or<>>("BitOr"),
      BitwiseRow<std::bit_xor<>>("BitXor"),
      BitwiseRow<Left>("ShiftLeft"),
      BitwiseRow<Right>("ShiftRight"),
      {.name = "BitNot",
       .infer = InferBitNot,
       .make = MakeBitNot,
       .over_rows = OverRows::kTrailing},
  };
}

}  // namespace penstock
