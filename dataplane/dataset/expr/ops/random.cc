// SPDX-License-Identifier: Apache-2.0
// RandomUniform and RandomNormal. They are counter-based: value n of an element comes from draw n.
#include "dataplane/dataset/expr/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/dtype_dispatch.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Ints = std::vector<int64_t>;
using Specs = std::vector<TensorSpec>;

// --- RandomUniform -----------------------------------------------------------------

absl::StatusOr<Specs> InferUniform(const Attrs& attrs, InputSpecs inputs) {
  const DType dtype = inputs[0].dtype;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] != Scalar(dtype)) {
      return absl::InvalidArgumentError(absl::StrCat("argument ", i, " is ", inputs[i].ToString(),
                                                     ", not a scalar of ", Name(dtype)));
    }
  }
  if (dtype != kFloat32 && dtype != kFloat64 && dtype != kInt32 && dtype != kInt64)
    return absl::InvalidArgumentError(absl::StrCat(
        "the bounds are ", Name(dtype), "; they must be float32, float64, int32 or int64"));
  const Ints& dims = Get<Ints>(attrs, "dims");
  RETURN_IF_ERROR(CountOf(dims, dtype).status());
  return Specs{Dense(dtype, Shape(dims))};
}

template <class T>
T UniformOf(uint64_t bits, T low, T high) {
  if constexpr (std::is_integral_v<T>) {
    // The high half of bits × range: as uniform as 64 bits allow.
    const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
    const auto scaled = static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * range) >> 64);
    return static_cast<T>(static_cast<uint64_t>(low) + scaled);
  } else {
    const double unit = static_cast<double>(bits >> 11) * 0x1p-53;
    const T value = static_cast<T>(low + unit * (static_cast<double>(high) - low));
    return value < high ? value : std::nextafter(high, low);  // rounding may give `high`
  }
}

template <class T>
absl::Status Uniform(OpRun& run, const Ints& dims, int64_t number) {
  const T low = *static_cast<const T*>(run.input(0).raw());
  const T high = *static_cast<const T*>(run.input(1).raw());
  if (!(low < high))
    return absl::InvalidArgumentError(absl::StrCat("there is no value in [", low, ", ", high, ")"));
  ASSIGN_OR_RETURN(T* const out, run.PlaceAs<T>(0, dims));
  ASSIGN_OR_RETURN(const int64_t count, CountOf(dims, DTypeOf<T>));
  const RandomKey key = KeyOfOp(run.random(), number);
  for (int64_t n = 0; n < count; ++n)
    out[n] = UniformOf(RandomBits(key, static_cast<uint32_t>(n)), low, high);
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeUniform(const OpDef& def, InputSpecs inputs) {
  const Ints dims = Get<Ints>(def.attrs, "dims");
  const int64_t number = Get<int64_t>(def.attrs, "random");
  const auto kernel = [&]<class T>() {
    return Kernel([dims, number](OpRun& run) { return Uniform<T>(run, dims, number); });
  };
  switch (inputs[0].dtype) {
    case DType::kInt32:
      return kernel.operator()<int32_t>();
    case DType::kInt64:
      return kernel.operator()<int64_t>();
    case DType::kFloat32:
      return kernel.operator()<float>();
    default:
      return kernel.operator()<double>();
  }
}

// --- RandomNormal ------------------------------------------------------------------

absl::StatusOr<Specs> InferNormal(const Attrs& attrs, InputSpecs) {
  const DType dtype = Get<DType>(attrs, "dtype");
  if (!IsFloating(dtype))
    return absl::InvalidArgumentError(
        absl::StrCat("dtype is ", Name(dtype), ", not floating-point"));
  const double mean = Get<double>(attrs, "mean"), stddev = Get<double>(attrs, "stddev");
  if (!std::isfinite(mean) || !std::isfinite(stddev) || stddev < 0)
    return absl::InvalidArgumentError("mean and stddev must be finite, and stddev 0 or more");
  const Ints& dims = Get<Ints>(attrs, "dims");
  RETURN_IF_ERROR(CountOf(dims, dtype).status());
  return Specs{Dense(dtype, Shape(dims))};
}

// Values 2p and 2p + 1 are Box and Muller's pair for draws 2p and 2p + 1.
template <class T>
absl::Status Normal(OpRun& run, const Attrs& attrs) {
  const Ints& dims = Get<Ints>(attrs, "dims");
  const double mean = Get<double>(attrs, "mean"), stddev = Get<double>(attrs, "stddev");
  ASSIGN_OR_RETURN(T* const out, run.PlaceAs<T>(0, dims));
  ASSIGN_OR_RETURN(const int64_t count, CountOf(dims, DTypeOf<T>));
  const RandomKey key = KeyOfOp(run.random(), Get<int64_t>(attrs, "random"));
  for (int64_t n = 0; n < count; n += 2) {
    const double radius =
        std::sqrt(-2 * std::log(1 - RandomUnit(key, static_cast<uint32_t>(n))));  // (0, 1]
    const double angle = 2 * std::numbers::pi * RandomUnit(key, static_cast<uint32_t>(n + 1));
    out[n] = Narrow<T>(mean + stddev * radius * std::cos(angle));
    if (n + 1 < count) out[n + 1] = Narrow<T>(mean + stddev * radius * std::sin(angle));
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeNormal(const OpDef& def, InputSpecs) {
  return ForFloating(Get<DType>(def.attrs, "dtype"), [&]<class T>() {
    return Kernel([attrs = def.attrs](OpRun& run) { return Normal<T>(run, attrs); });
  });
}

}  // namespace

std::vector<OpRow> RandomOps() {
  constexpr size_t kDims = kAttrIndex<Ints>;
  constexpr size_t kNumber = kAttrIndex<int64_t>;
  constexpr size_t kReal = kAttrIndex<double>;
  return {
      {.name = "RandomUniform",
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {{"dims", kDims}, {"random", kNumber}},
       .infer = InferUniform,
       .make = MakeUniform,
       .random = true},
      {.name = "RandomNormal",
       .min_inputs = 0,
       .max_inputs = 0,
       .attrs = {{"dims", kDims},
                 {"mean", kReal},
                 {"stddev", kReal},
                 {"dtype", kAttrIndex<DType>},
                 {"random", kNumber}},
       .infer = InferNormal,
       .make = MakeNormal,
       .random = true},
  };
}

}  // namespace penstock
