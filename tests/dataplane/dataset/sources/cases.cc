// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "tests/dataplane/dataset/suite.h"

namespace penstock::suite {

std::vector<Case> SourceCases() {
  return {
      {.name = "Range", .kinds = {"Range"}, .make = [] { return Dataset::Range(-3, 40, 2); }},
      {.name = "RangeDownwards",
       .kinds = {"Range"},
       .make = [] { return Dataset::Range(10, -10, -3); }},
      {.name = "RangeOfNothing", .kinds = {"Range"}, .make = [] { return Dataset::Range(0); }},
      {.name = "FromTensors",
       .kinds = {"FromTensors"},
       .make = [] { return Dataset::FromTensors(2.5f); }},
      {.name = "FromTensorsOfNothing", .kinds = {"FromTensors"}, .make = [] { return Dataset(); }},
      {.name = "FromTensorSlices",
       .kinds = {"FromTensorSlices"},
       .make =
           [] {
             return Dataset::FromTensorSlices<int32_t>({3, 1, 4, 1, 5, 9, 2, 6});
           }},
      {.name = "FromTensorSlicesOfStrings",
       .kinds = {"FromTensorSlices"},
       .make =
           [] {
             return Dataset::FromTensorSlices<std::string>({"", "b", "", "four", "five"});
           }},
      {.name = "ListFiles",
       .kinds = {"ListFiles"},
       .make = [] { return Dataset::ListFiles("/data/*"); }},
      {.name = "ListFilesShuffled",
       .kinds = {"ListFiles"},
       .make =
           [] {
             return Dataset::ListFiles({"/data/*.txt", "/data/a*"}, {.shuffle = true, .seed = 3});
           }},
      {.name = "TFRecordDataset",
       .kinds = {"TFRecordDataset"},
       .make =
           [] {
             return TFRecordDataset({"/data/a.tfrecord", "/data/b.tfrecord", "/data/c.tfrecord"});
           }},
      {.name = "TextLineDataset",
       .kinds = {"TextLineDataset"},
       .make =
           [] {
             return TextLineDataset({"/data/b.txt", "/data/c.txt", "/data/a.txt"});
           }},
      {.name = "RangeOf",
       .kinds = {"RangeOf"},
       .make = [] { return Dataset::Range(6).FlatMap([](Expr x) { return RangeOf(x); }); }},
      {.name = "TensorsOf",
       .kinds = {"TensorsOf"},
       .make =
           [] {
             return Dataset::Range(6).FlatMap([](Expr x) {
               return TensorsOf(Struct({{"x", x}, {"twice", x * 2}}));
             });
           }},
      {.name = "TensorSlicesOf",
       .kinds = {"TensorSlicesOf"},
       .make =
           [] {
             return Dataset::FromTensorSlices<int32_t>({4, 5, 6}).FlatMap(
                 [](Expr x) { return TensorSlicesOf(OneHot(x, 6, kInt32)); });
           }},
      {.name = "TwoSourcesInOneFunction",
       .kinds = {"RangeOf", "TensorsOf"},
       .make =
           [] {
             return Dataset::Range(5).FlatMap(
                 [](Expr x) { return RangeOf(x).Concatenate(TensorsOf(x * 100)); });
           }},
      {.name = "TFRecordDatasetOf",
       .kinds = {"TFRecordDatasetOf"},
       .make = [] { return Dataset::ListFiles("/data/*.tfrecord").FlatMap(TFRecordDataset); }},
      {.name = "TextLineDatasetOf",
       .kinds = {"TextLineDatasetOf"},
       .make =
           [] {
             return Dataset::ListFiles("/data/*.txt", {.shuffle = true})
                 .Interleave(TextLineDataset, {.cycle_length = 2});
           }},
  };
}

}  // namespace penstock::suite
