// SPDX-License-Identifier: Apache-2.0
// The functions of penstock/expr.h that move values, and those that sum, sort or multiply them.
// Some use several operations.
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/axes.h"
#include "dataplane/dataset/expr/node.h"
#include "penstock/expr.h"

namespace penstock {
namespace {

using Ints = std::vector<int64_t>;

Ints Widened(const std::vector<int>& axes) {
  return {axes.begin(), axes.end()};
}

// Returns the known shape of a leaf. InvalidArgument names the function that needs it.
absl::StatusOr<Shape> KnownRank(const Expr& x, absl::string_view function) {
  if (!x.status().ok()) return x.status();
  if (x.spec().kind() == Spec::Kind::kLeaf && x.spec().leaf().shape.has_rank())
    return x.spec().leaf().shape;
  return absl::InvalidArgumentError(absl::StrCat(function, ": argument 0 is ", x.spec().ToString(),
                                                 ", whose rank is unknown; Reshape it"));
}

}  // namespace

Expr ShapeOf(const Expr& x) {
  return Apply1("ShapeOf", {}, {x});
}
Expr Size(const Expr& x) {
  return Apply1("Size", {}, {x});
}
Expr Reshape(const Expr& x, std::vector<int64_t> dims) {
  return Apply1("Reshape", {{"dims", std::move(dims)}}, {x});
}
Expr ExpandDims(const Expr& x, std::vector<int> axes) {
  return Apply1("ExpandDims", {{"axes", Widened(axes)}}, {x});
}
Expr ExpandDims(const Expr& x, int axis) {
  return ExpandDims(x, std::vector<int>{axis});
}

Expr Squeeze(const Expr& x, std::vector<int> axes) {
  Ints dropped = Widened(axes);
  if (axes.empty()) {
    const auto shape = KnownRank(x, "Squeeze");
    if (!shape.ok()) return Mistake(shape.status());
    for (int i = 0; i < shape->rank(); ++i)
      if (shape->dim(i) == 1) dropped.push_back(i);
  }
  return Apply1("Squeeze", {{"axes", std::move(dropped)}}, {x});
}

Expr Transpose(const Expr& x, std::vector<int> permutation) {
  return Apply1("Transpose", {{"permutation", Widened(permutation)}}, {x});
}
Expr BroadcastTo(const Expr& x, std::vector<int64_t> dims) {
  return Apply1("BroadcastTo", {{"dims", std::move(dims)}}, {x});
}
Expr Tile(const Expr& x, std::vector<int64_t> multiples) {
  return Apply1("Tile", {{"multiples", std::move(multiples)}}, {x});
}
Expr Reverse(const Expr& x, std::vector<int> axes) {
  return Apply1("Reverse", {{"axes", Widened(axes)}}, {x});
}
Expr Slice(const Expr& x, std::vector<int64_t> begin, std::vector<int64_t> size) {
  return Apply1("Slice", {{"begin", std::move(begin)}, {"size", std::move(size)}}, {x});
}

// An open end of a range becomes the lowest or highest int64; ranges are clipped to the dims later.
Expr StridedSlice(const Expr& x, std::vector<SliceRange> ranges) {
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
  Ints begin, end, step;
  for (const SliceRange& range : ranges) {
    const bool forward = range.step > 0;
    begin.push_back(range.begin.value_or(forward ? 0 : kHighest));
    end.push_back(range.end.value_or(forward ? kHighest : kLowest));
    step.push_back(range.step);
  }
  return Apply1("StridedSlice",
                {{"begin", std::move(begin)}, {"end", std::move(end)}, {"step", std::move(step)}},
                {x});
}

Expr Gather(const Expr& x, const Expr& indices, int axis) {
  return Apply1("Gather", {{"axis", int64_t{axis}}}, {x, indices});
}
Expr Concat(std::vector<Expr> parts, int axis) {
  return Apply1("Concat", {{"axis", int64_t{axis}}}, std::move(parts));
}

Expr Stack(std::vector<Expr> parts, int axis) {
  for (Expr& part : parts) part = ExpandDims(part, axis);
  return Concat(std::move(parts), axis);
}

std::vector<Expr> Unstack(const Expr& x, int axis) {
  const auto shape = KnownRank(x, "Unstack");
  if (!shape.ok()) return {Mistake(shape.status())};
  const auto place = PlaceOfAxis(axis, shape->rank());
  if (!place.ok())
    return {
        Mistake(absl::InvalidArgumentError(absl::StrCat("Unstack: ", place.status().message())))};
  if (shape->dim(*place) == kUnknownDim) {
    return {Mistake(absl::InvalidArgumentError(absl::StrCat(
        "Unstack: axis ", axis, " of ", x.spec().ToString(), " has an unknown size")))};
  }
  std::vector<Expr> parts;
  for (int64_t i = 0; i < shape->dim(*place); ++i) parts.push_back(Gather(x, Expr(i), *place));
  return parts;
}

Expr Pad(const Expr& x, std::vector<std::pair<int64_t, int64_t>> paddings, PadMode mode,
         std::optional<Expr> value) {
  Ints before, after;
  for (const auto& [front, back] : paddings) {
    before.push_back(front);
    after.push_back(back);
  }
  std::vector<Expr> inputs = {x};
  if (value.has_value()) inputs.push_back(AdaptedTo(*value, x.dtype()));
  return Apply1("Pad",
                {{"before", std::move(before)},
                 {"after", std::move(after)},
                 {"mode", static_cast<int64_t>(mode)}},
                std::move(inputs));
}

Expr Range(const Expr& start, const Expr& limit, const Expr& delta) {
  Expr first = start, last = limit, step = delta;
  AdaptLiterals(first, last);
  // Literals take the dtype of an argument that is not a literal.
  for (const Expr* ruling : {&start, &limit, &delta}) {
    if (!ruling->status().ok() || !NodeOf(*ruling)->literal.empty()) continue;
    first = AdaptedTo(start, ruling->dtype());
    last = AdaptedTo(limit, ruling->dtype());
  }
  AdaptLiterals(first, step);
  return Apply1("Range", {}, {std::move(first), std::move(last), std::move(step)});
}
Expr OneHot(const Expr& indices, int64_t depth, DType dtype) {
  return Apply1("OneHot", {{"depth", depth}, {"dtype", dtype}}, {indices});
}

Expr Sort(const Expr& x, int axis, bool descending) {
  return Apply1("Sort", {{"axis", int64_t{axis}}, {"descending", descending}}, {x});
}
Expr ArgSort(const Expr& x, int axis, bool descending) {
  return Apply1("ArgSort", {{"axis", int64_t{axis}}, {"descending", descending}}, {x});
}
Expr TopK(const Expr& x, int64_t k) {
  return Tuple(Apply("TopK", {{"k", k}}, {x}));
}
Expr CumSum(const Expr& x, int axis, bool exclusive, bool reverse) {
  return Apply1("CumSum", {{"axis", int64_t{axis}}, {"exclusive", exclusive}, {"reverse", reverse}},
                {x});
}

namespace {

Expr ReduceExpr(absl::string_view op, const Expr& x, const std::vector<int>& axes, bool keep_dims) {
  const Expr reduced = Apply1(op, {{"axes", Widened(axes)}}, {x});
  if (!keep_dims || !reduced.status().ok()) return reduced;
  if (!axes.empty()) return ExpandDims(reduced, axes);
  const auto shape = KnownRank(x, op);
  if (!shape.ok()) return Mistake(shape.status());
  std::vector<int> all(shape->rank());
  std::iota(all.begin(), all.end(), 0);
  return ExpandDims(reduced, all);
}

}  // namespace

Expr ReduceSum(const Expr& x, std::vector<int> axes, bool keep_dims) {
  return ReduceExpr("ReduceSum", x, axes, keep_dims);
}
Expr ReduceMean(const Expr& x, std::vector<int> axes, bool keep_dims) {
  return ReduceExpr("ReduceMean", x, axes, keep_dims);
}
Expr ReduceProd(const Expr& x, std::vector<int> axes, bool keep_dims) {
  return ReduceExpr("ReduceProd", x, axes, keep_dims);
}
Expr ReduceMax(const Expr& x, std::vector<int> axes, bool keep_dims) {
  return ReduceExpr("ReduceMax", x, axes, keep_dims);
}
Expr ReduceMin(const Expr& x, std::vector<int> axes, bool keep_dims) {
  return ReduceExpr("ReduceMin", x, axes, keep_dims);
}
Expr ReduceAny(const Expr& x, std::vector<int> axes, bool keep_dims) {
  return ReduceExpr("ReduceAny", x, axes, keep_dims);
}
Expr ReduceAll(const Expr& x, std::vector<int> axes, bool keep_dims) {
  return ReduceExpr("ReduceAll", x, axes, keep_dims);
}
Expr ArgMax(const Expr& x, int axis) {
  return Apply1("ArgMax", {{"axis", int64_t{axis}}}, {x});
}
Expr ArgMin(const Expr& x, int axis) {
  return Apply1("ArgMin", {{"axis", int64_t{axis}}}, {x});
}
Expr MatMul(const Expr& a, const Expr& b) {
  return Apply1("MatMul", {}, {a, b});
}

}  // namespace penstock
