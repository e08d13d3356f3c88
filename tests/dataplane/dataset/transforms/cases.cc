// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"
#include "penstock/register.h"
#include "tests/dataplane/dataset/suite.h"
#include "tests/dataplane/dataset/transforms/calls_of_cases.h"

namespace penstock::suite {
namespace {

// Fails for 3, 10, 17, …; returns other numbers unchanged.
absl::Status FailAtSome(CallContext& call) {
  const int64_t x = call.inputs()[0].scalar<int64_t>();
  if (x % 7 == 3) return absl::InvalidArgumentError(absl::StrCat(x, " is not liked"));
  ASSIGN_OR_RETURN(absl::Span<int64_t> out, call.OutputAs<int64_t>(0, {}));
  out[0] = x;
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("suite.fail_at_some", 1, Scalar(kInt64), FailAtSome);

// Returns three random numbers.
absl::Status DrawThree(CallContext& call) {
  const int64_t dims[] = {3};
  ASSIGN_OR_RETURN(absl::Span<uint64_t> out, call.OutputAs<uint64_t>(0, dims));
  for (uint32_t draw = 0; draw < 3; ++draw) out[draw] = call.Random(draw);
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("suite.draw_three", 1, Dense(kUInt64, Shape({3})), DrawThree);

// Returns x numbers from x on: a length that is not known in advance.
absl::Status CountUp(CallContext& call) {
  const int64_t x = call.inputs()[0].scalar<int64_t>() % 5;
  const int64_t dims[] = {x};
  ASSIGN_OR_RETURN(absl::Span<int64_t> out, call.OutputAs<int64_t>(0, dims));
  for (int64_t i = 0; i < x; ++i) out[i] = x + i;
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("suite.count_up", 1, Dense(kInt64, Shape({kUnknownDim})), CountUp);

Expr Squares(const Expr& x) {
  return Struct({{"x", x}, {"square", x * x}});
}
Dataset Records() {
  return Dataset::ListFiles("/data/*.tfrecord", {.shuffle = true, .seed = 5})
      .Interleave(Dataset::TFRecord, {.cycle_length = 2});
}

std::vector<Case> MapCases() {
  return {
      {.name = "Map",
       .kinds = {"Map"},
       .make = [] { return Dataset::Range(40).Map([](Expr x) { return x * 2 + 1; }); }},
      {.name = "MapInParallel",
       .kinds = {"Map"},
       .make = [] { return Dataset::Range(40).Map(Squares, {.num_parallel_calls = 3}); }},
      {.name = "MapOneAtATime",
       .kinds = {"Map"},
       .make = [] { return Dataset::Range(40).Map(Squares, {.num_parallel_calls = 1}); }},
      Counting({.name = "MapRandom",
                .kinds = {"Map"},
                .make = [] { return Dataset::Range(30).Map(Drawing, {.num_parallel_calls = 2}); }}),
      Counting({.name = "MapWithErrors",
                .kinds = {"Map"},
                .make = [] { return Dataset::Range(30).Map(Failing, {.num_parallel_calls = 2}); }}),
      {.name = "MapToUnknownLengths",
       .kinds = {"Map"},
       .make = [] { return Dataset::Range(30).Map(CountingUp, {.num_parallel_calls = 2}); }},
      {.name = "MapOfStrings",
       .kinds = {"Map"},
       .make =
           [] {
             return Records().Map([](Expr x) {
               return Struct({{"record", x}, {"length", StringLength(x)}});
             });
           }},
      {.name = "MapOfNothing",
       .kinds = {"Map"},
       .make = [] { return Dataset::Range(0).Map(Squares); }},
      {.name = "MapOfMap",
       .kinds = {"Map"},
       .make =
           [] {
             return Dataset::Range(30)
                 .Map(Squares, {.num_parallel_calls = 2})
                 .Map([](Expr e) { return e["x"] + e["square"]; }, {.num_parallel_calls = 3});
           }},
      {.name = "Filter",
       .kinds = {"Filter"},
       .make = [] { return Dataset::Range(50).Filter([](Expr x) { return x % 3 == 1; }); }},
      {.name = "FilterOfAll",
       .kinds = {"Filter"},
       .make = [] { return Dataset::Range(20).Filter([](Expr x) { return x < 0; }); }},
      Counting({.name = "FilterOfErrors",
                .kinds = {"Filter"},
                .make =
                    [] {
                      return Dataset::Range(30)
                          .Map(Failing, {.num_parallel_calls = 2})
                          .Filter([](Expr x) { return x % 2 == 0; });
                    }}),
  };
}

std::vector<Case> NestedCases() {
  return {
      {.name = "FlatMap",
       .kinds = {"FlatMap", "RangeOf"},
       .make =
           [] { return Dataset::Range(8).FlatMap([](Expr x) { return Dataset::Range(x % 4); }); }},
      {.name = "FlatMapOfSlices",
       .kinds = {"FlatMap", "TensorSlicesOf"},
       .make =
           [] {
             return Dataset::Range(8).Map(CountingUp).FlatMap([](Expr x) {
               return Dataset::FromTensorSlices(x).Map([](Expr y) { return y + 1; });
             });
           }},
      {.name = "FlatMapWithinFlatMap",
       .kinds = {"FlatMap"},
       .make =
           [] {
             return Dataset::Range(5).FlatMap([](Expr x) {
               return Dataset::Range(x).FlatMap([](Expr y) { return Dataset::Range(y + 1); });
             });
           }},
      Counting({.name = "FlatMapShufflesEachAnew",
                .kinds = {"FlatMap"},
                .make =
                    [] {
                      return Dataset::Range(4).FlatMap(
                          [](Expr x) { return Dataset::Range(x * 0 + 6).Shuffle(6).Map(Drawing); });
                    }}),
      Counting({.name = "FlatMapOfErrors",
                .kinds = {"FlatMap"},
                .make =
                    [] {
                      return Dataset::Range(12).Map(Failing).FlatMap(
                          [](Expr x) { return Dataset::Range(x % 3 + 1); });
                    }}),
      {.name = "Interleave",
       .kinds = {"Interleave", "TensorsOf"},
       .make =
           [] {
             return Dataset::Range(7).Interleave(
                 [](Expr x) { return Dataset::FromTensors(x).Repeat(5); },
                 {.cycle_length = 3, .block_length = 2});
           }},
      {.name = "InterleaveOfDifferentLengths",
       .kinds = {"Interleave"},
       .make =
           [] {
             return Dataset::Range(11).Interleave([](Expr x) { return Dataset::Range(x * x % 7); },
                                                  {.cycle_length = 4, .block_length = 3});
           }},
      {.name = "InterleaveOfMoreThanThereAre",
       .kinds = {"Interleave"},
       .make =
           [] {
             return Dataset::Range(3).Interleave([](Expr x) { return Dataset::Range(x + 2); },
                                                 {.cycle_length = 9});
           }},
      Counting({.name = "InterleaveOfErrors",
                .kinds = {"Interleave"},
                .make =
                    [] {
                      return Dataset::Range(20).Map(Failing).Interleave(
                          [](Expr x) { return Dataset::Range(x % 4).Map(Failing); },
                          {.cycle_length = 3});
                    }}),
      {.name = "InterleaveOfTFRecords",
       .kinds = {"Interleave", "TFRecordDatasetOf"},
       .make = Records},
      {.name = "InterleaveOfTextLines",
       .kinds = {"Interleave", "TextLineDatasetOf"},
       .make =
           [] {
             return Dataset::ListFiles("/data/*.txt")
                 .Interleave(Dataset::TextLine, {.cycle_length = 3, .block_length = 2});
           }},
  };
}

std::vector<Case> BatchCases() {
  return {
      {.name = "Batch",
       .kinds = {"Batch"},
       .make = [] { return Dataset::Range(43).Batch(4); },
       .parts = Rows},
      Counting({.name = "BatchWithoutRemainder",
                .kinds = {"Batch"},
                .make = [] { return Dataset::Range(43).Batch(4, {.drop_remainder = true}); }}),
      {.name = "BatchOverRows",
       .kinds = {"Batch"},
       .make =
           [] {
             return Dataset::Range(40)
                 .Map([](auto x) {
                   return Tuple({x * 3, Cast(x, kFloat32) / 2 < 7.0f});
                 })
                 .Batch(7);
           },
       .divides = false},
      {.name = "BatchOverRowsWithErrors",
       .kinds = {"Batch"},
       .make =
           [] { return Dataset::Range(40).Map([](auto x) { return 9 / (x % 13 - 4); }).Batch(4); },
       .divides = false},
      {.name = "BatchOfMoreThanThereAre",
       .kinds = {"Batch"},
       .make = [] { return Dataset::Range(5).Batch(8); },
       .parts = Rows},
      Counting({.name = "BatchOfMoreThanThereAreDropped",
                .kinds = {"Batch"},
                .make = [] { return Dataset::Range(5).Batch(8, {.drop_remainder = true}); }}),
      {.name = "BatchOfMoreThanMemory",
       .kinds = {"Batch"},
       .make = [] { return Dataset::Range(5).Batch(int64_t{1} << 40); },
       .parts = Rows},
      {.name = "BatchOfBatches",
       .kinds = {"Batch"},
       .make = [] { return Dataset::Range(24).Batch(1).Batch(5); },
       .parts = Rows},
      {.name = "BatchOfStrings",
       .kinds = {"Batch"},
       .make = [] { return Records().Batch(3); },
       .parts = Rows},
      {.name = "MapBatch",
       .kinds = {"Batch"},
       .make = [] { return Dataset::Range(43).Map(Squares).Batch(4); },
       .parts = Rows},
      {.name = "MapBatchInParallel",
       .kinds = {"Batch"},
       .make = [] { return Dataset::Range(43).Map(Squares, {.num_parallel_calls = 3}).Batch(4); },
       .parts = Rows},
      Counting({.name = "MapBatchRandom",
                .kinds = {"Batch"},
                .make =
                    [] {
                      return Dataset::Range(30)
                          .Map(Drawing, {.num_parallel_calls = 2})
                          .Batch(7, {.drop_remainder = true});
                    }}),
      Counting({.name = "MapBatchWithErrors",
                .kinds = {"Batch"},
                .make =
                    [] {
                      return Dataset::Range(30)
                          .Map(Failing, {.num_parallel_calls = 2})
                          .Map(Failing, {.num_parallel_calls = 2})
                          .Batch(4);
                    }}),
      Counting({.name = "BatchWithErrors",
                .kinds = {"Batch"},
                .make = [] { return Dataset::Range(30).Map(Failing).Take(29).Batch(4); }}),
      Counting({.name = "BatchOfDifferentShapes",
                .kinds = {"Batch"},
                .make = [] { return Dataset::Range(12).Map(CountingUp).Batch(3); }}),
      Counting({.name = "RaggedBatch",
                .kinds = {"RaggedBatch"},
                .make = [] { return Dataset::Range(22).Map(CountingUp).RaggedBatch(4); }}),
      Counting({.name = "RaggedBatchOfRagged",
                .kinds = {"RaggedBatch"},
                .make =
                    [] {
                      return Dataset::Range(22)
                          .Map(CountingUp)
                          .RaggedBatch(3)
                          .RaggedBatch(2, {.drop_remainder = true})
                          .Batch(2);
                    }}),
      {.name = "RaggedBatchOfStaticShapes",
       .kinds = {"RaggedBatch"},
       .make = [] { return Dataset::Range(22).Map(Squares).RaggedBatch(4); },
       .parts = Rows},
  };
}

std::vector<Case> OrderCases() {
  return {
      {.name = "Shuffle",
       .kinds = {"Shuffle"},
       .make = [] { return Dataset::Range(60).Shuffle(7); }},
      {.name = "ShuffleOfOne",
       .kinds = {"Shuffle"},
       .make = [] { return Dataset::Range(20).Shuffle(1); }},
      {.name = "ShuffleOfAll",
       .kinds = {"Shuffle"},
       .make = [] { return Dataset::Range(33).Shuffle(1000, {.seed = 3}); }},
      {.name = "ShuffleRepeated",
       .kinds = {"Shuffle"},
       .make = [] { return Dataset::Range(13).Shuffle(5).Repeat(3); }},
      {.name = "ShuffleOfRepeated",
       .kinds = {"Shuffle"},
       .make = [] { return Dataset::Range(13).Repeat(3).Shuffle(5); }},
      {.name = "ShuffleTheSameAgain",
       .kinds = {"Shuffle"},
       .make =
           [] {
             return Dataset::Range(13).Shuffle(5, {.reshuffle_each_iteration = false}).Repeat(3);
           }},
      Counting({.name = "ShuffleWithErrors",
                .kinds = {"Shuffle"},
                .make = [] { return Dataset::Range(30).Map(Failing).Shuffle(6); }}),
      {.name = "Repeat", .kinds = {"Repeat"}, .make = [] { return Dataset::Range(9).Repeat(4); }},
      {.name = "RepeatNever",
       .kinds = {"Repeat"},
       .make = [] { return Dataset::Range(9).Repeat(0); }},
      {.name = "RepeatOfNothing",
       .kinds = {"Repeat"},
       .make = [] { return Dataset::Range(0).Repeat(3); }},
      {.name = "RepeatOfRepeat",
       .kinds = {"Repeat"},
       .make = [] { return Dataset::Range(3).Shuffle(3).Repeat(2).Repeat(3); }},
      Counting({.name = "RepeatForever",
                .kinds = {"Repeat"},
                .make = [] { return Dataset::Range(7).Shuffle(7).Repeat(); },
                .limit = 30}),
      Counting({.name = "RepeatOfErrors",
                .kinds = {"Repeat"},
                .make = [] { return Dataset::Range(5).Map(Failing).Repeat(3); }}),
      Counting(
          {.name = "Take", .kinds = {"Take"}, .make = [] { return Dataset::Range(30).Take(11); }}),
      {.name = "TakeOfAll", .kinds = {"Take"}, .make = [] { return Dataset::Range(30).Take(-1); }},
      Counting({.name = "TakeOfErrors",
                .kinds = {"Take"},
                .make = [] { return Dataset::Range(30).Map(Failing).Take(11); }}),
      Counting(
          {.name = "Skip", .kinds = {"Skip"}, .make = [] { return Dataset::Range(30).Skip(11); }}),
      Counting({.name = "SkipOfAll",
                .kinds = {"Skip"},
                .make = [] { return Dataset::Range(30).Skip(-1); }}),
      Counting({.name = "SkipOfErrors",
                .kinds = {"Skip"},
                .make = [] { return Dataset::Range(30).Map(Failing).Skip(5); }}),
      Counting({.name = "Shard",
                .kinds = {"Shard"},
                .make = [] { return Dataset::Range(31).Shard(4, 2); }}),
      {.name = "ShardOfOne",
       .kinds = {"Shard"},
       .make = [] { return Dataset::Range(31).Shard(1, 0); }},
      Counting({.name = "ShardOfErrors",
                .kinds = {"Shard"},
                .make = [] { return Dataset::Range(31).Map(Failing).Shard(2, 1); }}),
  };
}

std::vector<Case> JoinCases() {
  return {
      Counting({.name = "Zip",
                .kinds = {"Zip"},
                .make =
                    [] {
                      return Dataset::Zip({Dataset::Range(20), Dataset::Range(100, 150),
                                           Dataset::Range(12).Map(Squares)});
                    }}),
      Counting({.name = "ZipOfErrors",
                .kinds = {"Zip"},
                .make =
                    [] {
                      return Dataset::Zip(
                          {Dataset::Range(20).Map(Failing), Dataset::Range(4, 30).Map(Failing)});
                    }}),
      Counting({.name = "ZipBatch",
                .kinds = {"Zip"},
                .make =
                    [] {
                      return Dataset::Zip({Dataset::Range(20), Dataset::Range(100, 150)}).Batch(3);
                    }}),
      {.name = "Concatenate",
       .kinds = {"Concatenate"},
       .make = [] { return Dataset::Range(9).Concatenate(Dataset::Range(100, 112)); }},
      {.name = "ConcatenateOfDifferentShapes",
       .kinds = {"Concatenate"},
       .make = [] { return Dataset::Range(9).Batch(3).Concatenate(Dataset::Range(8).Batch(4)); },
       .parts = Rows},
      Counting({.name = "Enumerate",
                .kinds = {"Enumerate"},
                .make = [] { return Dataset::Range(50, 70).Enumerate(-3); }}),
      Counting({.name = "EnumerateOfErrors",
                .kinds = {"Enumerate"},
                .make = [] { return Dataset::Range(20).Map(Failing).Enumerate(); }}),
      {.name = "Prefetch",
       .kinds = {"Prefetch"},
       .make = [] { return Dataset::Range(40).Prefetch(3); }},
      {.name = "PrefetchAutotuned",
       .kinds = {"Prefetch"},
       .make = [] { return Dataset::Range(40).Map(Squares).Prefetch(); }},
      {.name = "PrefetchOfNone",
       .kinds = {"Prefetch"},
       .make = [] { return Dataset::Range(10).Prefetch(0); }},
      Counting({.name = "PrefetchOfErrors",
                .kinds = {"Prefetch"},
                .make = [] { return Dataset::Range(20).Map(Failing).Prefetch(2).Prefetch(5); }}),
      {.name = "Options",
       .kinds = {"Options"},
       .make =
           [] {
             return Dataset::Range(20).Map(Squares).WithOptions(
                 {.deterministic = false, .threads = 3});
           }},
  };
}

std::vector<Case> StackedCases() {
  return {
      {.name = "RecordsShuffledAndBatched",
       .make =
           [] {
             return Records()
                 .Map([](Expr x) {
                   return Struct({{"r", x}, {"n", StringLength(x)}});
                 })
                 .Shuffle(4)
                 .Batch(3)
                 .Prefetch(2);
           },
       .parts = Rows},
      {.name = "EpochsOfShuffledBatches",
       .make =
           [] {
             return Dataset::Range(23)
                 .Shuffle(8)
                 .Repeat(2)
                 .Map(Squares, {.num_parallel_calls = 2})
                 .Batch(5)
                 .Prefetch(1);
           },
       .parts = Rows},
      {.name = "FilteredInterleavedShuffled",
       .make =
           [] {
             return Dataset::Range(9)
                 .Interleave([](Expr x) { return Dataset::Range(x + 3); }, {.cycle_length = 4})
                 .Filter([](Expr x) { return x % 2 == 0; })
                 .Map(Squares, {.num_parallel_calls = 3})
                 .Prefetch(4)
                 .Shuffle(5);
           }},
      Counting({.name = "EverythingAtOnce",
                .make =
                    [] {
                      return Dataset::Zip(
                                 {Records().Repeat(3), Dataset::Range(100).Map(Drawing).Shuffle(9)})
                          .Skip(2)
                          .Enumerate(10)
                          .Take(30)
                          .Shard(3, 1)
                          .Batch(2)
                          .Prefetch(2)
                          .Repeat(2);
                    }}),
  };
}

}  // namespace

std::vector<Case> TransformCases() {
  std::vector<Case> all;
  for (auto* part : {MapCases, NestedCases, BatchCases, OrderCases, JoinCases, StackedCases})
    for (Case& c : part()) all.push_back(std::move(c));
  return all;
}

}  // namespace penstock::suite
