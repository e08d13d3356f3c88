// SPDX-License-Identifier: Apache-2.0
#include "tests/dataplane/dataset/tensorflow/pipelines.h"

namespace penstock::tensorflow {
namespace {

Dataset Dict() {
  const int64_t numbers[] = {1, 2};
  const int64_t two[] = {2}, two_by_one[] = {2, 1};
  const uint64_t offsets[] = {0, 1, 2};
  return Dataset::FromTensorSlices(
      {Tensor(kInt64, two, numbers), Tensor(kString, two_by_one, offsets, "xy")},
      Spec::Dict({{"a", Dense(kInt64, Shape({2}))}, {"b", Dense(kString, Shape({2, 1}))}}));
}

Dataset Pair() {
  const int64_t one = 1;
  const uint64_t offsets[] = {0, 1};
  return Dataset::FromTensors({Tensor(kInt64, {}, &one), Tensor(kString, {}, offsets, "a")},
                              Spec::Tuple({Scalar(kInt64), Bytes()}));
}

Dataset OneTwoThree() {
  const int64_t values[] = {1, 2, 3};
  const int64_t dims[] = {3};
  return Dataset::FromTensors({Tensor(kInt64, dims, values)}, Dense(kInt64, Shape({3})));
}

std::vector<Pipeline> Sources() {
  return {
      {"range_stop", [] { return Dataset::Range(5); }},
      {"range_start_stop", [] { return Dataset::Range(2, 7); }},
      {"range_step", [] { return Dataset::Range(0, 10, 3); }},
      {"range_negative_step", [] { return Dataset::Range(5, -5, -2); }},
      {"range_empty", [] { return Dataset::Range(0); }},
      {"range_that_cannot_begin", [] { return Dataset::Range(5, 2); }},
      {"from_tensors_scalar", [] { return Dataset::FromTensors(3.5f); }},
      {"from_tensors_vector", OneTwoThree},
      {"from_tensors_tuple", Pair},
      {"from_tensor_slices_ints",
       [] {
         return Dataset::FromTensorSlices<int32_t>({1, -2, 3});
       }},
      {"from_tensor_slices_matrix", Matrix},
      {"from_tensor_slices_strings",
       [] {
         return Strings({"a", "", "ccc"});
       }},
      {"from_tensor_slices_dict", Dict},
      {"from_tensor_slices_bools",
       [] {
         return Dataset::FromTensorSlices<bool>({true, false, true});
       }},
      {"text_lines", [] { return Dataset::TextLine(DataFile("a.txt")); }},
      {"text_lines_of_two_files",
       [] {
         return Dataset::TextLine({DataFile("a.txt"), DataFile("b.txt")});
       }},
      {"text_lines_of_listed_files",
       [] { return Dataset::ListFiles(DataFile("*.txt")).FlatMap(Dataset::TextLine); }},
      {"text_lines_interleaved",
       [] {
         return Dataset::ListFiles(DataFile("*.txt"))
             .Interleave(Dataset::TextLine, {.cycle_length = 2, .block_length = 2});
       }},
      {"tfrecords", [] { return Dataset::TFRecord(DataFile("a.tfrecord")); }},
      {"tfrecords_of_two_files",
       [] {
         return Dataset::TFRecord({DataFile("a.tfrecord"), DataFile("b.tfrecord")});
       }},
      {"tfrecords_gzip",
       [] {
         return Dataset::TFRecord(DataFile("a.tfrecord.gz"), {.compression = Compression::kGzip});
       }},
      {"tfrecords_zlib",
       [] {
         return Dataset::TFRecord(DataFile("a.tfrecord.zlib"), {.compression = Compression::kZlib});
       }},
      {"fixed_length_records", [] { return Dataset::FixedLengthRecord(DataFile("fixed.bin"), 8); }},
      {"fixed_length_records_with_header_and_footer",
       [] {
         return Dataset::FixedLengthRecord(DataFile("fixed.bin"), 4,
                                           {.header_bytes = 2, .footer_bytes = 2});
       }},
  };
}

std::vector<Pipeline> Joins() {
  return {
      {"zip_two",
       [] {
         return Dataset::Zip({Dataset::Range(3), Dataset::Range(10, 13)});
       }},
      {"zip_ends_with_the_shortest",
       [] {
         return Dataset::Zip({Dataset::Range(7), Dataset::Range(10, 13), Dataset::Range(5)});
       }},
      {"zip_nested",
       [] {
         return Dataset::Zip(
             {Dataset::Range(3), Dataset::Zip({Dataset::Range(10, 13), Dataset::Range(20, 30)})});
       }},
      {"zip_of_batches",
       [] {
         return Dataset::Zip({Dataset::Range(7), Dataset::Range(20).Batch(5)});
       }},
      {"zip_with_nothing",
       [] {
         return Dataset::Zip({Dataset::Range(7), Dataset::Range(0)});
       }},
      {"zip_of_the_same",
       [] {
         return Dataset::Zip({Dataset::Range(3).Repeat(2), Dataset::Range(3).Skip(1)});
       }},
      {"concatenate", [] { return Dataset::Range(1, 4).Concatenate(Dataset::Range(4, 8)); }},
      {"concatenate_shapes",
       [] {
         return Dataset::Range(4)
             .Batch(2, {.drop_remainder = true})
             .Concatenate(Dataset::Range(3).Batch(3, {.drop_remainder = true}));
       }},
      {"concatenate_nothing",
       [] {
         return Dataset::Range(0).Concatenate(Dataset::Range(2)).Concatenate(Dataset::Range(0));
       }},
      {"concatenate_repeated",
       [] { return Dataset::Range(2).Concatenate(Dataset::Range(5, 7)).Repeat(2); }},
      {"choose_documented",
       [] {
         return Dataset::ChooseFromDatasets(
             {Dataset::FromTensors("foo").Repeat(), Dataset::FromTensors("bar").Repeat(),
              Dataset::FromTensors("baz").Repeat()},
             Dataset::Range(3).Repeat(3));
       }},
      {"choose_stops_on_empty",
       [] {
         return Dataset::ChooseFromDatasets({Dataset::Range(2), Dataset::Range(10, 20)},
                                            Numbers({0, 1, 0, 1, 0, 1, 1}));
       }},
      {"choose_passes_over_empty",
       [] {
         return Dataset::ChooseFromDatasets({Dataset::Range(2), Dataset::Range(10, 20)},
                                            Numbers({0, 1, 0, 1, 0, 1, 1}),
                                            {.stop_on_empty_dataset = false});
       }},
      {"choose_until_all_are_empty",
       [] {
         return Dataset::ChooseFromDatasets({Dataset::Range(2), Dataset::Range(10, 15)},
                                            Dataset::Range(2).Repeat(),
                                            {.stop_on_empty_dataset = false});
       }},
      {"choose_nothing",
       [] {
         return Dataset::ChooseFromDatasets({Dataset::Range(2), Dataset::Range(3)},
                                            Dataset::Range(0));
       }},
      {"choose_one",
       [] {
         return Dataset::ChooseFromDatasets({Dataset::Range(5, 9)}, Numbers({0, 0, 0}));
       }},
      {"choose_of_tuples",
       [] {
         return Dataset::ChooseFromDatasets(
             {Dataset::Range(9).Enumerate(), Dataset::Range(20, 29).Enumerate(100)},
             Numbers({1, 1, 0, 1}));
       }},
      {"sample_all",
       [] {
         return Dataset::SampleFromDatasets({Dataset::Range(5), Dataset::Range(10, 14)},
                                            {.seed = 1});
       }},
      {"sample_with_weights",
       [] {
         return Dataset::SampleFromDatasets(
             {Dataset::Range(5), Dataset::Range(10, 14), Dataset::Range(20, 29)},
             {.weights = {0.2, 0.0, 0.8}, .seed = 1});
       }},
      {"sample_of_one", [] { return Dataset::SampleFromDatasets({Dataset::Range(5)}); }},
  };
}

}  // namespace

std::vector<Pipeline> SourcePipelines() {
  std::vector<Pipeline> all = Sources();
  for (Pipeline& pipeline : Joins()) all.push_back(std::move(pipeline));
  return all;
}

}  // namespace penstock::tensorflow
