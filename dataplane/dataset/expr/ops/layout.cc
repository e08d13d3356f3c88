// SPDX-License-Identifier: Apache-2.0
// Operations that change the dims and places of values: ExpandDims, Squeeze, Transpose,
// BroadcastTo, Tile, Reverse, StridedSlice, Pad.
#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "dataplane/dataset/expr/axes.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/expr/ops/moved_values.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Ints = std::vector<int64_t>;
using Specs = std::vector<TensorSpec>;

Specs OneOutput(const TensorSpec& like, absl::Span<const int64_t> dims) {
  return {Dense(like.dtype, Shape(Ints(dims.begin(), dims.end())))};
}
Specs UnknownOutput(const TensorSpec& like) {
  return {Dense(like.dtype, Shape::UnknownRank())};
}

// Returns the result's dims from the input's dims, some of which may be unknown.
using DimsOf = absl::StatusOr<Dims> (*)(const Attrs& attrs, absl::Span<const int64_t> dims);

// Infers operations whose result's dims follow from the attributes and the input's dims.
template <DimsOf kDimsOf>
absl::StatusOr<Specs> InferDims(const Attrs& attrs, InputSpecs inputs) {
  if (!inputs[0].shape.has_rank()) return UnknownOutput(inputs[0]);
  ASSIGN_OR_RETURN(const Dims dims, kDimsOf(attrs, inputs[0].shape.dims()));
  return OneOutput(inputs[0], dims);
}

template <DimsOf kDimsOf>
absl::StatusOr<Kernel> MakeView(const OpDef& def, InputSpecs) {
  return Kernel([attrs = def.attrs](OpRun& run) -> absl::Status {
    ASSIGN_OR_RETURN(const Dims dims, kDimsOf(attrs, run.input(0).dims()));
    return ViewAs(run, run.input(0), dims);
  });
}

// --- ExpandDims, Squeeze -----------------------------------------------------------

absl::StatusOr<Dims> ExpandedDims(const Attrs& attrs, absl::Span<const int64_t> dims) {
  const Ints& axes = Get<Ints>(attrs, "axes");
  ASSIGN_OR_RETURN(const std::vector<bool> added,
                   MarkAxes(axes, static_cast<int>(dims.size() + axes.size())));
  Dims result;
  size_t next = 0;
  for (bool is_added : added) result.push_back(is_added ? 1 : dims[next++]);
  return result;
}

absl::StatusOr<Dims> SqueezedDims(const Attrs& attrs, absl::Span<const int64_t> dims) {
  ASSIGN_OR_RETURN(const std::vector<bool> dropped,
                   MarkAxes(Get<Ints>(attrs, "axes"), static_cast<int>(dims.size())));
  Dims result;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!dropped[i]) {
      result.push_back(dims[i]);
    } else if (dims[i] != 1 && dims[i] != kUnknownDim) {
      return absl::InvalidArgumentError(absl::StrCat(
          "dimension ", i, " is ", dims[i], "; only a dimension of size 1 can be dropped"));
    }
  }
  return result;
}

// --- Transpose -----------------------------------------------------------------------

// Returns the input's axis for each axis of the result.
absl::StatusOr<Dims> Permutation(const Attrs& attrs, size_t rank) {
  const Ints& given = Get<Ints>(attrs, "permutation");
  Dims permutation(given.begin(), given.end());
  if (given.empty()) {
    permutation.resize(rank);
    std::iota(permutation.rbegin(), permutation.rend(), 0);
  }
  if (permutation.size() != rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("the permutation has ", permutation.size(), " axes for rank ", rank));
  }
  RETURN_IF_ERROR(MarkAxes(permutation, static_cast<int>(rank)).status());
  for (int64_t& axis : permutation) axis = axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
  return permutation;
}

absl::StatusOr<Dims> TransposedDims(const Attrs& attrs, absl::Span<const int64_t> dims) {
  ASSIGN_OR_RETURN(Dims permutation, Permutation(attrs, dims.size()));
  for (int64_t& axis : permutation) axis = dims[axis];
  return permutation;
}

