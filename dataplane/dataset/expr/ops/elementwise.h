// SPDX-License-Identifier: Apache-2.0
// Loops over one or two tensors, value by value, written so that compilers vectorise the rows.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/expr/broadcast.h"
#include "dataplane/dataset/expr/dtype_dispatch.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "include/status_macros.h"

namespace penstock {

// Computes out[n] = f(a[n]). f takes and returns values as Load() returns them.
template <class In, class Out, class F>
absl::Status RunUnary(OpRun& run, F f) {
  const Tensor& x = run.input(0);
  ASSIGN_OR_RETURN(Out * out, run.PlaceAs<Out>(0, x.dims()));
  const auto* in = static_cast<const In*>(x.raw());
  const int64_t count = x.element_count();
  for (int64_t n = 0; n < count; ++n) out[n] = static_cast<Out>(f(Load(in[n])));
  return absl::OkStatus();
}

// Computes out = f(a, b), broadcast.
template <class In, class Out, class F>
absl::Status RunBinary(OpRun& run, F f) {
  const Tensor& a = run.input(0);
  const Tensor& b = run.input(1);
  ASSIGN_OR_RETURN(const Dims dims, BroadcastDims(a.dims(), b.dims()));
  ASSIGN_OR_RETURN(Out* const out, run.PlaceAs<Out>(0, dims));
  const auto* from_a = static_cast<const In*>(a.raw());
  const auto* from_b = static_cast<const In*>(b.raw());
  const BroadcastWalk walk(dims, {a.dims(), b.dims()});
  const int64_t step_a = walk.step(0), step_b = walk.step(1);
  walk.ForEachRow([&](const int64_t* offsets, int64_t length, int64_t first) {
    const In* pa = from_a + offsets[0];
    const In* pb = from_b + offsets[1];
    Out* po = out + first;
    if (step_a == 1 && step_b == 1) {
      for (int64_t n = 0; n < length; ++n) po[n] = static_cast<Out>(f(Load(pa[n]), Load(pb[n])));
    } else if (step_a == 1) {
      const auto vb = Load(*pb);
      for (int64_t n = 0; n < length; ++n) po[n] = static_cast<Out>(f(Load(pa[n]), vb));
    } else {
      const auto va = Load(*pa);
      for (int64_t n = 0; n < length; ++n) po[n] = static_cast<Out>(f(va, Load(pb[n * step_b])));
    }
  });
  return absl::OkStatus();
}

// Infer the result for two tensors of the same dtype, or for one tensor. The result has the dtype
// `out` (kInvalid: that of the inputs).
absl::StatusOr<std::vector<TensorSpec>> InferBinary(InputSpecs inputs, Takes takes,
                                                    DType out = DType::kInvalid);
absl::StatusOr<std::vector<TensorSpec>> InferUnary(InputSpecs inputs, Takes takes,
                                                   DType out = DType::kInvalid);

}  // namespace penstock
