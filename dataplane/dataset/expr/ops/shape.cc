// SPDX-License-Identifier: Apache-2.0
// Reshape, ShapeOf, Size, Slice, Index and Gather: they move values and compute none.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "dataplane/dataset/expr/axes.h"
#include "dataplane/dataset/expr/broadcast.h"
#include "dataplane/dataset/expr/dtype_dispatch.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/expr/ops/moved_values.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Specs = std::vector<TensorSpec>;

std::string DimsText(absl::Span<const int64_t> dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ","), "]");
}

// --- Reshape -----------------------------------------------------------------

absl::StatusOr<Dims> FilledDims(absl::Span<const int64_t> dims, int64_t count) {
  Dims result(dims.begin(), dims.end());
  int64_t known = 1;
  for (int64_t dim : result) known *= dim == -1 ? 1 : dim;
  for (int64_t& dim : result) {
    if (dim == -1 && known > 0 && count % known == 0) {
      dim = count / known;
      known *= dim;
    }
  }
  const bool filled = std::find(result.begin(), result.end(), -1) == result.end();
  if (!filled || known != count) {
    return absl::InvalidArgumentError(
        absl::StrCat(count, " values do not fill the shape ", DimsText(dims)));
  }
  return result;
}

absl::StatusOr<Specs> InferReshape(const Attrs& attrs, InputSpecs inputs) {
  const auto& dims = Get<std::vector<int64_t>>(attrs, "dims");
  Dims known;
  for (int64_t dim : dims) {
    if (dim < -1)
      return absl::InvalidArgumentError(absl::StrCat("a dimension is less than -1: ", dim));
    if (dim != -1) known.push_back(dim);
  }
  if (known.size() + 1 < dims.size())
    return absl::InvalidArgumentError("more than one dimension is -1");
  RETURN_IF_ERROR(CountOf(known, kInt8).status());
  Shape shape(dims);
  if (inputs[0].shape.IsStatic()) {
    ASSIGN_OR_RETURN(const Dims filled, FilledDims(dims, inputs[0].shape.ElementCount()));
    shape = Shape(std::vector<int64_t>(filled.begin(), filled.end()));
  }
  return Specs{Dense(inputs[0].dtype, std::move(shape))};
}

absl::StatusOr<Kernel> MakeReshape(const OpDef& def, InputSpecs) {
  return Kernel([dims = Get<std::vector<int64_t>>(def.attrs, "dims")](OpRun& run) -> absl::Status {
    const Tensor& x = run.input(0);
    ASSIGN_OR_RETURN(const Dims filled, FilledDims(dims, x.element_count()));
    return ViewAs(run, x, filled);
  });
}

// --- ShapeOf, Size -----------------------------------------------------------

absl::StatusOr<Specs> InferShapeOf(const Attrs&, InputSpecs inputs) {
  const Shape& shape = inputs[0].shape;
  return Specs{Dense(kInt64, {shape.has_rank() ? shape.rank() : kUnknownDim})};
}

absl::StatusOr<Kernel> MakeShapeOf(const OpDef&, InputSpecs) {
  return Kernel([](OpRun& run) -> absl::Status {
    const auto dims = run.input(0).dims();
    ASSIGN_OR_RETURN(int64_t* const out,
                     run.PlaceAs<int64_t>(0, {static_cast<int64_t>(dims.size())}));
    std::copy(dims.begin(), dims.end(), out);
    return absl::OkStatus();
  });
}

absl::StatusOr<Specs> InferSize(const Attrs&, InputSpecs) {
  return Specs{Scalar(kInt64)};
}

absl::StatusOr<Kernel> MakeSize(const OpDef&, InputSpecs) {
  return Kernel([](OpRun& run) -> absl::Status {
    ASSIGN_OR_RETURN(int64_t* const out, run.PlaceAs<int64_t>(0, {}));
    *out = run.input(0).element_count();
    return absl::OkStatus();
  });
}

// --- Slice -------------------------------------------------------------------

// Returns the dims of a slice of `dims`; a size of -1 extends to the end.
absl::StatusOr<Dims> SlicedDims(absl::Span<const int64_t> dims, absl::Span<const int64_t> begin,
                                absl::Span<const int64_t> size) {
  if (dims.size() != begin.size()) {
    return absl::InvalidArgumentError(absl::StrCat("begin and size have ", begin.size(),
                                                   " numbers for the shape ", DimsText(dims)));
  }
  Dims result;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == kUnknownDim) {
      result.push_back(size[i] == -1 ? kUnknownDim : size[i]);
      continue;
    }
    if (begin[i] > dims[i] || (size[i] != -1 && size[i] > dims[i] - begin[i])) {
      return absl::InvalidArgumentError(absl::StrCat("begin ", DimsText(begin), " and size ",
                                                     DimsText(size), " extend outside ",
                                                     DimsText(dims)));
    }
    result.push_back(size[i] == -1 ? dims[i] - begin[i] : size[i]);
  }
  return result;
}

