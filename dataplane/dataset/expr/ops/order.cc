// SPDX-License-Identifier: Apache-2.0
// Operations along one axis: Sort, ArgSort, TopK, ArgMax, ArgMin, CumSum.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/axes.h"
#include "dataplane/dataset/expr/dtype_dispatch.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/expr/ops/moved_values.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Specs = std::vector<TensorSpec>;

// A tensor seen as lines along one axis: value i of line l is at start(l) + i × stride.
struct Lines {
  int axis = 0;
  int64_t count = 0, length = 0, stride = 1;
  int64_t start(int64_t line) const { return line / stride * stride * length + line % stride; }
};

absl::StatusOr<Lines> LinesOf(const Tensor& x, int64_t axis) {
  Lines lines;
  ASSIGN_OR_RETURN(lines.axis, PlaceOfAxis(axis, x.rank()));
  lines.length = x.dim(lines.axis);
  lines.stride = StridesOf(x.dims())[lines.axis];
  lines.count = lines.length == 0 ? 0 : x.element_count() / lines.length;
  return lines;
}

absl::Status CheckAxis(const Attrs& attrs, const TensorSpec& x) {
  if (!x.shape.has_rank()) return absl::OkStatus();
  return PlaceOfAxis(Get<int64_t>(attrs, "axis"), x.shape.rank()).status();
}

absl::Status CheckOrdered(DType dtype) {
  if (dtype == kString || dtype == kBool) return absl::OkStatus();
  return CheckTakes(Takes::kReal, dtype, 0);
}

// True if a comes before b; NaN comes after all numbers.
template <class T>
bool Before(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return false;
    return a < b || std::isnan(b);
  } else {
    return a < b;
  }
}

// Calls f.operator()<T>() for the type that values of the dtype are compared as.
template <class F>
auto ForOrdered(DType dtype, F&& f) {
  if (dtype == kBool) return f.template operator()<BoolByte>();
  return ForReal(dtype, f);
}

// Computes the order of a line: order[0] is the place of the first value. Equal values keep their
// order. `at(i)` returns value i.
template <class At>
void OrderOf(const At& at, bool descending, int64_t length, int64_t* order) {
  std::iota(order, order + length, 0);
  std::stable_sort(order, order + length, [&](int64_t a, int64_t b) {
    return descending ? Before(at(b), at(a)) : Before(at(a), at(b));
  });
}

// --- Sort and ArgSort --------------------------------------------------------------

absl::StatusOr<Specs> InferSort(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckOrdered(inputs[0].dtype));
  RETURN_IF_ERROR(CheckAxis(attrs, inputs[0]));
  return Specs{Dense(inputs[0].dtype, inputs[0].shape)};
}
absl::StatusOr<Specs> InferArgSort(const Attrs& attrs, InputSpecs inputs) {
  ASSIGN_OR_RETURN(Specs specs, InferSort(attrs, inputs));
  specs[0].dtype = kInt64;
  return specs;
}

struct SortAttrs {
  int64_t axis;
  bool descending;
};
SortAttrs SortAttrsOf(const Attrs& attrs) {
  return {Get<int64_t>(attrs, "axis"), Get<bool>(attrs, "descending")};
}

// Returns the places of the sorted values, each within its line.
absl::StatusOr<int64_t*> OrderOfAll(OpRun& run, const Lines& lines, bool descending) {
  const Tensor& x = run.input(0);
  ASSIGN_OR_RETURN(int64_t* const orders, PlaceTable(run, x.element_count()));
  for (int64_t line = 0; line < lines.count; ++line) {
    const int64_t start = lines.start(line);
    int64_t* const order = orders + line * lines.length;
    if (x.dtype() == kString) {
      OrderOf([&](int64_t i) { return x.string(start + i * lines.stride); }, descending,
              lines.length, order);
      continue;
    }
    ForOrdered(x.dtype(), [&]<class T>() {
      const T* from = static_cast<const T*>(x.raw()) + start;
      OrderOf([&](int64_t i) { return Load(from[i * lines.stride]); }, descending, lines.length,
              order);
    });
  }
  return orders;
}

absl::Status ArgSort(OpRun& run, SortAttrs attrs) {
  ASSIGN_OR_RETURN(const Lines lines, LinesOf(run.input(0), attrs.axis));
  ASSIGN_OR_RETURN(const int64_t* const orders, OrderOfAll(run, lines, attrs.descending));
  ASSIGN_OR_RETURN(int64_t* const out, run.PlaceAs<int64_t>(0, run.input(0).dims()));
  for (int64_t line = 0; line < lines.count; ++line)
    for (int64_t i = 0; i < lines.length; ++i)
      out[lines.start(line) + i * lines.stride] = orders[line * lines.length + i];
  return absl::OkStatus();
}

