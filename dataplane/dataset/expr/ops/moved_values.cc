// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/expr/ops/moved_values.h"

#include <cstring>

#include "dataplane/dataset/expr/dtype_dispatch.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// Calls row(place, n) for each row of the result along the last axis. The results from number n on
// come from the input's values at `place` plus the last axis's offsets; if `place` is kFilling, all
// of them are filling. REQUIRES: there are axes.
template <class Row>
void ForEachRow(const AllPlaces& axes, Row&& row) {
  for (const AxisPlaces& axis : axes)
    if (axis.size == 0) return;
  const size_t outer = axes.size() - 1;
  absl::InlinedVector<int64_t, 6> at(outer, 0);
  for (int64_t n = 0;; n += axes[outer].size) {
    int64_t place = 0;
    for (size_t i = 0; i < outer && place != AxisPlaces::kFilling; ++i) {
      const int64_t own = axes[i][at[i]];
      place = own == AxisPlaces::kFilling ? own : place + own;
    }
    row(place, n);
    size_t i = outer;
    for (; i > 0; --i) {
      if (++at[i - 1] < axes[i - 1].size) break;
      at[i - 1] = 0;
    }
    if (i == 0) return;
  }
}

// Writes the place of each result, or kFilling.
void WritePlaces(const AllPlaces& axes, int64_t* places) {
  const AxisPlaces& inner = axes.back();
  ForEachRow(axes, [&](int64_t place, int64_t n) {
    for (int64_t i = 0; i < inner.size; ++i) {
      const bool fill = place == AxisPlaces::kFilling || inner[i] == AxisPlaces::kFilling;
      places[n + i] = fill ? AxisPlaces::kFilling : place + inner[i];
    }
  });
}

template <class Value>
void CopyMovedValues(const Value* in, const AllPlaces& axes, Value filling, Value* out) {
  const AxisPlaces& inner = axes.back();
  const bool side_by_side = inner.table == nullptr && inner.step == 1;
  ForEachRow(axes, [&](int64_t place, int64_t n) {
    if (place == AxisPlaces::kFilling) {
      for (int64_t i = 0; i < inner.size; ++i) out[n + i] = filling;
    } else if (side_by_side) {
      std::memcpy(out + n, in + place + inner.first, inner.size * sizeof(Value));
    } else if (inner.table == nullptr) {
      const Value* from = in + place + inner.first;
      for (int64_t i = 0; i < inner.size; ++i) out[n + i] = from[i * inner.step];
    } else {
      for (int64_t i = 0; i < inner.size; ++i) {
        out[n + i] = inner.table[i] == AxisPlaces::kFilling ? filling : in[place + inner.table[i]];
      }
    }
  });
}

absl::Status MoveStrings(OpRun& run, const Tensor& x, absl::Span<const int64_t> dims,
                         const AllPlaces& axes, const Tensor* filling) {
  ASSIGN_OR_RETURN(const int64_t count, CountOf(dims, kUInt64));
  auto* places = run.arena().AllocateArray<int64_t>(count);
  WritePlaces(axes, places);
  const std::string_view fill = filling == nullptr ? std::string_view() : filling->string();
  return run.Strings(0, dims, [&](int64_t n) {
    return places[n] == AxisPlaces::kFilling ? fill : x.string(places[n]);
  });
}

}  // namespace

Dims StridesOf(absl::Span<const int64_t> dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

AllPlaces PlacesOf(const Tensor& x) {
  const Dims strides = StridesOf(x.dims());
  AllPlaces axes;
  for (int i = 0; i < x.rank(); ++i) axes.push_back({.size = x.dim(i), .step = strides[i]});
  return axes;
}

absl::StatusOr<int64_t*> PlaceTable(OpRun& run, int64_t size) {
  RETURN_IF_ERROR(CountOf({size}, kInt64).status());
  return run.arena().AllocateArray<int64_t>(size);
}

absl::Status MoveValues(OpRun& run, const Tensor& x, absl::Span<const int64_t> dims,
                        const AllPlaces& axes, const Tensor* filling) {
  static const AllPlaces& kOne = *new AllPlaces(1);
  const AllPlaces& places = axes.empty() ? kOne : axes;
  if (x.dtype() == kString) return MoveStrings(run, x, dims, places, filling);
  ASSIGN_OR_RETURN(const absl::Span<std::byte> out, run.Place(0, dims));
  ForWidth(x.dtype(), [&]<class Value>() {
    Value fill = {};
    if (filling != nullptr) std::memcpy(&fill, filling->raw(), sizeof(fill));
    CopyMovedValues(static_cast<const Value*>(x.raw()), places, fill,
                    reinterpret_cast<Value*>(out.data()));
  });
  return absl::OkStatus();
}

absl::Status ViewAs(OpRun& run, const Tensor& x, absl::Span<const int64_t> dims) {
  return run.View(0, Tensor(x.dtype(), dims, x.raw(), BytesOf(x)));
}

}  // namespace penstock