absl::StatusOr<Specs> InferSlice(const Attrs& attrs, InputSpecs inputs) {
  const auto& begin = Get<std::vector<int64_t>>(attrs, "begin");
  const auto& size = Get<std::vector<int64_t>>(attrs, "size");
  if (begin.size() != size.size())
    return absl::InvalidArgumentError("begin and size have different lengths");
  for (size_t i = 0; i < begin.size(); ++i)
    if (begin[i] < 0 || size[i] < -1)
      return absl::InvalidArgumentError("begin must be at least 0 and size at least -1");
  if (!inputs[0].shape.has_rank())
    return Specs{Dense(inputs[0].dtype, Shape(std::vector<int64_t>(begin.size(), kUnknownDim)))};
  ASSIGN_OR_RETURN(const Dims dims, SlicedDims(inputs[0].shape.dims(), begin, size));
  return Specs{Dense(inputs[0].dtype, Shape(std::vector<int64_t>(dims.begin(), dims.end())))};
}

// Calls row(from, to, length) for each row of the slice, with the places of the row's first value
// in the input and in the slice.
template <class Row>
void ForEachSlicedRow(absl::Span<const int64_t> dims, absl::Span<const int64_t> begin,
                      absl::Span<const int64_t> sliced, Row&& row) {
  const int rank = static_cast<int>(dims.size());
  int64_t rows = 1;
  for (int i = 0; i + 1 < rank; ++i) rows *= sliced[i];
  const int64_t length = rank == 0 ? 1 : sliced[rank - 1];
  if (length == 0) return;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t from = rank == 0 ? 0 : begin[rank - 1];
    int64_t left = r, stride = rank == 0 ? 1 : dims[rank - 1];
    for (int i = rank - 2; i >= 0; --i) {
      from += (begin[i] + left % sliced[i]) * stride;
      left /= sliced[i];
      stride *= dims[i];
    }
    row(from, r * length, length);
  }
}

absl::StatusOr<Kernel> MakeSlice(const OpDef& def, InputSpecs inputs) {
  return Kernel([begin = Get<std::vector<int64_t>>(def.attrs, "begin"),
                 size = Get<std::vector<int64_t>>(def.attrs, "size"),
                 dtype = inputs[0].dtype](OpRun& run) -> absl::Status {
    const Tensor& x = run.input(0);
    ASSIGN_OR_RETURN(const Dims dims, SlicedDims(x.dims(), begin, size));
    if (dtype == kString) {
      std::vector<int64_t> places;
      ForEachSlicedRow(x.dims(), begin, dims, [&](int64_t from, int64_t, int64_t length) {
        for (int64_t n = 0; n < length; ++n) places.push_back(from + n);
      });
      return run.Strings(0, dims, [&](int64_t n) { return x.string(places[n]); });
    }
    ASSIGN_OR_RETURN(const absl::Span<std::byte> out, run.Place(0, dims));
    const size_t width = SizeOf(dtype);
    const auto* in = static_cast<const std::byte*>(x.raw());
    ForEachSlicedRow(x.dims(), begin, dims, [&](int64_t from, int64_t to, int64_t length) {
      std::memcpy(out.data() + to * width, in + from * width, length * width);
    });
    return absl::OkStatus();
  });
}

// --- Gather and Index --------------------------------------------------------

// Copies the rows of `x` at these places of its first axis, one after another.
absl::Status GatherRows(OpRun& run, const Tensor& x, absl::Span<const int64_t> rows,
                        const Dims& dims) {
  int64_t row_values = 1;
  for (int64_t dim : x.dims().subspan(1)) row_values *= dim;
  if (x.dtype() == kString) {
    return run.Strings(0, dims, [&](int64_t n) {
      return x.string(rows[n / row_values] * row_values + n % row_values);
    });
  }
  const size_t row_bytes = row_values * SizeOf(x.dtype());
  ASSIGN_OR_RETURN(const absl::Span<std::byte> out, run.Place(0, dims));
  if (row_bytes == 0) return absl::OkStatus();
  const auto* in = static_cast<const std::byte*>(x.raw());
  for (size_t i = 0; i < rows.size(); ++i)
    std::memcpy(out.data() + i * row_bytes, in + rows[i] * row_bytes, row_bytes);
  return absl::OkStatus();
}

// Returns x.shape[:axis] + indices.shape + x.shape[axis + 1:].
Dims GatheredDims(absl::Span<const int64_t> x, absl::Span<const int64_t> indices, int axis) {
  Dims dims(x.begin(), x.begin() + axis);
  dims.insert(dims.end(), indices.begin(), indices.end());
  dims.insert(dims.end(), x.begin() + axis + 1, x.end());
  return dims;
}

