// SPDX-License-Identifier: Apache-2.0
// Comparisons and logic; the results are bool.
#include <functional>

#include "dataplane/dataset/expr/ops/elementwise.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// Compares strings as bytes; the first difference decides.
template <class Op>
absl::Status CompareStrings(OpRun& run) {
  const Tensor& a = run.input(0);
  const Tensor& b = run.input(1);
  ASSIGN_OR_RETURN(const Dims dims, BroadcastDims(a.dims(), b.dims()));
  ASSIGN_OR_RETURN(uint8_t* const out, run.PlaceAs<uint8_t>(0, dims));
  const BroadcastWalk walk(dims, {a.dims(), b.dims()});
  walk.ForEachRow([&](const int64_t* offsets, int64_t length, int64_t first) {
    for (int64_t n = 0; n < length; ++n) {
      out[first + n] =
          Op()(a.string(offsets[0] + n * walk.step(0)), b.string(offsets[1] + n * walk.step(1)));
    }
  });
  return absl::OkStatus();
}

template <class T, class Op>
Kernel CompareValues() {
  return [](OpRun& run) {
    return RunBinary<T, uint8_t>(run, [](auto a, auto b) { return Op()(a, b); });
  };
}

template <class Op>
absl::StatusOr<Kernel> MakeOrder(const OpDef&, InputSpecs inputs) {
  if (inputs[0].dtype == kString) return Kernel(CompareStrings<Op>);
  if (inputs[0].dtype == kBool) return CompareValues<BoolByte, Op>();
  return ForReal(inputs[0].dtype, []<class T>() { return CompareValues<T, Op>(); });
}
template <class Op>
absl::StatusOr<Kernel> MakeEquality(const OpDef& def, InputSpecs inputs) {
  if (inputs[0].dtype == kComplex64) return CompareValues<std::complex<float>, Op>();
  if (inputs[0].dtype == kComplex128) return CompareValues<std::complex<double>, Op>();
  return MakeOrder<Op>(def, inputs);
}

// Complex numbers have no order.
absl::StatusOr<std::vector<TensorSpec>> InferOrder(const Attrs&, InputSpecs inputs) {
  if (IsComplex(inputs[0].dtype))
    return absl::InvalidArgumentError("argument 0 is complex, which has no order");
  return InferBinary(inputs, Takes::kAny, kBool);
}
absl::StatusOr<std::vector<TensorSpec>> InferEquality(const Attrs&, InputSpecs inputs) {
  return InferBinary(inputs, Takes::kAny, kBool);
}
absl::StatusOr<std::vector<TensorSpec>> InferLogic(const Attrs&, InputSpecs inputs) {
  return InferBinary(inputs, Takes::kBoolean, kBool);
}
absl::StatusOr<std::vector<TensorSpec>> InferLogicalNot(const Attrs&, InputSpecs inputs) {
  return InferUnary(inputs, Takes::kBoolean);
}

template <class Op>
absl::StatusOr<Kernel> MakeLogic(const OpDef&, InputSpecs) {
  return CompareValues<BoolByte, Op>();
}
absl::StatusOr<Kernel> MakeLogicalNot(const OpDef&, InputSpecs) {
  return Kernel(
      [](OpRun& run) { return RunUnary<BoolByte, uint8_t>(run, [](bool x) { return !x; }); });
}

template <class Op>
OpRow Order(absl::string_view name) {
  return {.name = name,
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = InferOrder,
          .make = MakeOrder<Op>,
          .over_rows = OverRows::kElementwise};
}
template <class Op>
OpRow Equality(absl::string_view name) {
  return {.name = name,
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = InferEquality,
          .make = MakeEquality<Op>,
          .over_rows = OverRows::kElementwise};
}
template <class Op>
OpRow Logic(absl::string_view name) {
  return {.name = name,
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = InferLogic,
          .make = MakeLogic<Op>,
          .over_rows = OverRows::kElementwise};
}

}  // namespace

std::vector<OpRow> CompareOps() {
  return {
      Equality<std::equal_to<>>("Equal"),
      Equality<std::not_equal_to<>>("NotEqual"),
      Order<std::less<>>("Less"),
      Order<std::less_equal<>>("LessEqual"),
      Order<std::greater<>>("Greater"),
      Order<std::greater_equal<>>("GreaterEqual"),
      Logic<std::logical_and<>>("And"),
      Logic<std::logical_or<>>("Or"),
      {.name = "Not",
       .infer = InferLogicalNot,
       .make = MakeLogicalNot,
       .over_rows = OverRows::kTrailing},
  };
}

}  // namespace penstock
