// SPDX-License-Identifier: Apache-2.0
// MatMul, over the last two axes; all axes before these are broadcast. Floats are summed in double.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/broadcast.h"
#include "dataplane/dataset/expr/dtype_dispatch.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// [..., m, k] × [..., k, n] → [..., m, n]; some dims may be unknown.
absl::StatusOr<Dims> ProductDims(absl::Span<const int64_t> a, absl::Span<const int64_t> b) {
  if (a.size() < 2 || b.size() < 2)
    return absl::InvalidArgumentError("both arguments need two axes or more; ExpandDims adds one");
  const int64_t columns = a.back(), rows = b[b.size() - 2];
  if (columns != rows && columns != kUnknownDim && rows != kUnknownDim) {
    return absl::InvalidArgumentError(absl::StrCat("the rows of argument 0 have ", columns,
                                                   " values, but the columns of argument 1 have ",
                                                   rows));
  }
  ASSIGN_OR_RETURN(Dims dims,
                   BroadcastDims(a.subspan(0, a.size() - 2), b.subspan(0, b.size() - 2)));
  dims.push_back(a[a.size() - 2]);
  dims.push_back(b.back());
  return dims;
}

absl::StatusOr<std::vector<TensorSpec>> InferMatMul(const Attrs&, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckTakes(Takes::kNumber, inputs[0].dtype, 0));
  if (inputs[0].dtype != inputs[1].dtype) {
    return absl::InvalidArgumentError(absl::StrCat("argument 0 is ", Name(inputs[0].dtype),
                                                   " and argument 1 is ", Name(inputs[1].dtype),
                                                   "; Cast one of them"));
  }
  Shape shape = Shape::UnknownRank();
  if (inputs[0].shape.has_rank() && inputs[1].shape.has_rank()) {
    ASSIGN_OR_RETURN(const Dims dims, ProductDims(inputs[0].shape.dims(), inputs[1].shape.dims()));
    shape = Shape(std::vector<int64_t>(dims.begin(), dims.end()));
  }
  return std::vector<TensorSpec>{Dense(inputs[0].dtype, shape)};
}

// Multiplies one pair of matrices. `sums` has the size of a row of the result.
template <class T>
void MultiplyMatrices(const T* a, const T* b, int64_t m, int64_t k, int64_t n, SumOf<T>* sums,
                      T* out) {
  for (int64_t i = 0; i < m; ++i) {
    std::fill(sums, sums + n, SumOf<T>{});
    for (int64_t j = 0; j < k; ++j) {
      const auto factor = static_cast<SumOf<T>>(Load(a[i * k + j]));
      for (int64_t c = 0; c < n; ++c) sums[c] += factor * static_cast<SumOf<T>>(Load(b[j * n + c]));
    }
    for (int64_t c = 0; c < n; ++c) out[i * n + c] = Narrow<T>(sums[c]);
  }
}

template <class T>
absl::Status MatMul(OpRun& run) {
  const Tensor& a = run.input(0);
  const Tensor& b = run.input(1);
  ASSIGN_OR_RETURN(const Dims dims, ProductDims(a.dims(), b.dims()));
  ASSIGN_OR_RETURN(T* const out, run.PlaceAs<T>(0, dims));
  const int64_t m = a.dim(a.rank() - 2), k = a.dim(a.rank() - 1), n = b.dim(b.rank() - 1);
  RETURN_IF_ERROR(CountOf({n}, kComplex128).status());
  auto* const sums = run.arena().AllocateArray<SumOf<T>>(n);
  const BroadcastWalk walk(absl::MakeConstSpan(dims).first(dims.size() - 2),
                           {a.dims().first(a.rank() - 2), b.dims().first(b.rank() - 2)});
  walk.ForEachRow([&](const int64_t* offsets, int64_t length, int64_t first) {
    for (int64_t i = 0; i < length; ++i) {
      MultiplyMatrices(static_cast<const T*>(a.raw()) + (offsets[0] + i * walk.step(0)) * m * k,
                       static_cast<const T*>(b.raw()) + (offsets[1] + i * walk.step(1)) * k * n, m,
                       k, n, sums, out + (first + i) * m * n);
    }
  });
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeMatMul(const OpDef&, InputSpecs inputs) {
  return ForNumber(inputs[0].dtype, []<class T>() { return Kernel(MatMul<T>); });
}

}  // namespace

std::vector<OpRow> MatMulOps() {
  return {{.name = "MatMul",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = InferMatMul,
           .make = MakeMatMul}};
}

}  // namespace penstock
