// SPDX-License-Identifier: Apache-2.0
// Sums, products, means, extremes, any and all over axes. Sums and products of integers are 64 bits
// wide and means of integers are float64, as in NumPy. Floats are summed in double and rounded
// once.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/axes.h"
#include "dataplane/dataset/expr/ops/elementwise.h"
#include "dataplane/dataset/expr/ops/moved_values.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// Returns for each dimension of a tensor of rank `rank` whether it is reduced.
absl::StatusOr<std::vector<bool>> ReducedAxes(absl::Span<const int64_t> axes, int rank) {
  if (axes.empty()) return std::vector<bool>(rank, true);
  return MarkAxes(axes, rank);
}

absl::StatusOr<std::vector<TensorSpec>> InferReduce(const Attrs& attrs, InputSpecs inputs,
                                                    DType out) {
  const auto& axes = Get<std::vector<int64_t>>(attrs, "axes");
  const Shape& shape = inputs[0].shape;
  if (axes.empty()) return std::vector<TensorSpec>{Scalar(out)};
  if (!shape.has_rank()) return std::vector<TensorSpec>{Dense(out, Shape::UnknownRank())};
  ASSIGN_OR_RETURN(const std::vector<bool> reduced, ReducedAxes(axes, shape.rank()));
  std::vector<int64_t> dims;
  for (int i = 0; i < shape.rank(); ++i)
    if (!reduced[i]) dims.push_back(shape.dim(i));
  return std::vector<TensorSpec>{Dense(out, Shape(std::move(dims)))};
}

absl::StatusOr<std::vector<TensorSpec>> InferSum(const Attrs& attrs, InputSpecs inputs) {
  if (inputs[0].dtype != kBool) RETURN_IF_ERROR(CheckTakes(Takes::kNumber, inputs[0].dtype, 0));
  return InferReduce(attrs, inputs, SumDType(inputs[0].dtype));
}
absl::StatusOr<std::vector<TensorSpec>> InferProd(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckTakes(Takes::kNumber, inputs[0].dtype, 0));
  return InferReduce(attrs, inputs, SumDType(inputs[0].dtype));
}
absl::StatusOr<std::vector<TensorSpec>> InferAnyOrAll(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckTakes(Takes::kBoolean, inputs[0].dtype, 0));
  return InferReduce(attrs, inputs, kBool);
}
absl::StatusOr<std::vector<TensorSpec>> InferMean(const Attrs& attrs, InputSpecs inputs) {
  const DType dtype = inputs[0].dtype;
  if (dtype != kBool) RETURN_IF_ERROR(CheckTakes(Takes::kNumber, dtype, 0));
  return InferReduce(attrs, inputs, dtype == kBool || IsInteger(dtype) ? kFloat64 : dtype);
}
absl::StatusOr<std::vector<TensorSpec>> InferExtreme(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckTakes(Takes::kReal, inputs[0].dtype, 0));
  return InferReduce(attrs, inputs, inputs[0].dtype);
}

// A reduction as a walk: an outer loop over the kept axes visits the results, and an inner loop
// over the reduced axes visits the values of one result.
struct Walk {
  Dims dims;                                       // of the result
  absl::InlinedVector<int64_t, 6> sizes, strides;  // kept axes, then reduced ones
  size_t kept = 0;
  int64_t results = 1, values = 1;  // results, and values in each result

  // Returns the place of the first value of result `n` (axes 0 to kept), or the distance from there
  // to value `n` (axes from kept on).
  int64_t Offset(int64_t n, size_t first, size_t last) const {
    int64_t offset = 0;
    for (size_t i = last; i-- > first;) {
      offset += n % sizes[i] * strides[i];
      n /= sizes[i];
    }
    return offset;
  }
};

