// SPDX-License-Identifier: Apache-2.0
// Cases of the nodes that combine elements and split them.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"
#include "penstock/register.h"
#include "tests/dataplane/dataset/suite.h"

namespace penstock::suite {
namespace {

constexpr int64_t kAny = kUnknownDim;

// Returns x % 5 numbers from x on; fails for 3, 10, 17, …
absl::Status CountUpOrFail(CallContext& call) {
  const int64_t x = call.inputs()[0].scalar<int64_t>();
  if (x % 7 == 3) return absl::InvalidArgumentError(absl::StrCat(x, " is not liked"));
  const int64_t dims[] = {x % 5};
  ASSIGN_OR_RETURN(absl::Span<int64_t> out, call.OutputAs<int64_t>(0, dims));
  for (int64_t i = 0; i < dims[0]; ++i) out[i] = x + i;
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("suite.count_up_or_fail", 1, Dense(kInt64, Shape({kAny})), CountUpOrFail);

Expr Length(const Expr& x) {
  return ShapeOf(x)[0];
}
// Vectors of 0 to 4 numbers; none is 0.
Dataset Vectors(int64_t count) {
  return Dataset::Range(count).Map([](Expr x) { return Call("suite.count_up", x); });
}
Dataset SomeFail(int64_t count) {
  return Dataset::Range(count).Map([](Expr x) { return Call("suite.count_up_or_fail", x); });
}
// The vectors with a component of fixed shape.
Dataset Named(int64_t count) {
  return Vectors(count).Map([](Expr x) { return Struct({{"x", x}, {"n", Length(x)}}); });
}
// A dict of two sequences of equal length.
Dataset Twins(const Dataset& vectors) {
  return vectors.Map([](Expr x) {
    return Struct({{"tokens", Cast(x, kInt32)}, {"weights", Cast(x, kFloat32) / 2.0f}});
  });
}
Dataset RecordsOf(const char* pattern) {
  return Dataset::ListFiles(pattern, {.shuffle = true, .seed = 5}).FlatMap(Dataset::TFRecord);
}
Dataset DictsOfSquares(int64_t count) {
  return Dataset::Range(count).Map([](Expr x) { return Struct({{"x", x}, {"square", x * x}}); });
}

// Returns the rows with their padding cut off: zeros, which occur nowhere else.
std::vector<std::string> RowsWithoutPadding(const Element& batch) {
  std::vector<std::string> rows;
  const Tensor values = batch.tensor(0);
  for (int64_t r = 0; r < values.dim(0); ++r) {
    std::string& row = rows.emplace_back();
    for (int64_t i = 0; i < values.dim(1); ++i) {
      const int64_t value = values.data<int64_t>()[r * values.dim(1) + i];
      if (value != 0) absl::StrAppend(&row, value, " ");
    }
  }
  return rows;
}
// Returns the sequences packed into a row.
std::vector<std::string> Segments(const Element& row) {
  const Tensor tokens = row["tokens"], ids = row["tokens_segment_ids"];
  std::vector<std::string> segments;
  for (int64_t i = 0; i < tokens.dim(0) && ids.data<int32_t>()[i] != 0; ++i) {
    segments.resize(ids.data<int32_t>()[i]);
    absl::StrAppend(&segments.back(), tokens.data<int32_t>()[i], " ");
  }
  return segments;
}

std::vector<Case> PaddedBatchCases() {
  return {
      {.name = "PaddedBatch",
       .kinds = {"PaddedBatch"},
       .make = [] { return Vectors(43).PaddedBatch(4); },
       .parts = RowsWithoutPadding},
      {.name = "PaddedBatchInPlace",
       .kinds = {"PaddedBatch"},
       .make =
           [] {
             return Vectors(43).PaddedBatch(4, {.padded_shapes = {{"", Shape({5})}}});
           },
       .parts = RowsWithoutPadding},
      {.name = "MapPaddedBatch",
       .kinds = {"PaddedBatch"},
       .make =
           [] {
             return Vectors(43)
                 .Map([](Expr x) { return x * 2; }, {.num_parallel_calls = 3})
                 .PaddedBatch(4, {.padded_shapes = {{"", Shape({5})}}});
           },
       .parts = RowsWithoutPadding},
      Counting({.name = "MapPaddedBatchTooSmallForSome",
                .kinds = {"PaddedBatch"},
                .make =
                    [] {
                      return Vectors(41)
                          .Map([](Expr x) { return x + 1; })
                          .PaddedBatch(3, {.padded_shapes = {{"", Shape({3})}}});
                    }}),
      Counting({.name = "PaddedBatchWithoutRemainder",
                .kinds = {"PaddedBatch"},
                .make =
                    [] {
                      return Named(43).PaddedBatch(4, {.padded_shapes = {{"x", Shape({5})}},
                                                       .padding_values = {{"x", -1}},
                                                       .drop_remainder = true});
                    }}),
      Counting({.name = "PaddedBatchTooSmallForSome",
                .kinds = {"PaddedBatch"},
                .make =
                    [] {
                      return Vectors(41).PaddedBatch(3, {.padded_shapes = {{"", Shape({3})}}});
                    }}),
      Counting({.name = "PaddedBatchOfErrors",
                .kinds = {"PaddedBatch"},
                .make = [] { return SomeFail(40).PaddedBatch(3); }}),
      Counting({.name = "PaddedBatchOfStrings",
                .kinds = {"PaddedBatch"},
                .make =
                    [] {
                      return RecordsOf("/data/*.tfrecord")
                          .Batch(3)
                          .PaddedBatch(2, {.padding_values = {{"", "none"}}});
                    }}),
      {.name = "PaddedBatchOfNothing",
       .kinds = {"PaddedBatch"},
       .make = [] { return Vectors(0).PaddedBatch(4); }},
  };
}

std::vector<Case> UnbatchCases() {
  return {
      {.name = "Unbatch",
       .kinds = {"Unbatch"},
       .make = [] { return DictsOfSquares(43).Batch(4).Unbatch(); }},
      {.name = "UnbatchOfStrings",
       .kinds = {"Unbatch"},
       .make = [] { return RecordsOf("/data/*.tfrecord").Batch(3).Unbatch(); }},
      {.name = "UnbatchOfRagged",
       .kinds = {"Unbatch"},
       .make = [] { return Vectors(22).RaggedBatch(4).Unbatch(); }},
      Counting({.name = "UnbatchOfRaggedTwice",
                .kinds = {"Unbatch"},
                .make = [] { return Vectors(22).RaggedBatch(3).RaggedBatch(2).Unbatch(); }}),
      {.name = "UnbatchOfEmptyBatches",
       .kinds = {"Unbatch"},
       .make = [] { return Vectors(23).Unbatch(); }},
      Counting({.name = "UnbatchOfErrors",
                .kinds = {"Unbatch"},
                .make = [] { return SomeFail(40).Unbatch(); }}),
      {.name = "UnbatchIntoABatch",
       .kinds = {"Unbatch"},
       .make = [] { return DictsOfSquares(43).Batch(7).Unbatch().Batch(3); },
       .parts = Rows},
      {.name = "UnbatchShuffled",
       .make = [] { return Dataset::Range(43).Batch(7).Unbatch().Shuffle(5).Prefetch(2); }},
      {.name = "Rebatch",
       .kinds = {"Rebatch"},
       .make = [] { return DictsOfSquares(43).Batch(7).Rebatch(4); },
       .parts = Rows},
      {.name = "RebatchToTheSameSize",
       .kinds = {"Rebatch"},
       .make = [] { return DictsOfSquares(43).Batch(4).Rebatch(4); },
       .parts = Rows},
      {.name = "RebatchToLarger",
       .kinds = {"Rebatch"},
       .make = [] { return Dataset::Range(43).Batch(3).Rebatch(16); },
       .parts = Rows},
      Counting(
          {.name = "RebatchWithoutRemainder",
           .kinds = {"Rebatch"},
           .make =
               [] { return Dataset::Range(43).Batch(4).Rebatch(4, {.drop_remainder = true}); }}),
      Counting({.name = "RebatchInTurns",
                .kinds = {"Rebatch"},
                .make =
                    [] {
                      return Dataset::Range(43).Batch(5).Rebatch({2, 0, 3});
                    }}),
      {.name = "RebatchOfStrings",
       .kinds = {"Rebatch"},
       .make = [] { return RecordsOf("/data/*.tfrecord").Batch(3).Rebatch(2); },
       .parts = Rows},
      Counting({.name = "RebatchOfRagged",
                .kinds = {"Rebatch"},
                .make = [] { return Vectors(43).RaggedBatch(4).Rebatch(3); }}),
      Counting({.name = "RebatchOfErrors",
                .kinds = {"Rebatch"},
                .make = [] { return SomeFail(50).Rebatch(7); }}),
      {.name = "RebatchOfNothing",
       .kinds = {"Rebatch"},
       .make = [] { return Vectors(0).Rebatch(7); }},
  };
}

std::vector<Case> BucketCases() {
  return {
      {.name = "Bucket",
       .kinds = {"BucketBySequenceLength"},
       .make =
           [] {
             return Vectors(83).BucketBySequenceLength(Length, {2, 4}, {5, 4, 3});
           },
       .parts = RowsWithoutPadding},
      {.name = "BucketOfAge",
       .kinds = {"BucketBySequenceLength"},
       .make =
           [] {
             return Vectors(83).BucketBySequenceLength(Length, {2, 4}, {9, 9, 20}, {.max_age = 11});
           },
       .parts = RowsWithoutPadding},
      Counting(
          {.name = "BucketOfNoAge",
           .kinds = {"BucketBySequenceLength"},
           .make =
               [] {
                 return Vectors(40).BucketBySequenceLength(Length, {1}, {2, 2}, {.max_age = 0});
               }}),
      Counting({.name = "BucketToTheBoundary",
                .kinds = {"BucketBySequenceLength"},
                .make =
                    [] {
                      return Vectors(60).BucketBySequenceLength(
                          Length, {2, 4}, {3, 4, 5},
                          {.padding_values = {{"", 9}}, .pad_to_bucket_boundary = true});
                    }}),
      Counting({.name = "BucketRagged",
                .kinds = {"BucketBySequenceLength"},
                .make =
                    [] {
                      return Named(60).BucketBySequenceLength(
                          [](Expr e) { return Length(e["x"]); }, {3}, {4, 4},
                          {.no_padding = true, .drop_remainder = true});
                    }}),
      Counting({.name = "BucketOfErrors",
                .kinds = {"BucketBySequenceLength"},
                .make =
                    [] {
                      return SomeFail(60).BucketBySequenceLength(Length, {2, 4}, {3, 4, 5},
                                                                 {.max_age = 17});
                    }}),
      {.name = "BucketOfNothing",
       .kinds = {"BucketBySequenceLength"},
       .make =
           [] {
             return Vectors(0).BucketBySequenceLength(Length, {2}, {3, 3});
           }},
  };
}

std::vector<Case> WindowCases() {
  return {
      {.name = "Window",
       .kinds = {"Window"},
       .make = [] { return DictsOfSquares(43).Window(5).Batch(); },
       .parts = Rows},
      Counting({.name = "WindowOverlapping",
                .kinds = {"Window"},
                .make =
                    [] {
                      return Dataset::Range(23)
                          .Window(4, {.shift = 1, .stride = 2, .drop_remainder = true})
                          .Batch();
                    }}),
      Counting(
          {.name = "WindowWithRemainders",
           .kinds = {"Window"},
           .make = [] { return Vectors(23).Window(4, {.shift = 3, .stride = 2}).PaddedBatch(); }}),
      Counting({.name = "WindowWithGaps",
                .kinds = {"Window"},
                .make = [] { return Vectors(50).Window(3, {.shift = 7}).RaggedBatch(); }}),
      Counting({.name = "WindowOfErrors",
                .kinds = {"Window"},
                .make = [] { return SomeFail(30).Window(3, {.shift = 2}).RaggedBatch(); }}),
      Counting({.name = "WindowFlat",
                .kinds = {"Window"},
                .make =
                    [] {
                      return Named(30).Window(5, {.shift = 4}).FlatMap([](const Dataset& window) {
                        return window.Skip(1).PaddedBatch(3);
                      });
                    }}),
      Counting({.name = "WindowOfMoreThanThereAre",
                .kinds = {"Window"},
                .make = [] { return Dataset::Range(5).Window(9, {.shift = 20}).Batch(); }}),
      {.name = "GroupByWindow",
       .kinds = {"GroupByWindow"},
       .make =
           [] {
             return DictsOfSquares(61).GroupByWindow([](Expr e) { return e["x"] % 4; }, 5).Batch();
           },
       .parts = Rows},
      {.name = "GroupByWindowOfAge",
       .kinds = {"GroupByWindow"},
       .make =
           [] {
             return Dataset::Range(61)
                 .GroupByWindow([](Expr x) { return Cast(x * x % 11, kInt32); }, 4, {.max_age = 12})
                 .Batch();
           },
       .parts = Rows},
      Counting({.name = "GroupByWindowPacked",
                .kinds = {"GroupByWindow"},
                .make =
                    [] {
                      return Twins(Vectors(61))
                          .GroupByWindow([](Expr e) { return Length(e["tokens"]) % 2; }, 8,
                                         {.drop_remainder = true})
                          .Pack(6);
                    }}),
      Counting({.name = "GroupByWindowOfErrors",
                .kinds = {"GroupByWindow"},
                .make =
                    [] {
                      return SomeFail(61)
                          .GroupByWindow([](Expr x) { return Length(x) / 2; }, 4)
                          .PaddedBatch({.padded_shapes = {{"", Shape({3})}}});
                    }}),
  };
}

std::vector<Case> RoundsCases() {
  const auto third = [](Expr x) { return x % 3; };
  return {
      {.name = "Rounds",
       .kinds = {"Rounds"},
       .make = [third] { return Dataset::Range(64).Rounds(4, {.bucket = third}); }},
      {.name = "RoundsOfCost",
       .kinds = {"Rounds"},
       .make =
           [] {
             return DictsOfSquares(61).Rounds(
                 3, {.cost = [](Expr e) { return Cast(e["square"], kFloat32) * 0.25f; },
                     .cost_spread = 0.5});
           }},
      {.name = "RoundsOfAge",
       .kinds = {"Rounds"},
       .make =
           [] {
             return Dataset::Range(61).Rounds(
                 4, {.bucket = [](Expr x) { return Cast(x * x % 11, kInt32); }, .max_age = 9});
           }},
      Counting({.name = "RoundsOfErrors",
                .kinds = {"Rounds"},
                .make =
                    [] {
                      return SomeFail(61).Rounds(
                          3, {.bucket = [](Expr x) { return Length(x) / 2; }, .max_age = 12});
                    }}),
      {.name = "RoundsOfNothing",
       .kinds = {"Rounds"},
       .make = [third] { return Dataset::Range(0).Rounds(4, {.bucket = third}); }},
  };
}

std::vector<Case> PackCases() {
  return {
      {.name = "Pack",
       .kinds = {"Pack"},
       .make = [] { return Twins(Vectors(83)).Pack(7); },
       .parts = Segments},
      {.name = "PackIntoOpenRows",
       .kinds = {"Pack"},
       .make = [] { return Twins(Vectors(83)).Pack(7, {.open_rows = 4}); },
       .parts = Segments},
      Counting({.name = "PackIntoABatch",
                .kinds = {"Pack"},
                .make =
                    [] {
                      return Twins(Vectors(83))
                          .Pack(7, {.open_rows = 3, .padding_values = {{"tokens", -1}}})
                          .Batch(3);
                    }}),
      Counting({.name = "PackTruncated",
                .kinds = {"Pack"},
                .make =
                    [] {
                      return Twins(Vectors(43))
                          .Pack({{"tokens", 3}, {"weights", 2}},
                                {.open_rows = 2, .too_long = TooLong::kTruncate});
                    }}),
      Counting(
          {.name = "PackSplit",
           .kinds = {"Pack"},
           .make =
               [] {
                 return Twins(Vectors(43)).Pack(3, {.open_rows = 3, .too_long = TooLong::kSplit});
               }}),
      Counting({.name = "PackOfErrors",
                .kinds = {"Pack"},
                .make = [] { return Twins(SomeFail(60)).Pack(3, {.open_rows = 2}); }}),
      {.name = "PackOfNothing",
       .kinds = {"Pack"},
       .make = [] { return Twins(Vectors(0)).Pack(3); }},
  };
}

}  // namespace

std::vector<Case> BatchingCases() {
  std::vector<Case> all;
  for (auto* part :
       {PaddedBatchCases, UnbatchCases, BucketCases, WindowCases, RoundsCases, PackCases})
    for (Case& c : part()) all.push_back(std::move(c));
  return all;
}

}  // namespace penstock::suite
