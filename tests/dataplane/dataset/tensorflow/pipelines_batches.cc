// SPDX-License-Identifier: Apache-2.0
#include "tests/dataplane/dataset/tensorflow/pipelines.h"

namespace penstock::tensorflow {
namespace {

// Returns "s" repeated n times.
Expr Letters(const Expr& n) {
  const int64_t dims[] = {3};
  const uint64_t offsets[] = {0, 1, 2, 3};
  return Gather(Expr::Constant(Tensor(kString, dims, offsets, "sss")), RangeTensor(n));
}

Dataset Pairs() {
  return Dataset::Zip({Dataset::Range(5), Dataset::Range(5, 10)});
}

// Returns an n × (4 - n) matrix of n.
Expr Filled(const Expr& n) {
  return Call("tensorflow.filled", n);
}

Expr Length(const Expr& x) {
  return ShapeOf(x)[0];
}

Dataset Sequences() {
  return Vectors({1, 5, 2, 3, 9, 1, 4, 2});
}

Dataset TwoRows() {
  const int64_t values[] = {1, 2, 3, 4};
  const int64_t dims[] = {2, 2};
  return Dataset::FromTensors({Tensor(kInt64, dims, values)}, Dense(kInt64, Shape({2, 2})));
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

std::vector<Pipeline> Padded() {
  return {
      {"padded_batch",
       [] {
         return Vectors({1, 3, 2, 0}).PaddedBatch(2);
       }},
      {"padded_batch_to_a_size",
       [] {
         return Vectors({1, 3, 2}).PaddedBatch(2, {.padded_shapes = {{"", Shape({5})}}});
       }},
      {"padded_batch_with_a_value",
       [] {
         return Vectors({1, 3, 2}).PaddedBatch(3, {.padding_values = {{"", -1}}});
       }},
      {"padded_batch_drop_remainder",
       [] {
         return Vectors({1, 3, 2}).PaddedBatch(2, {.drop_remainder = true});
       }},
      {"padded_batch_of_scalars", [] { return Dataset::Range(5).PaddedBatch(2); }},
      {"padded_batch_of_tuples",
       [] {
         return Dataset::Zip({Vectors({1, 3, 2}), Dataset::Range(3)})
             .PaddedBatch(2, {.padding_values = {{"[0]", 9}}});
       }},
      {"padded_batch_of_matrices",
       [] {
         return Numbers({1, 2, 3}).Map(Filled).PaddedBatch(3);
       }},
      {"padded_batch_of_strings",
       [] {
         return Numbers({1, 3}).Map(Letters).PaddedBatch(2, {.padding_values = {{"", "-"}}});
       }},
      {"bucket_by_sequence_length",
       [] {
         return Sequences().BucketBySequenceLength(Length, {3, 5}, {2, 2, 2});
       }},
      {"bucket_by_sequence_length_drop_remainder",
       [] {
         return Sequences().BucketBySequenceLength(Length, {3, 5}, {2, 2, 2},
                                                   {.drop_remainder = true});
       }},
      {"bucket_by_sequence_length_to_boundary",
       [] {
         return Vectors({1, 2, 3, 1, 4})
             .BucketBySequenceLength(Length, {3, 6}, {2, 2, 1}, {.pad_to_bucket_boundary = true});
       }},
      {"bucket_by_sequence_length_padded_with",
       [] {
         return Vectors({1, 2, 3}).BucketBySequenceLength(Length, {3}, {2, 1},
                                                          {.padding_values = {{"", -1}}});
       }},
  };
}

std::vector<Pipeline> Regrouped() {
  return {
      {"unbatch", [] { return Dataset::Range(7).Batch(3).Unbatch(); }},
      {"unbatch_rows", [] { return TwoRows().Unbatch(); }},
      {"unbatch_of_tuples", [] { return Pairs().Batch(2).Unbatch(); }},
      {"unbatch_of_different_sizes",
       [] {
         return Vectors({2, 0, 1}).Unbatch();
       }},
      {"unbatch_then_batch", [] { return Dataset::Range(7).Batch(3).Unbatch().Batch(2); }},
      {"rebatch_smaller", [] { return Dataset::Range(8).Batch(4).Rebatch(2); }},
      {"rebatch_larger", [] { return Dataset::Range(8).Batch(2).Rebatch(3); }},
      {"rebatch_uneven", [] { return Dataset::Range(8).Batch(4).Rebatch(3); }},
      {"rebatch_drop_remainder",
       [] { return Dataset::Range(8).Batch(4).Rebatch(3, {.drop_remainder = true}); }},
      {"rebatch_to_sizes_in_turn",
       [] {
         return Dataset::Range(8).Batch(4).Rebatch({2, 1, 1});
       }},
      {"rebatch_of_tuples", [] { return Pairs().Batch(4).Rebatch(3); }},
      {"window", [] { return Dataset::Range(7).Window(3).Batch(); }},
      {"window_drop_remainder",
       [] { return Dataset::Range(7).Window(3, {.drop_remainder = true}).Batch(); }},
      {"window_shift",
       [] { return Dataset::Range(7).Window(3, {.shift = 1, .drop_remainder = true}).Batch(); }},
      {"window_shift_with_remainder",
       [] { return Dataset::Range(5).Window(3, {.shift = 1}).Batch(); }},
      {"window_stride",
       [] {
         return Dataset::Range(7)
             .Window(3, {.shift = 1, .stride = 2, .drop_remainder = true})
             .Batch();
       }},
      {"window_gaps", [] { return Dataset::Range(10).Window(2, {.shift = 4}).Batch(); }},
      {"window_of_tuples",
       [] {
         return Dataset::Zip({Dataset::Range(4), Dataset::Range(4, 8)}).Window(2).Batch();
       }},
      {"group_by_window_documented",
       [] { return Dataset::Range(10).GroupByWindow([](Expr x) { return x % 2; }, 5).Batch(); }},
      {"group_by_window_short",
       [] { return Dataset::Range(10).GroupByWindow([](Expr x) { return x % 3; }, 2).Batch(); }},
      {"group_by_window_of_one_key",
       [] { return Dataset::Range(5).GroupByWindow([](Expr x) { return x * 0; }, 4).Batch(); }},
  };
}

}  // namespace

std::vector<Pipeline> BatchPipelines() {
  std::vector<Pipeline> all;
  for (auto* part : {Plain, Padded, Regrouped})
    for (Pipeline& pipeline : part()) all.push_back(std::move(pipeline));
  return all;
}

}  // namespace penstock::tensorflow
