// SPDX-License-Identifier: Apache-2.0
#include "tests/dataplane/element/sample.h"

#include "dataplane/memory/pool.h"
#include "penstock/check.h"

namespace penstock {

Spec SampleSpec() {
  TensorSpec absent = Dense(kFloat64, {2});
  absent.optional = true;
  return Spec::Dict({{"absent", absent},
                     {"bools", Dense(kBool, {3})},
                     {"bytes", Bytes()},
                     {"dense", Dense(kFloat32, {kUnknownDim, 3})},
                     {"empty", Dense(kInt16, {0, 5})},
                     {"ragged", Ragged(kInt32, {2, kUnknownDim, kUnknownDim, 2}, 2)},
                     {"scalar", Scalar(kInt64)},
                     {"sparse", Sparse(kUInt8, {kUnknownDim, 4})},
                     {"words", Ragged(kString, {kUnknownDim, kUnknownDim}, 1)}});
}

Element SampleElement() {
  const int64_t three[] = {3}, dense_dims[] = {2, 3}, empty_dims[] = {0, 5};
  const bool bools[] = {true, false, true};
  const uint64_t bytes_offsets[] = {0, 5};
  const float dense[] = {1, 2, 3, 4, 5, 6};
  const int32_t flat[] = {1, 2, 3, 4, 5, 6};
  const int64_t flat_dims[] = {3, 2}, outer[] = {0, 2, 3}, inner[] = {0, 1, 1, 3};
  const int64_t scalar = 42;
  const uint8_t nonzero[] = {7, 9};
  const int64_t two[] = {2}, indices[] = {0, 1, 2, 3}, dense_shape[] = {3, 4};
  const uint64_t word_offsets[] = {0, 2, 2, 5};
  const int64_t word_rows[] = {0, 1, 3};

  Tensor ragged(kInt32, flat_dims, flat);
  const absl::Span<const int64_t> levels[] = {outer, inner};
  ragged.SetRagged(levels);
  Tensor sparse(kUInt8, two, nonzero);
  sparse.SetSparse(indices, dense_shape);
  Tensor words(kString, three, word_offsets, "hiyou");
  const absl::Span<const int64_t> word_levels[] = {word_rows};
  words.SetRagged(word_levels);
  const Tensor tensors[] = {Tensor(),
                            Tensor(kBool, three, bools),
                            Tensor(kString, {}, bytes_offsets, "bytes"),
                            Tensor(kFloat32, dense_dims, dense),
                            Tensor(kInt16, empty_dims, nullptr),
                            ragged,
                            Tensor(kInt64, {}, &scalar),
                            sparse,
                            words};
  absl::StatusOr<Element> element = MakeElement(DefaultPool(), tensors, SampleSpec());
  PENSTOCK_CHECK(element.ok());
  return *std::move(element);
}

}  // namespace penstock
