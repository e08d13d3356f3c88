// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/expr/broadcast.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock {
namespace {

// Returns one dimension of the result; either argument may be kUnknownDim. -2 if the arguments do
// not fit together.
int64_t Join(int64_t a, int64_t b) {
  if (a == b) return a;
  if (a == 1) return b;
  if (b == 1) return a;
  if (a == kUnknownDim) return b;  // a must turn out to be 1 or b, which is > 1 or 0
  if (b == kUnknownDim) return a;
  return -2;
}

absl::StatusOr<Dims> JoinAll(absl::Span<const int64_t> a, absl::Span<const int64_t> b) {
  Dims result(std::max(a.size(), b.size()), 1);
  for (size_t back = 1; back <= result.size(); ++back) {
    const int64_t from_a = back <= a.size() ? a[a.size() - back] : 1;
    const int64_t from_b = back <= b.size() ? b[b.size() - back] : 1;
    const int64_t joined = Join(from_a, from_b);
    if (joined == -2) {
      return absl::InvalidArgumentError(absl::StrCat("shapes [", absl::StrJoin(a, ","), "] and [",
                                                     absl::StrJoin(b, ","),
                                                     "] do not broadcast together"));
    }
    result[result.size() - back] = joined;
  }
  return result;
}

}  // namespace

absl::StatusOr<Dims> BroadcastDims(absl::Span<const int64_t> a, absl::Span<const int64_t> b) {
  return JoinAll(a, b);
}

absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank()) return Shape::UnknownRank();
  auto dims = JoinAll(a.dims(), b.dims());
  if (!dims.ok()) return dims.status();
  return Shape(std::vector<int64_t>(dims->begin(), dims->end()));
}

BroadcastWalk::BroadcastWalk(absl::Span<const int64_t> result,
                             absl::Span<const absl::Span<const int64_t>> operands) {
  // Axes from the innermost outwards. An axis is merged with the axis inside it if it continues
  // that axis for every operand.
  absl::InlinedVector<Axis, 6> axes;
  int64_t inner[kMaxOperands];  // number of the operand's values inside the current axis
  std::fill(std::begin(inner), std::end(inner), 1);
  for (size_t back = 1; back <= result.size(); ++back) {
    Axis axis;
    axis.size = result[result.size() - back];
    if (axis.size == 0) empty_ = true;
    for (size_t k = 0; k < operands.size(); ++k) {
      const int64_t dim = back <= operands[k].size() ? operands[k][operands[k].size() - back] : 1;
      axis.step[k] = dim == 1 ? 0 : inner[k];
      inner[k] *= dim;
    }
    if (axis.size == 1) continue;
    bool continues = !axes.empty();
    for (int k = 0; continues && k < kMaxOperands; ++k)
      continues = axis.step[k] == axes.back().step[k] * axes.back().size;
    if (continues) {
      axes.back().size *= axis.size;
    } else {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) return;  // one value
  row_length_ = axes[0].size;
  std::copy(std::begin(axes[0].step), std::end(axes[0].step), step_);
  axes_.assign(axes.rbegin(), axes.rend() - 1);
}

}  // namespace penstock