absl::Status Transpose(OpRun& run, const Attrs& attrs) {
  const Tensor& x = run.input(0);
  ASSIGN_OR_RETURN(const Dims permutation, Permutation(attrs, x.rank()));
  const AllPlaces from = PlacesOf(x);
  Dims dims;
  AllPlaces axes;
  for (int64_t axis : permutation) {
    dims.push_back(x.dim(static_cast<int>(axis)));
    axes.push_back(from[axis]);
  }
  return MoveValues(run, x, dims, axes);
}

// --- BroadcastTo ---------------------------------------------------------------------

// OK if `dims`, some of which may be unknown, can be repeated to `wanted`.
absl::Status CheckBroadcast(absl::Span<const int64_t> dims, absl::Span<const int64_t> wanted) {
  bool fits = dims.size() <= wanted.size();
  for (size_t back = 1; fits && back <= dims.size(); ++back) {
    const int64_t dim = dims[dims.size() - back];
    fits = dim == 1 || dim == kUnknownDim || dim == wanted[wanted.size() - back];
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("[", absl::StrJoin(dims, ","),
                                                 "] cannot be broadcast to [",
                                                 absl::StrJoin(wanted, ","), "]"));
}

absl::StatusOr<Specs> InferBroadcastTo(const Attrs& attrs, InputSpecs inputs) {
  const Ints& dims = Get<Ints>(attrs, "dims");
  RETURN_IF_ERROR(CountOf(dims, kInt8).status());
  if (inputs[0].shape.has_rank()) RETURN_IF_ERROR(CheckBroadcast(inputs[0].shape.dims(), dims));
  return OneOutput(inputs[0], dims);
}

absl::Status BroadcastTo(OpRun& run, const Attrs& attrs) {
  const Tensor& x = run.input(0);
  const Ints& dims = Get<Ints>(attrs, "dims");
  RETURN_IF_ERROR(CheckBroadcast(x.dims(), dims));
  const Dims strides = StridesOf(x.dims());
  AllPlaces axes;
  const size_t added = dims.size() - x.rank();
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool repeated = i < added || x.dim(static_cast<int>(i - added)) == 1;
    axes.push_back({.size = dims[i], .step = repeated ? 0 : strides[i - added]});
  }
  return MoveValues(run, x, dims, axes);
}

// --- Tile ------------------------------------------------------------------------------

absl::StatusOr<Dims> TiledDims(const Attrs& attrs, absl::Span<const int64_t> dims) {
  const Ints& multiples = Get<Ints>(attrs, "multiples");
  if (multiples.size() != dims.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", multiples.size(), " multiples for rank ", dims.size()));
  }
  RETURN_IF_ERROR(CountOf(multiples, kInt8).status());  // checks that none is negative or too large
  Dims result;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] > 0) RETURN_IF_ERROR(CountOf({dims[i], multiples[i]}, kInt8).status());
    result.push_back(dims[i] == kUnknownDim ? kUnknownDim : dims[i] * multiples[i]);
  }
  return result;
}

absl::Status Tile(OpRun& run, const Attrs& attrs) {
  const Tensor& x = run.input(0);
  ASSIGN_OR_RETURN(const Dims dims, TiledDims(attrs, x.dims()));
  const Ints& multiples = Get<Ints>(attrs, "multiples");
  AllPlaces axes;
  for (int64_t i = 0; const AxisPlaces& axis : PlacesOf(x)) {
    axes.push_back({.size = multiples[i++]});  // repeats the same values
    axes.push_back(axis);
  }
  return MoveValues(run, x, dims, axes);
}

// --- Reverse ---------------------------------------------------------------------------

absl::StatusOr<Dims> ReversedDims(const Attrs& attrs, absl::Span<const int64_t> dims) {
  RETURN_IF_ERROR(MarkAxes(Get<Ints>(attrs, "axes"), static_cast<int>(dims.size())).status());
  return Dims(dims.begin(), dims.end());
}

absl::Status Reverse(OpRun& run, const Attrs& attrs) {
  const Tensor& x = run.input(0);
  ASSIGN_OR_RETURN(const std::vector<bool> reversed, MarkAxes(Get<Ints>(attrs, "axes"), x.rank()));
  AllPlaces axes = PlacesOf(x);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!reversed[i]) continue;
    axes[i].first = (axes[i].size - 1) * axes[i].step;
    axes[i].step = -axes[i].step;
  }
  return MoveValues(run, x, x.dims(), axes);
}

