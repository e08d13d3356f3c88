// SPDX-License-Identifier: Apache-2.0
// Concat joins tensors along an axis; Range makes numbers at equal distances.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/axes.h"
#include "dataplane/dataset/expr/broadcast.h"
#include "dataplane/dataset/expr/dtype_dispatch.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Specs = std::vector<TensorSpec>;

constexpr int kMostParts = 1 << 16;

// --- Concat --------------------------------------------------------------------

// Adds the dims of part `i` to the dims of the parts before it.
absl::Status Append(absl::Span<const int64_t> part, size_t i, int axis, Dims& dims) {
  bool fits = part.size() == dims.size();
  for (size_t d = 0; fits && d < dims.size(); ++d) {
    if (d == static_cast<size_t>(axis)) {
      dims[d] = part[d] == kUnknownDim || dims[d] == kUnknownDim ? kUnknownDim : dims[d] + part[d];
    } else if (dims[d] == kUnknownDim) {
      dims[d] = part[d];
    } else {
      fits = part[d] == kUnknownDim || part[d] == dims[d];
    }
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "argument ", i,
      " has a different shape from the arguments before it; they may differ only on axis ", axis));
}

absl::StatusOr<Specs> InferConcatTensors(const Attrs& attrs, InputSpecs inputs) {
  const DType dtype = inputs[0].dtype;
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].dtype != dtype) {
      return absl::InvalidArgumentError(absl::StrCat("argument ", i, " is ", Name(inputs[i].dtype),
                                                     " and argument 0 is ", Name(dtype),
                                                     "; Cast one of them"));
    }
  }
  for (const TensorSpec& input : inputs)
    if (!input.shape.has_rank()) return Specs{Dense(dtype, Shape::UnknownRank())};
  ASSIGN_OR_RETURN(const int axis,
                   PlaceOfAxis(Get<int64_t>(attrs, "axis"), inputs[0].shape.rank()));
  Dims dims(inputs[0].shape.dims().begin(), inputs[0].shape.dims().end());
  for (size_t i = 1; i < inputs.size(); ++i)
    RETURN_IF_ERROR(Append(inputs[i].shape.dims(), i, axis, dims));
  return Specs{Dense(dtype, Shape(std::vector<int64_t>(dims.begin(), dims.end())))};
}

int64_t Product(absl::Span<const int64_t> dims) {
  int64_t product = 1;
  for (int64_t dim : dims) product *= dim;
  return product;
}

// Joins the parts row by row. A row consists of the values of one part for one set of indices on
// the axes before `named_axis`.
absl::Status ConcatTensors(OpRun& run, int64_t named_axis) {
  const Tensor& first = run.input(0);
  ASSIGN_OR_RETURN(const int axis, PlaceOfAxis(named_axis, first.rank()));
  Dims dims(first.dims().begin(), first.dims().end());
  for (size_t i = 1; i < run.input_count(); ++i)
    RETURN_IF_ERROR(Append(run.input(i).dims(), i, axis, dims));
  const int64_t rows = Product(absl::MakeConstSpan(dims).first(axis));
  const auto row_of = [&](const Tensor& part) { return Product(part.dims().subspan(axis)); };
  if (first.dtype() == kString) {
    RETURN_IF_ERROR(CountOf(dims, kUInt64).status());
    std::vector<std::string_view> values;
    for (int64_t row = 0; row < rows; ++row) {
      for (size_t i = 0; i < run.input_count(); ++i) {
        const int64_t length = row_of(run.input(i));
        for (int64_t n = 0; n < length; ++n)
          values.push_back(run.input(i).string(row * length + n));
      }
    }
    return run.Strings(0, dims, [&](int64_t n) { return values[n]; });
  }
  ASSIGN_OR_RETURN(const absl::Span<std::byte> out, run.Place(0, dims));
  if (out.empty()) return absl::OkStatus();
  std::byte* to = out.data();
  const size_t width = SizeOf(first.dtype());
  for (int64_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < run.input_count(); ++i) {
      const size_t bytes = row_of(run.input(i)) * width;
      if (bytes > 0)
        std::memcpy(to, static_cast<const std::byte*>(run.input(i).raw()) + row * bytes, bytes);
      to += bytes;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeConcat(const OpDef& def, InputSpecs) {
  return Kernel(
      [axis = Get<int64_t>(def.attrs, "axis")](OpRun& run) { return ConcatTensors(run, axis); });
}

// --- Range -----------------------------------------------------------------------

absl::StatusOr<Specs> InferRangeOp(const Attrs&, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckTakes(Takes::kReal, inputs[0].dtype, 0));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] != Scalar(inputs[0].dtype)) {
      return absl::InvalidArgumentError(absl::StrCat("argument ", i, " is ", inputs[i].ToString(),
                                                     ", not a scalar of ", Name(inputs[0].dtype)));
    }
  }
  return Specs{Dense(inputs[0].dtype, Shape({kUnknownDim}))};
}

// Returns the number of steps between start and limit. REQUIRES: delta != 0.
template <class T>
absl::StatusOr<int64_t> StepsBetween(T start, T limit, T delta) {
  if (delta > 0 ? start >= limit : start <= limit) return 0;
  if constexpr (std::is_integral_v<T>) {
    const uint64_t distance = delta > 0
                                  ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                  : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
    const uint64_t step = delta > 0 ? static_cast<uint64_t>(delta) : -static_cast<uint64_t>(delta);
    const uint64_t count = (distance - 1) / step + 1;
    return count > kMaxValueBytes ? static_cast<int64_t>(kMaxValueBytes) + 1
                                  : static_cast<int64_t>(count);
  } else {
    const double count =
        std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / delta);
    if (std::isnan(count)) return absl::InvalidArgumentError("the length of the range is NaN");
    return static_cast<int64_t>(std::min(count, static_cast<double>(kMaxValueBytes) + 1));
  }
}

template <class T>
absl::Status Range(OpRun& run) {
  using C = ComputedIn<T>;
  const auto value = [&](size_t i) { return Load(*static_cast<const T*>(run.input(i).raw())); };
  const C start = value(0), limit = value(1), delta = value(2);
  if (delta == 0) return absl::InvalidArgumentError("delta must not be 0");
  ASSIGN_OR_RETURN(const int64_t count, StepsBetween<C>(start, limit, delta));
  ASSIGN_OR_RETURN(T* const out, run.PlaceAs<T>(0, {count}));
  for (int64_t n = 0; n < count; ++n) {
    if constexpr (kIsInteger<T>)
      out[n] =
          static_cast<T>(Wrapping<T>(start) + static_cast<Wrapping<T>>(n) * Wrapping<T>(delta));
    else
      out[n] = Narrow<T>(static_cast<double>(start) + static_cast<double>(n) * delta);
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeRange(const OpDef&, InputSpecs inputs) {
  return ForReal(inputs[0].dtype, []<class T>() { return Kernel(Range<T>); });
}

}  // namespace

std::vector<OpRow> JoinOps() {
  return {
      {.name = "Concat",
       .max_inputs = kMostParts,
       .attrs = {{"axis", kAttrIndex<int64_t>}},
       .infer = InferConcatTensors,
       .make = MakeConcat},
      {.name = "Range", .min_inputs = 3, .max_inputs = 3, .infer = InferRangeOp, .make = MakeRange},
  };
}

}  // namespace penstock