absl::StatusOr<Walk> WalkOver(absl::Span<const int64_t> dims, absl::Span<const int64_t> axes) {
  ASSIGN_OR_RETURN(const std::vector<bool> reduced,
                   ReducedAxes(axes, static_cast<int>(dims.size())));
  const Dims strides = StridesOf(dims);
  Walk walk;
  for (bool pass : {false, true}) {
    for (size_t i = 0; i < dims.size(); ++i) {
      if (reduced[i] != pass) continue;
      (pass ? walk.values : walk.results) *= dims[i];
      if (!pass) walk.dims.push_back(dims[i]);
      walk.sizes.push_back(dims[i]);
      walk.strides.push_back(strides[i]);
    }
    if (!pass) walk.kept = walk.sizes.size();
  }
  return walk;
}

// Computes each result: combines its values in order, starting from `start`, then calls `finish`.
template <class In, class Out, class Sum, class Combine, class Finish>
absl::Status ReduceAxes(OpRun& run, absl::Span<const int64_t> axes, Sum start, Combine combine,
                        Finish finish) {
  const Tensor& x = run.input(0);
  ASSIGN_OR_RETURN(const Walk walk, WalkOver(x.dims(), axes));
  ASSIGN_OR_RETURN(Out* const out, run.PlaceAs<Out>(0, walk.dims));
  const auto* in = static_cast<const In*>(x.raw());
  const size_t last = walk.sizes.size();
  const bool inner = last > walk.kept;  // there is a reduced axis
  const int64_t length = inner ? walk.sizes[last - 1] : 1;
  const int64_t stride = inner ? walk.strides[last - 1] : 0;
  const int64_t rows = length == 0 ? 0 : walk.values / length;
  for (int64_t r = 0; r < walk.results; ++r) {
    const int64_t first = walk.Offset(r, 0, walk.kept);
    Sum sum = start;
    for (int64_t row = 0; row < rows; ++row) {
      const In* from = in + first + (inner ? walk.Offset(row, walk.kept, last - 1) : 0);
      for (int64_t n = 0; n < length; ++n) sum = combine(sum, Load(from[n * stride]));
    }
    out[r] = finish(sum, walk.values);
  }
  return absl::OkStatus();
}

struct AddUp {
  template <class Sum, class T>
  Sum operator()(Sum sum, T value) const {
    if constexpr (kIsComplex<Sum>)
      return sum + Sum(value);
    else
      return sum + static_cast<Sum>(value);
  }
};

template <class In, class Out>
Kernel SumKernel(std::vector<int64_t> axes) {
  return [axes](OpRun& run) {
    return ReduceAxes<In, Out>(run, axes, SumOf<In>{}, AddUp(),
                               [](SumOf<In> sum, int64_t) { return Narrow<Out>(sum); });
  };
}

absl::StatusOr<Kernel> MakeSum(const OpDef& def, InputSpecs inputs) {
  const auto& axes = Get<std::vector<int64_t>>(def.attrs, "axes");
  if (inputs[0].dtype == kBool) return SumKernel<BoolByte, int64_t>(axes);
  return ForNumber(inputs[0].dtype, [&]<class T>() {
    if constexpr (!kIsInteger<T>)
      return SumKernel<T, T>(axes);
    else
      return SumKernel<T, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>(axes);
  });
}

struct TimesUp {
  template <class Product, class T>
  Product operator()(Product product, T value) const {
    return product * static_cast<Product>(value);
  }
};

absl::StatusOr<Kernel> MakeProd(const OpDef& def, InputSpecs inputs) {
  const auto& axes = Get<std::vector<int64_t>>(def.attrs, "axes");
  return ForNumber(inputs[0].dtype, [&]<class T>() {
    using Out = std::conditional_t<kIsInteger<T>,
                                   std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>, T>;
    return Kernel([axes](OpRun& run) {
      return ReduceAxes<T, Out>(run, axes, SumOf<T>{1}, TimesUp(),
                                [](SumOf<T> product, int64_t) { return Narrow<Out>(product); });
    });
  });
}

