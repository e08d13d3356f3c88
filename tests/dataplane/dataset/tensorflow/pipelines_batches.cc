// SPDX-License-Identifier: Apache-2.0
#include "tests/dataplane/dataset/tensorflow/pipelines.h"

namespace penstock::tensorflow {
namespace {

Dataset Matrix() {
  const int64_t values[] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {3, 2};
  return Dataset::FromTensorSlices({Tensor(kInt64, dims, values)}, Dense(kInt64, Shape({3, 2})));
}

// n times "s".
Expr Letters(const Expr& n) {
  const int64_t dims[] = {3};
  const uint64_t offsets[] = {0, 1, 2, 3};
  return Gather(Expr::Constant(Tensor(kString, dims, offsets, "sss")), RangeTensor(n));
}

Dataset Pairs() {
  return Dataset::Zip({Dataset::Range(5), Dataset::Range(5, 10)});
}

std::vector<Pipeline> Plain() {
  return {
      {"batch", [] { return Dataset::Range(8).Batch(3); }},
      {"batch_drop_remainder", [] { return Dataset::Range(8).Batch(3, {.drop_remainder = true}); }},
      {"batch_exact", [] { return Dataset::Range(6).Batch(3); }},
      {"batch_of_more", [] { return Dataset::Range(2).Batch(3); }},
      {"batch_of_more_dropped",
       [] { return Dataset::Range(2).Batch(3, {.drop_remainder = true}); }},
      {"batch_of_tuples", [] { return Pairs().Batch(2); }},
      {"batch_of_batches", [] { return Dataset::Range(8).Batch(2).Batch(2); }},
      {"batch_of_strings",
       [] {
         return Strings({"a", "", "ccc"}).Batch(2);
       }},
      {"batch_of_vectors", [] { return Matrix().Batch(2); }},
      {"ragged_batch",
       [] {
         return Vectors({1, 3, 2}).RaggedBatch(2);
       }},
      {"ragged_batch_drop_remainder",
       [] {
         return Vectors({1, 3, 2}).RaggedBatch(2, {.drop_remainder = true});
       }},
      {"ragged_batch_of_scalars", [] { return Dataset::Range(3).RaggedBatch(2); }},
      {"ragged_batch_of_empty",
       [] {
         return Vectors({0, 0, 1}).RaggedBatch(3);
       }},
      {"ragged_batch_of_strings",
       [] {
         return Numbers({1, 0, 2}).Map(Letters).RaggedBatch(3);
       }},
  };
}

}  // namespace

std::vector<Pipeline> BatchPipelines() {
  return Plain();
}

}  // namespace penstock::tensorflow