// --- StridedSlice ------------------------------------------------------------------------

struct Stride {
  int64_t begin, count;
};

// Python's slice of a dimension of size `dim`.
Stride SliceOf(int64_t dim, int64_t begin, int64_t end, int64_t step) {
  const int64_t lowest = step > 0 ? 0 : -1;
  const int64_t highest = step > 0 ? dim : dim - 1;
  const auto place = [&](int64_t at) {
    return at < 0 ? std::max(at + dim, lowest) : std::min(at, highest);
  };
  const int64_t first = place(begin), last = place(end);
  const int64_t distance = step > 0 ? last - first : first - last;
  if (distance <= 0) return {0, 0};
  const int64_t stride = step > 0 ? step : -step;
  return {first, (distance - 1) / stride + 1};
}

absl::Status CheckStrides(const Attrs& attrs, size_t rank) {
  const Ints& step = Get<Ints>(attrs, "step");
  if (Get<Ints>(attrs, "begin").size() != step.size() ||
      Get<Ints>(attrs, "end").size() != step.size())
    return absl::InvalidArgumentError("begin, end and step have different lengths");
  if (step.size() > rank)
    return absl::InvalidArgumentError(absl::StrCat("got ", step.size(), " ranges for rank ", rank));
  for (int64_t each : step)
    if (each == 0 || each == std::numeric_limits<int64_t>::min())
      return absl::InvalidArgumentError(absl::StrCat("step must not be ", each));
  return absl::OkStatus();
}

absl::StatusOr<Dims> StridedDims(const Attrs& attrs, absl::Span<const int64_t> dims) {
  RETURN_IF_ERROR(CheckStrides(attrs, dims.size()));
  const Ints& begin = Get<Ints>(attrs, "begin");
  const Ints& end = Get<Ints>(attrs, "end");
  const Ints& step = Get<Ints>(attrs, "step");
  Dims result(dims.begin(), dims.end());
  for (size_t i = 0; i < step.size(); ++i)
    if (dims[i] != kUnknownDim) result[i] = SliceOf(dims[i], begin[i], end[i], step[i]).count;
  return result;
}

absl::Status StridedSlice(OpRun& run, const Attrs& attrs) {
  const Tensor& x = run.input(0);
  ASSIGN_OR_RETURN(const Dims dims, StridedDims(attrs, x.dims()));
  const Ints& begin = Get<Ints>(attrs, "begin");
  const Ints& end = Get<Ints>(attrs, "end");
  const Ints& step = Get<Ints>(attrs, "step");
  AllPlaces axes = PlacesOf(x);
  for (size_t i = 0; i < step.size(); ++i) {
    const Stride slice = SliceOf(x.dim(static_cast<int>(i)), begin[i], end[i], step[i]);
    // If the range has a single value, the step is not used: it may lead outside the tensor.
    axes[i] = {.size = slice.count,
               .first = slice.begin * axes[i].step,
               .step = slice.count > 1 ? axes[i].step * step[i] : 0};
  }
  return MoveValues(run, x, dims, axes);
}

// --- Pad -----------------------------------------------------------------------------------

enum Mode : int64_t { kConstant = 0, kReflect = 1, kSymmetric = 2 };

absl::StatusOr<Dims> PaddedDims(const Attrs& attrs, absl::Span<const int64_t> dims) {
  const Ints& before = Get<Ints>(attrs, "before");
  const Ints& after = Get<Ints>(attrs, "after");
  const int64_t mode = Get<int64_t>(attrs, "mode");
  if (before.size() != dims.size() || after.size() != dims.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("got paddings for ", before.size(), " axes, but the rank is ", dims.size()));
  }
  if (mode < kConstant || mode > kSymmetric)
    return absl::InvalidArgumentError(absl::StrCat("unknown mode number ", mode));
  Dims result;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t larger = std::max(before[i], after[i]);
    if (std::min(before[i], after[i]) < 0)
      return absl::InvalidArgumentError("a padding is negative");
    RETURN_IF_ERROR(CountOf({larger}, kInt8).status());
    const int64_t most = dims[i] - (mode == kReflect ? 1 : 0);
    if (mode != kConstant && dims[i] != kUnknownDim && larger > most) {
      return absl::InvalidArgumentError(
          absl::StrCat("a mirrored padding of ", larger, " is too large for ", dims[i], " values"));
    }
    result.push_back(dims[i] == kUnknownDim ? kUnknownDim : before[i] + dims[i] + after[i]);
  }
  return result;
}