absl::Status SortStrings(OpRun& run, const Lines& lines, bool descending) {
  const Tensor& x = run.input(0);
  ASSIGN_OR_RETURN(const int64_t* const orders, OrderOfAll(run, lines, descending));
  ASSIGN_OR_RETURN(int64_t* const places, PlaceTable(run, x.element_count()));
  for (int64_t line = 0; line < lines.count; ++line) {
    for (int64_t i = 0; i < lines.length; ++i) {
      places[lines.start(line) + i * lines.stride] =
          lines.start(line) + orders[line * lines.length + i] * lines.stride;
    }
  }
  return run.Strings(0, x.dims(), [&](int64_t n) { return x.string(places[n]); });
}

template <class T>
absl::Status SortValues(OpRun& run, const Lines& lines, bool descending) {
  const Tensor& x = run.input(0);
  ASSIGN_OR_RETURN(T* const out, run.PlaceAs<T>(0, x.dims()));
  const T* const in = static_cast<const T*>(x.raw());
  RETURN_IF_ERROR(CountOf({lines.length}, x.dtype()).status());
  T* const line_values = run.arena().AllocateArray<T>(lines.length);
  for (int64_t line = 0; line < lines.count; ++line) {
    const int64_t start = lines.start(line);
    for (int64_t i = 0; i < lines.length; ++i) line_values[i] = in[start + i * lines.stride];
    std::sort(line_values, line_values + lines.length, [&](T a, T b) {
      return descending ? Before(Load(b), Load(a)) : Before(Load(a), Load(b));
    });
    for (int64_t i = 0; i < lines.length; ++i) out[start + i * lines.stride] = line_values[i];
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeSort(const OpDef& def, InputSpecs) {
  return Kernel([attrs = SortAttrsOf(def.attrs)](OpRun& run) -> absl::Status {
    const Tensor& x = run.input(0);
    ASSIGN_OR_RETURN(const Lines lines, LinesOf(x, attrs.axis));
    if (x.dtype() == kString) return SortStrings(run, lines, attrs.descending);
    return ForOrdered(x.dtype(),
                      [&]<class T>() { return SortValues<T>(run, lines, attrs.descending); });
  });
}

absl::StatusOr<Kernel> MakeArgSort(const OpDef& def, InputSpecs) {
  return Kernel([attrs = SortAttrsOf(def.attrs)](OpRun& run) { return ArgSort(run, attrs); });
}

// --- TopK --------------------------------------------------------------------------

absl::StatusOr<Dims> TopDims(absl::Span<const int64_t> dims, int64_t k) {
  if (dims.empty()) return absl::InvalidArgumentError("a scalar has no axis");
  if (k < 0 || (dims.back() != kUnknownDim && k > dims.back()))
    return absl::InvalidArgumentError(
        absl::StrCat("k is ", k, ", but the last axis has ", dims.back(), " values"));
  Dims result(dims.begin(), dims.end());
  result.back() = k;
  return result;
}

absl::StatusOr<Specs> InferTopK(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckTakes(Takes::kReal, inputs[0].dtype, 0));
  const int64_t k = Get<int64_t>(attrs, "k");
  if (k < 0) return absl::InvalidArgumentError(absl::StrCat("k must be 0 or more, not ", k));
  Shape shape = Shape::UnknownRank();
  if (inputs[0].shape.has_rank()) {
    ASSIGN_OR_RETURN(const Dims dims, TopDims(inputs[0].shape.dims(), k));
    shape = Shape(std::vector<int64_t>(dims.begin(), dims.end()));
  }
  return Specs{Dense(inputs[0].dtype, shape), Dense(kInt64, shape)};
}

template <class T>
absl::Status TopK(OpRun& run, int64_t k) {
  const Tensor& x = run.input(0);
  ASSIGN_OR_RETURN(const Dims dims, TopDims(x.dims(), k));
  ASSIGN_OR_RETURN(T* const values, run.PlaceAs<T>(0, dims));
  ASSIGN_OR_RETURN(int64_t* const places, run.PlaceAs<int64_t>(1, dims));
  ASSIGN_OR_RETURN(const Lines lines, LinesOf(x, -1));
  ASSIGN_OR_RETURN(int64_t* const order, PlaceTable(run, lines.length));
  for (int64_t line = 0; line < lines.count; ++line) {
    const T* const from = static_cast<const T*>(x.raw()) + line * lines.length;
    std::iota(order, order + lines.length, 0);
    // The first of equal values wins, as in a stable sort.
    std::partial_sort(order, order + k, order + lines.length, [&](int64_t a, int64_t b) {
      if (Before(Load(from[b]), Load(from[a]))) return true;
      return !Before(Load(from[a]), Load(from[b])) && a < b;
    });
    for (int64_t i = 0; i < k; ++i) {
      values[line * k + i] = from[order[i]];
      places[line * k + i] = order[i];
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeTopK(const OpDef& def, InputSpecs inputs) {
  return ForReal(inputs[0].dtype, [k = Get<int64_t>(def.attrs, "k")]<class T>() {
    return Kernel([k](OpRun& run) { return TopK<T>(run, k); });
  });
}

// --- ArgMax, ArgMin ------------------------------------------------------------------

absl::StatusOr<Specs> InferArg(const Attrs& attrs, InputSpecs inputs) {
  if (inputs[0].dtype != kBool) RETURN_IF_ERROR(CheckTakes(Takes::kReal, inputs[0].dtype, 0));
  RETURN_IF_ERROR(CheckAxis(attrs, inputs[0]));
  const Shape& shape = inputs[0].shape;
  if (!shape.has_rank()) return Specs{Dense(kInt64, Shape::UnknownRank())};
  ASSIGN_OR_RETURN(const int axis, PlaceOfAxis(Get<int64_t>(attrs, "axis"), shape.rank()));
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims.erase(dims.begin() + axis);
  return Specs{Dense(kInt64, Shape(std::move(dims)))};
}

// Finds the first of the largest (smallest) values; the first NaN, if there is one.
template <class T, bool kMax>
absl::Status Arg(OpRun& run, int64_t axis) {
  const Tensor& x = run.input(0);
  ASSIGN_OR_RETURN(const Lines lines, LinesOf(x, axis));
  Dims dims(x.dims().begin(), x.dims().end());
  dims.erase(dims.begin() + lines.axis);
  ASSIGN_OR_RETURN(int64_t* const out, run.PlaceAs<int64_t>(0, dims));
  ASSIGN_OR_RETURN(const int64_t results, CountOf(dims, kInt64));
  if (lines.length == 0 && results > 0)
    return absl::InvalidArgumentError("no values to choose from");
  for (int64_t line = 0; line < lines.count; ++line) {
    const T* const from = static_cast<const T*>(x.raw()) + lines.start(line);
    int64_t best = 0;
    for (int64_t i = 1; i < lines.length; ++i) {
      const auto now = Load(from[best * lines.stride]), next = Load(from[i * lines.stride]);
      if (now != now) break;  // NaN
      if (next != next || (kMax ? next > now : next < now)) best = i;
    }
    out[line] = best;
  }
  return absl::OkStatus();
}

template <bool kMax>
absl::StatusOr<Kernel> MakeArg(const OpDef& def, InputSpecs inputs) {
  return ForOrdered(inputs[0].dtype, [axis = Get<int64_t>(def.attrs, "axis")]<class T>() {
    return Kernel([axis](OpRun& run) { return Arg<T, kMax>(run, axis); });
  });
}

// --- CumSum: as wide as ReduceSum's sums ------------------------------------------------

absl::StatusOr<Specs> InferCumSum(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckTakes(Takes::kNumber, inputs[0].dtype, 0));
  RETURN_IF_ERROR(CheckAxis(attrs, inputs[0]));
  return Specs{Dense(SumDType(inputs[0].dtype), inputs[0].shape)};
}

struct CumSumAttrs {
  int64_t axis;
  bool exclusive, reverse;
};

template <class In, class Out>
absl::Status CumSum(OpRun& run, CumSumAttrs attrs) {
  const Tensor& x = run.input(0);
  ASSIGN_OR_RETURN(const Lines lines, LinesOf(x, attrs.axis));
  ASSIGN_OR_RETURN(Out* const out, run.PlaceAs<Out>(0, x.dims()));
  const In* const in = static_cast<const In*>(x.raw());
  for (int64_t line = 0; line < lines.count; ++line) {
    SumOf<In> sum = {};
    for (int64_t i = 0; i < lines.length; ++i) {
      const int64_t place =
          lines.start(line) + (attrs.reverse ? lines.length - 1 - i : i) * lines.stride;
      const SumOf<In> before = sum;
      sum += static_cast<SumOf<In>>(Load(in[place]));
      out[place] = Narrow<Out>(attrs.exclusive ? before : sum);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeCumSum(const OpDef& def, InputSpecs inputs) {
  const CumSumAttrs attrs = {Get<int64_t>(def.attrs, "axis"), Get<bool>(def.attrs, "exclusive"),
                             Get<bool>(def.attrs, "reverse")};
  return ForNumber(inputs[0].dtype, [attrs]<class T>() {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    using Out = std::conditional_t<kIsInteger<T>, Wide, T>;
    return Kernel([attrs](OpRun& run) { return CumSum<T, Out>(run, attrs); });
  });
}

}  // namespace

std::vector<OpRow> OrderOps() {
  constexpr size_t kInt = kAttrIndex<int64_t>;
  constexpr size_t kFlag = kAttrIndex<bool>;
  return {
      {.name = "Sort",
       .attrs = {{"axis", kInt}, {"descending", kFlag}},
       .infer = InferSort,
       .make = MakeSort},
      {.name = "ArgSort",
       .attrs = {{"axis", kInt}, {"descending", kFlag}},
       .infer = InferArgSort,
       .make = MakeArgSort},
      {.name = "TopK", .attrs = {{"k", kInt}}, .infer = InferTopK, .make = MakeTopK},
      {.name = "ArgMax", .attrs = {{"axis", kInt}}, .infer = InferArg, .make = MakeArg<true>},
      {.name = "ArgMin", .attrs = {{"axis", kInt}}, .infer = InferArg, .make = MakeArg<false>},
      {.name = "CumSum",
       .attrs = {{"axis", kInt}, {"exclusive", kFlag}, {"reverse", kFlag}},
       .infer = InferCumSum,
       .make = MakeCumSum},
  };
}

}  // namespace penstock