// The mean of no values is NaN.
template <class In, class Out>
Kernel MeanKernel(std::vector<int64_t> axes) {
  using Sum = std::conditional_t<kIsComplex<In>, std::complex<double>, double>;
  return [axes](OpRun& run) {
    return ReduceAxes<In, Out>(run, axes, Sum{}, AddUp(), [](Sum sum, int64_t count) {
      return Narrow<Out>(sum / static_cast<double>(count));
    });
  };
}

absl::StatusOr<Kernel> MakeMean(const OpDef& def, InputSpecs inputs) {
  const auto& axes = Get<std::vector<int64_t>>(def.attrs, "axes");
  if (inputs[0].dtype == kBool) return MeanKernel<BoolByte, double>(axes);
  return ForNumber(inputs[0].dtype, [&]<class T>() {
    return MeanKernel<T, std::conditional_t<kIsInteger<T>, double, T>>(axes);
  });
}

// NaN if any value is NaN.
struct Larger {
  template <class T>
  T operator()(T a, T b) const {
    return b > a || b != b ? b : a;
  }
  template <class T>
  static T Start() {
    if constexpr (std::is_floating_point_v<T>)
      return -std::numeric_limits<T>::infinity();
    else
      return std::numeric_limits<T>::lowest();
  }
};
struct Smaller {
  template <class T>
  T operator()(T a, T b) const {
    return b < a || b != b ? b : a;
  }
  template <class T>
  static T Start() {
    if constexpr (std::is_floating_point_v<T>)
      return std::numeric_limits<T>::infinity();
    else
      return std::numeric_limits<T>::max();
  }
};

template <class Choose>
absl::StatusOr<Kernel> MakeExtreme(const OpDef& def, InputSpecs inputs) {
  const auto& axes = Get<std::vector<int64_t>>(def.attrs, "axes");
  return ForReal(inputs[0].dtype, [&]<class T>() {
    return Kernel([axes](OpRun& run) -> absl::Status {
      using C = ComputedIn<T>;
      ASSIGN_OR_RETURN(const Walk walk, WalkOver(run.input(0).dims(), axes));
      if (walk.values == 0 && walk.results > 0)
        return absl::InvalidArgumentError("no values to choose from");
      return ReduceAxes<T, T>(run, axes, Choose::template Start<C>(), Choose(),
                              [](C chosen, int64_t) { return Narrow<T>(chosen); });
    });
  });
}

// For no values: false for any, true for all.
template <bool kAny>
absl::StatusOr<Kernel> MakeAnyOrAll(const OpDef& def, InputSpecs) {
  const auto& axes = Get<std::vector<int64_t>>(def.attrs, "axes");
  return Kernel([axes](OpRun& run) {
    return ReduceAxes<BoolByte, uint8_t>(
        run, axes, !kAny, [](bool a, bool b) { return kAny ? a || b : a && b; },
        [](bool result, int64_t) { return static_cast<uint8_t>(result); });
  });
}

OpRow ReductionRow(absl::string_view name, decltype(OpRow::infer) infer,
                   decltype(OpRow::make) make) {
  return {.name = name,
          .attrs = {{"axes", kAttrIndex<std::vector<int64_t>>}},
          .infer = infer,
          .make = make};
}

}  // namespace

std::vector<OpRow> ReduceOps() {
  return {ReductionRow("ReduceSum", InferSum, MakeSum),
          ReductionRow("ReduceProd", InferProd, MakeProd),
          ReductionRow("ReduceMean", InferMean, MakeMean),
          ReductionRow("ReduceMax", InferExtreme, MakeExtreme<Larger>),
          ReductionRow("ReduceMin", InferExtreme, MakeExtreme<Smaller>),
          ReductionRow("ReduceAny", InferAnyOrAll, MakeAnyOrAll<true>),
          ReductionRow("ReduceAll", InferAnyOrAll, MakeAnyOrAll<false>)};
}

}  // namespace penstock