absl::StatusOr<Specs> InferRows(InputSpecs inputs, int64_t axis) {
  RETURN_IF_ERROR(CheckTakes(Takes::kInteger, inputs[1].dtype, 1));
  const Shape& x = inputs[0].shape;
  const Shape& indices = inputs[1].shape;
  if (x.has_rank() && x.rank() == 0)
    return absl::InvalidArgumentError("argument 0 is a scalar; it has no rows");
  if (!x.has_rank() || !indices.has_rank())
    return Specs{Dense(inputs[0].dtype, Shape::UnknownRank())};
  ASSIGN_OR_RETURN(const int place, PlaceOfAxis(axis, x.rank()));
  const Dims dims = GatheredDims(x.dims(), indices.dims(), place);
  return Specs{Dense(inputs[0].dtype, Shape(std::vector<int64_t>(dims.begin(), dims.end())))};
}

absl::StatusOr<Specs> InferGather(const Attrs& attrs, InputSpecs inputs) {
  return InferRows(inputs, Get<int64_t>(attrs, "axis"));
}

// Returns the rows that the indices name; negative ones count from the end, as in NumPy.
template <class T>
absl::StatusOr<absl::Span<const int64_t>> RowsAt(OpRun& run, int64_t row_count) {
  const Tensor& indices = run.input(1);
  const int64_t count = indices.element_count();
  ASSIGN_OR_RETURN(int64_t* const rows, PlaceTable(run, count));
  const T* at = static_cast<const T*>(indices.raw());
  for (int64_t n = 0; n < count; ++n) {
    const int64_t row = static_cast<int64_t>(at[n]);
    rows[n] = row < 0 && std::is_signed_v<T> ? row + row_count : row;
    if (rows[n] < 0 || rows[n] >= row_count) {
      return absl::InvalidArgumentError(
          absl::StrCat("index ", at[n], " is out of range for ", row_count, " rows"));
    }
  }
  return absl::MakeConstSpan(rows, count);
}

template <class T>
absl::Status Gather(OpRun& run, int64_t named_axis) {
  const Tensor& x = run.input(0);
  if (x.rank() == 0) return absl::InvalidArgumentError("argument 0 is a scalar; it has no rows");
  ASSIGN_OR_RETURN(const int axis, PlaceOfAxis(named_axis, x.rank()));
  ASSIGN_OR_RETURN(const absl::Span<const int64_t> rows, RowsAt<T>(run, x.dim(axis)));
  const Dims dims = GatheredDims(x.dims(), run.input(1).dims(), axis);
  if (axis == 0) return GatherRows(run, x, rows, dims);
  AllPlaces places = PlacesOf(x);
  ASSIGN_OR_RETURN(int64_t* const table, PlaceTable(run, static_cast<int64_t>(rows.size())));
  for (size_t i = 0; i < rows.size(); ++i) table[i] = rows[i] * places[axis].step;
  places[axis] = {.size = static_cast<int64_t>(rows.size()), .table = table};
  return MoveValues(run, x, dims, places);
}

absl::StatusOr<Kernel> GatherAlong(int64_t axis, DType indices) {
  return ForInteger(indices, [axis]<class T>() {
    return Kernel([axis](OpRun& run) { return Gather<T>(run, axis); });
  });
}
absl::StatusOr<Kernel> MakeGather(const OpDef& def, InputSpecs inputs) {
  return GatherAlong(Get<int64_t>(def.attrs, "axis"), inputs[1].dtype);
}

// x[i] is a gather with a scalar.
absl::StatusOr<Specs> InferIndex(const Attrs&, InputSpecs inputs) {
  if (!inputs[1].shape.has_rank() || inputs[1].shape.rank() != 0)
    return absl::InvalidArgumentError(
        absl::StrCat("the index is ", inputs[1].ToString(), ", not a scalar; use Gather"));
  return InferRows(inputs, 0);
}
absl::StatusOr<Kernel> MakeIndex(const OpDef&, InputSpecs inputs) {
  return GatherAlong(0, inputs[1].dtype);
}

}  // namespace

std::vector<OpRow> ShapeOps() {
  constexpr size_t kInts = kAttrIndex<std::vector<int64_t>>;
  return {
      {.name = "Reshape",
       .attrs = {{"dims", kInts}},
       .infer = InferReshape,
       .make = MakeReshape,
       .over_rows = OverRows::kView},
      {.name = "ShapeOf", .infer = InferShapeOf, .make = MakeShapeOf},
      {.name = "Size", .infer = InferSize, .make = MakeSize},
      {.name = "Slice",
       .attrs = {{"begin", kInts}, {"size", kInts}},
       .infer = InferSlice,
       .make = MakeSlice},
      {.name = "Gather",
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {{"axis", kAttrIndex<int64_t>}},
       .infer = InferGather,
       .make = MakeGather},
      {.name = "Index", .min_inputs = 2, .max_inputs = 2, .infer = InferIndex, .make = MakeIndex},
  };
}

}  // namespace penstock
