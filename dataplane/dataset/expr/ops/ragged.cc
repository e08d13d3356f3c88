// SPDX-License-Identifier: Apache-2.0
// Ragged tensors: RowLengths, FlatValues, ToTensor, FromRowLengths, StringSplit.
#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "absl/strings/ascii.h"
#include "dataplane/dataset/expr/dtype_dispatch.h"
#include "dataplane/dataset/expr/ops/moved_values.h"
#include "dataplane/dataset/expr/ops/text.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Ints = std::vector<int64_t>;
using Specs = std::vector<TensorSpec>;

absl::Status CheckRagged(const TensorSpec& spec) {
  if (spec.kind == TensorSpec::Kind::kRagged && spec.shape.has_rank() &&
      spec.shape.rank() > spec.ragged_rank)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("argument 0 is ", spec.ToString(), ", not a ragged tensor of known rank"));
}

// --- RowLengths, FlatValues ------------------------------------------------------

absl::StatusOr<Specs> InferRowLengths(const Attrs&, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckRagged(inputs[0]));
  return Specs{Dense(kInt64, {inputs[0].shape.dim(0)})};
}

absl::StatusOr<Kernel> MakeRowLengths(const OpDef&, InputSpecs) {
  return Kernel([](OpRun& run) -> absl::Status {
    const absl::Span<const int64_t> splits = run.input(0).row_splits(0);
    const auto rows = static_cast<int64_t>(splits.size()) - 1;
    ASSIGN_OR_RETURN(int64_t* const out, run.PlaceAs<int64_t>(0, {rows}));
    for (int64_t row = 0; row < rows; ++row) out[row] = splits[row + 1] - splits[row];
    return absl::OkStatus();
  });
}

absl::StatusOr<Specs> InferFlatValues(const Attrs&, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckRagged(inputs[0]));
  Ints dims = {kUnknownDim};
  const auto inner = inputs[0].shape.dims().subspan(inputs[0].ragged_rank + 1);
  dims.insert(dims.end(), inner.begin(), inner.end());
  return Specs{Dense(inputs[0].dtype, Shape(std::move(dims)))};
}

absl::StatusOr<Kernel> MakeFlatValues(const OpDef&, InputSpecs) {
  return Kernel([](OpRun& run) { return ViewAs(run, run.input(0), run.input(0).dims()); });
}

// --- ToTensor ----------------------------------------------------------------------

absl::StatusOr<Specs> InferToTensor(const Attrs&, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckRagged(inputs[0]));
  if (inputs.size() == 2 && inputs[1] != Scalar(inputs[0].dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("the value is ", inputs[1].ToString(),
                                                   ", not a scalar of ", Name(inputs[0].dtype)));
  }
  Ints dims(inputs[0].shape.dims().begin(), inputs[0].shape.dims().end());
  std::fill_n(dims.begin() + 1, inputs[0].ragged_rank, kUnknownDim);
  return Specs{Dense(inputs[0].dtype, Shape(std::move(dims)))};
}

// Returns the number of rows, the length of the longest row of each level, and the remaining dims.
Dims DenseDims(const Tensor& x) {
  Dims dims = {static_cast<int64_t>(x.row_splits(0).size()) - 1};
  for (int level = 0; level < x.ragged_rank(); ++level) {
    const absl::Span<const int64_t> splits = x.row_splits(level);
    int64_t longest = 0;
    for (size_t row = 1; row < splits.size(); ++row)
      longest = std::max(longest, splits[row] - splits[row - 1]);
    dims.push_back(longest);
  }
  dims.insert(dims.end(), x.dims().begin() + 1, x.dims().end());
  return dims;
}

// Returns the place of each flat row of x among the rows of the dense tensor, in the order of the
// flat rows.
int64_t* PlacesOfRows(OpRun& run, const Tensor& x, const Dims& dims) {
  int64_t count = dims[0];  // rows of the level; `places` has the place of each row
  auto* places = run.arena().AllocateArray<int64_t>(count);
  for (int64_t row = 0; row < count; ++row) places[row] = row;
  for (int level = 0; level < x.ragged_rank(); ++level) {
    const absl::Span<const int64_t> splits = x.row_splits(level);
    const int64_t next_count = splits.back();
    auto* next = run.arena().AllocateArray<int64_t>(next_count);
    for (int64_t row = 0; row < count; ++row)
      for (int64_t i = splits[row]; i < splits[row + 1]; ++i)
        next[i] = places[row] * dims[level + 1] + i - splits[row];
    places = next;
    count = next_count;
  }
  return places;
}

absl::Status ToTensor(OpRun& run) {
  const Tensor& x = run.input(0);
  const Tensor* const filling = run.input_count() == 2 ? &run.input(1) : nullptr;
  const Dims dims = DenseDims(x);
  ASSIGN_OR_RETURN(const int64_t count, CountOf(dims, x.dtype() == kString ? kUInt64 : x.dtype()));
  const int64_t rows = x.dim(0);
  int64_t row_values = 1;
  for (int64_t dim : x.dims().subspan(1)) row_values *= dim;
  const int64_t* const places = PlacesOfRows(run, x, dims);
  if (x.dtype() == kString) {
    ASSIGN_OR_RETURN(int64_t* const from, PlaceTable(run, count));
    std::fill_n(from, count, AxisPlaces::kFilling);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t n = 0; n < row_values; ++n)
        from[places[row] * row_values + n] = row * row_values + n;
    return run.Strings(0, dims, [&](int64_t n) {
      if (from[n] != AxisPlaces::kFilling) return x.string(from[n]);
      return filling == nullptr ? std::string_view() : filling->string();
    });
  }
  ASSIGN_OR_RETURN(const absl::Span<std::byte> out, run.Place(0, dims));
  ForWidth(x.dtype(), [&]<class Value>() {
    Value fill = {};
    if (filling != nullptr) std::memcpy(&fill, filling->raw(), sizeof(fill));
    auto* const to = reinterpret_cast<Value*>(out.data());
    std::fill_n(to, count, fill);
    if (row_values == 0) return;
    const auto* const values = static_cast<const Value*>(x.raw());
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(values + row * row_values, row_values, to + places[row] * row_values);
  });
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeToTensor(const OpDef&, InputSpecs) {
  return Kernel(ToTensor);
}