absl::StatusOr<Specs> InferPad(const Attrs& attrs, InputSpecs inputs) {
  if (inputs.size() == 2 && inputs[1] != Scalar(inputs[0].dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("the value is ", inputs[1].ToString(),
                                                   ", not a scalar of ", Name(inputs[0].dtype)));
  }
  return InferDims<PaddedDims>(attrs, inputs);
}

// Returns the place in a row of `size` values that stands for `at`, which may be outside the row.
int64_t Mirrored(int64_t at, int64_t size, int64_t mode) {
  if (at >= 0 && at < size) return at;
  if (mode == kConstant) return AxisPlaces::kFilling;
  const int64_t edge = mode == kSymmetric ? 1 : 0;
  return at < 0 ? -at - edge : 2 * (size - 1) - at + edge;
}

absl::Status Pad(OpRun& run, const Attrs& attrs) {
  const Tensor& x = run.input(0);
  ASSIGN_OR_RETURN(const Dims dims, PaddedDims(attrs, x.dims()));
  const Ints& before = Get<Ints>(attrs, "before");
  const int64_t mode = Get<int64_t>(attrs, "mode");
  AllPlaces axes = PlacesOf(x);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (dims[i] == x.dim(static_cast<int>(i))) continue;
    ASSIGN_OR_RETURN(int64_t* const table, PlaceTable(run, dims[i]));
    for (int64_t n = 0; n < dims[i]; ++n) {
      const int64_t from = Mirrored(n - before[i], axes[i].size, mode);
      table[n] = from == AxisPlaces::kFilling ? from : from * axes[i].step;
    }
    axes[i] = {.size = dims[i], .table = table};
  }
  return MoveValues(run, x, dims, axes, run.input_count() == 2 ? &run.input(1) : nullptr);
}

template <absl::Status (*kRun)(OpRun&, const Attrs&)>
absl::StatusOr<Kernel> MakeLayout(const OpDef& def, InputSpecs) {
  return Kernel([attrs = def.attrs](OpRun& run) { return kRun(run, attrs); });
}

}  // namespace

std::vector<OpRow> LayoutOps() {
  constexpr size_t kInts = kAttrIndex<Ints>;
  return {
      {.name = "ExpandDims",
       .attrs = {{"axes", kInts}},
       .infer = InferDims<ExpandedDims>,
       .make = MakeView<ExpandedDims>,
       .over_rows = OverRows::kView},
      {.name = "Squeeze",
       .attrs = {{"axes", kInts}},
       .infer = InferDims<SqueezedDims>,
       .make = MakeView<SqueezedDims>,
       .over_rows = OverRows::kView},
      {.name = "Transpose",
       .attrs = {{"permutation", kInts}},
       .infer = InferDims<TransposedDims>,
       .make = MakeLayout<Transpose>},
      {.name = "BroadcastTo",
       .attrs = {{"dims", kInts}},
       .infer = InferBroadcastTo,
       .make = MakeLayout<BroadcastTo>},
      {.name = "Tile",
       .attrs = {{"multiples", kInts}},
       .infer = InferDims<TiledDims>,
       .make = MakeLayout<Tile>},
      {.name = "Reverse",
       .attrs = {{"axes", kInts}},
       .infer = InferDims<ReversedDims>,
       .make = MakeLayout<Reverse>},
      {.name = "StridedSlice",
       .attrs = {{"begin", kInts}, {"end", kInts}, {"step", kInts}},
       .infer = InferDims<StridedDims>,
       .make = MakeLayout<StridedSlice>},
      {.name = "Pad",
       .max_inputs = 2,
       .attrs = {{"before", kInts}, {"after", kInts}, {"mode", kAttrIndex<int64_t>}},
       .infer = InferPad,
       .make = MakeLayout<Pad>},
  };
}

}  // namespace penstock
