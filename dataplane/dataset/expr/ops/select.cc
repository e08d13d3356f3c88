// SPDX-License-Identifier: Apache-2.0
// Where and OneHot.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/broadcast.h"
#include "dataplane/dataset/expr/ops/elementwise.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

absl::StatusOr<std::vector<TensorSpec>> InferWhere(const Attrs&, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckTakes(Takes::kBoolean, inputs[0].dtype, 0));
  if (inputs[1].dtype != inputs[2].dtype) {
    return absl::InvalidArgumentError(absl::StrCat("argument 1 is ", Name(inputs[1].dtype),
                                                   " and argument 2 is ", Name(inputs[2].dtype),
                                                   "; Cast one of them"));
  }
  ASSIGN_OR_RETURN(const Shape both, BroadcastShapes(inputs[1].shape, inputs[2].shape));
  ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(inputs[0].shape, both));
  return std::vector<TensorSpec>{Dense(inputs[1].dtype, std::move(shape))};
}

absl::StatusOr<Dims> WhereDims(const OpRun& run) {
  ASSIGN_OR_RETURN(const Dims both, BroadcastDims(run.input(1).dims(), run.input(2).dims()));
  return BroadcastDims(run.input(0).dims(), both);
}

template <class Value>
absl::Status Where(OpRun& run) {
  ASSIGN_OR_RETURN(const Dims dims, WhereDims(run));
  ASSIGN_OR_RETURN(Value* const out, run.PlaceAs<Value>(0, dims));
  const auto* condition = static_cast<const uint8_t*>(run.input(0).raw());
  const auto* a = static_cast<const Value*>(run.input(1).raw());
  const auto* b = static_cast<const Value*>(run.input(2).raw());
  const BroadcastWalk walk(dims, {run.input(0).dims(), run.input(1).dims(), run.input(2).dims()});
  walk.ForEachRow([&](const int64_t* offsets, int64_t length, int64_t first) {
    for (int64_t n = 0; n < length; ++n) {
      out[first + n] = condition[offsets[0] + n * walk.step(0)] != 0
                           ? a[offsets[1] + n * walk.step(1)]
                           : b[offsets[2] + n * walk.step(2)];
    }
  });
  return absl::OkStatus();
}

absl::Status WhereStrings(OpRun& run) {
  ASSIGN_OR_RETURN(const Dims dims, WhereDims(run));
  std::vector<std::string_view> chosen;
  const auto* condition = static_cast<const uint8_t*>(run.input(0).raw());
  const BroadcastWalk walk(dims, {run.input(0).dims(), run.input(1).dims(), run.input(2).dims()});
  walk.ForEachRow([&](const int64_t* offsets, int64_t length, int64_t) {
    for (int64_t n = 0; n < length; ++n) {
      const int from = condition[offsets[0] + n * walk.step(0)] != 0 ? 1 : 2;
      chosen.push_back(run.input(from).string(offsets[from] + n * walk.step(from)));
    }
  });
  return run.Strings(0, dims, [&](int64_t n) { return chosen[n]; });
}

absl::StatusOr<Kernel> MakeWhere(const OpDef&, InputSpecs inputs) {
  if (inputs[1].dtype == kString) return Kernel(WhereStrings);
  return ForWidth(inputs[1].dtype, []<class Value>() { return Kernel(Where<Value>); });
}

absl::StatusOr<std::vector<TensorSpec>> InferOneHot(const Attrs& attrs, InputSpecs inputs) {
  const DType dtype = Get<DType>(attrs, "dtype");
  const int64_t depth = Get<int64_t>(attrs, "depth");
  RETURN_IF_ERROR(CheckTakes(Takes::kInteger, inputs[0].dtype, 0));
  if (depth < 0)
    return absl::InvalidArgumentError(absl::StrCat("depth must be 0 or more, not ", depth));
  if (!IsKnown(dtype) || (dtype != kBool && !Fits(Takes::kNumber, dtype)))
    return absl::InvalidArgumentError(
        absl::StrCat("dtype is ", Name(dtype), "; it must be bool or a number"));
  if (!inputs[0].shape.has_rank())
    return std::vector<TensorSpec>{Dense(dtype, Shape::UnknownRank())};
  std::vector<int64_t> dims(inputs[0].shape.dims().begin(), inputs[0].shape.dims().end());
  dims.push_back(depth);
  return std::vector<TensorSpec>{Dense(dtype, Shape(std::move(dims)))};
}

// An index outside the row gives a row of zeros, as in TensorFlow.
template <class Index, class T>
Kernel OneHotOf(int64_t depth, T one) {
  return [depth, one](OpRun& run) -> absl::Status {
    const Tensor& indices = run.input(0);
    Dims dims(indices.dims().begin(), indices.dims().end());
    dims.push_back(depth);
    ASSIGN_OR_RETURN(const absl::Span<std::byte> bytes, run.Place(0, dims));
    if (bytes.empty()) return absl::OkStatus();
    std::memset(bytes.data(), 0, bytes.size());
    T* row = reinterpret_cast<T*>(bytes.data());
    const auto* at = static_cast<const Index*>(indices.raw());
    for (int64_t n = 0; n < indices.element_count(); ++n, row += depth)
      if (at[n] >= 0 && static_cast<uint64_t>(at[n]) < static_cast<uint64_t>(depth))
        row[at[n]] = one;
    return absl::OkStatus();
  };
}

absl::StatusOr<Kernel> MakeOneHot(const OpDef& def, InputSpecs inputs) {
  const int64_t depth = Get<int64_t>(def.attrs, "depth");
  const DType dtype = Get<DType>(def.attrs, "dtype");
  return ForInteger(inputs[0].dtype, [&]<class Index>() {
    if (dtype == kBool) return OneHotOf<Index, uint8_t>(depth, 1);
    return ForNumber(dtype, [&]<class T>() {
      if constexpr (kIsHalf<T>)
        return OneHotOf<Index, T>(depth, T(1.0f));
      else
        return OneHotOf<Index, T>(depth, T{1});
    });
  });
}

}  // namespace

std::vector<OpRow> SelectOps() {
  return {
      {.name = "Where",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = InferWhere,
       .make = MakeWhere,
       .over_rows = OverRows::kElementwise},
      {.name = "OneHot",
       .attrs = {{"depth", kAttrIndex<int64_t>}, {"dtype", kAttrIndex<DType>}},
       .infer = InferOneHot,
       .make = MakeOneHot,
       .over_rows = OverRows::kTrailing},
  };
}

}  // namespace penstock