// --- FromRowLengths ------------------------------------------------------------------

absl::StatusOr<Specs> InferFromRowLengths(const Attrs&, InputSpecs inputs) {
  const Shape& values = inputs[0].shape;
  const Shape& lengths = inputs[1].shape;
  if (!values.has_rank() || values.rank() < 1)
    return absl::InvalidArgumentError("argument 0 must have at least one axis");
  if (inputs[1].dtype != kInt64 || !lengths.has_rank() || lengths.rank() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("argument 1 is ", inputs[1].ToString(), ", not an int64 vector"));
  }
  Ints dims = {lengths.dim(0), kUnknownDim};
  dims.insert(dims.end(), values.dims().begin() + 1, values.dims().end());
  return Specs{Ragged(inputs[0].dtype, Shape(std::move(dims)), 1)};
}

absl::Status FromRowLengths(OpRun& run) {
  const Tensor& values = run.input(0);
  const Tensor& lengths = run.input(1);
  const int64_t rows = lengths.element_count();
  ASSIGN_OR_RETURN(int64_t* const splits, PlaceTable(run, rows + 1));
  splits[0] = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t length = static_cast<const int64_t*>(lengths.raw())[row];
    if (length < 0 || length > values.dim(0) - splits[row]) {
      return absl::InvalidArgumentError(absl::StrCat("row ", row, " has length ", length, ", but ",
                                                     values.dim(0) - splits[row],
                                                     " values are left"));
    }
    splits[row + 1] = splits[row] + length;
  }
  if (splits[rows] != values.dim(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the rows use ", splits[rows], " of ", values.dim(0), " values"));
  }
  const absl::Span<const int64_t> level = absl::MakeConstSpan(splits, rows + 1);
  return run.ViewRagged(0, values, {level});
}

absl::StatusOr<Kernel> MakeFromRowLengths(const OpDef&, InputSpecs) {
  return Kernel(FromRowLengths);
}

// --- StringSplit ------------------------------------------------------------------------

absl::StatusOr<Specs> InferSplit(const Attrs&, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckString(inputs[0], 0));
  const Shape& shape = inputs[0].shape;
  if (!shape.has_rank() || shape.rank() > 1)
    return absl::InvalidArgumentError("argument 0 must be a scalar or a vector; Reshape it");
  if (shape.rank() == 0) return Specs{Dense(kString, {kUnknownDim})};
  return Specs{Ragged(kString, {shape.dim(0), kUnknownDim}, 1)};
}

// Splits like Python's str.split; the separator "" means Python's None.
void AppendParts(std::string_view text, const std::string& separator,
                 std::vector<std::string_view>& parts) {
  if (!separator.empty()) {
    for (size_t next; (next = text.find(separator)) != std::string_view::npos;) {
      parts.push_back(text.substr(0, next));
      text.remove_prefix(next + separator.size());
    }
    parts.push_back(text);
    return;
  }
  while (true) {
    const auto is_space = [](char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); };
    const auto begin = std::find_if_not(text.begin(), text.end(), is_space);
    const auto end = std::find_if(begin, text.end(), is_space);
    if (begin == end) return;
    parts.push_back(text.substr(begin - text.begin(), end - begin));
    text.remove_prefix(end - text.begin());
  }
}

absl::Status Split(OpRun& run, const std::string& separator) {
  const Tensor& x = run.input(0);
  const int64_t rows = x.element_count();
  std::vector<std::string_view> parts;
  ASSIGN_OR_RETURN(int64_t* const splits, PlaceTable(run, rows + 1));
  splits[0] = 0;
  for (int64_t row = 0; row < rows; ++row) {
    AppendParts(x.string(row), separator, parts);
    splits[row + 1] = static_cast<int64_t>(parts.size());
  }
  const auto part = [&](int64_t n) { return parts[n]; };
  const int64_t count = static_cast<int64_t>(parts.size());
  if (x.rank() == 0) return run.Strings(0, {count}, part);
  ASSIGN_OR_RETURN(const Tensor flat, run.KeepStrings({count}, part));
  const absl::Span<const int64_t> level = absl::MakeConstSpan(splits, rows + 1);
  return run.ViewRagged(0, flat, {level});
}

absl::StatusOr<Kernel> MakeSplit(const OpDef& def, InputSpecs) {
  return Kernel([separator = Get<std::string>(def.attrs, "separator")](OpRun& run) {
    return Split(run, separator);
  });
}

}  // namespace

std::vector<OpRow> RaggedOps() {
  return {
      {.name = "RowLengths",
       .infer = InferRowLengths,
       .make = MakeRowLengths,
       .takes_ragged = true},
      {.name = "FlatValues",
       .infer = InferFlatValues,
       .make = MakeFlatValues,
       .takes_ragged = true},
      {.name = "ToTensor",
       .max_inputs = 2,
       .infer = InferToTensor,
       .make = MakeToTensor,
       .takes_ragged = true},
      {.name = "FromRowLengths",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = InferFromRowLengths,
       .make = MakeFromRowLengths},
      {.name = "StringSplit",
       .attrs = {{"separator", kAttrIndex<std::string>}},
       .infer = InferSplit,
       .make = MakeSplit},
  };
}

}  // namespace penstock
