// SPDX-License-Identifier: Apache-2.0
// Small pipelines and the results that tf.data's documentation gives for them, written by hand. A
// comment marks each intended difference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/dataplane/dataset/transforms/text_of.h"
#include "tests/dataplane/dataset/transforms/vectors.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Returns 0, 1 … x - 1 as one tensor, for each of the lengths x.
Dataset Ranges(std::vector<int64_t> lengths) {
  return Numbers(std::move(lengths)).FlatMap([](Expr x) { return Dataset::Range(x).Batch(100); });
}

TEST(Map, AppliesTheFunctionInOrder) {
  EXPECT_THAT(ReadAll(Dataset::Range(1, 6).Map([](Expr x) { return x + 1; })),
              ElementsAre("2", "3", "4", "5", "6"));
}

TEST(Map, GivesTheStructureOfTheFunctionsResult) {
  const Dataset dataset = Dataset::Range(2).Map([](Expr x) {
    return Struct({{"b", Tuple({x, x * 10})}, {"a", x == 1}});
  });
  EXPECT_THAT(ReadAll(dataset), ElementsAre("{a: false, b: (0, 0)}", "{a: true, b: (1, 10)}"));
}

TEST(Map, KeepsTheOrderHoweverManyCallsRun) {
  std::vector<std::string> expected;
  for (int64_t i = 0; i < 500; ++i) expected.push_back(std::to_string(i * i));
  for (int64_t calls : {1, 2, 7, 64}) {
    EXPECT_EQ(ReadAll(Dataset::Range(500).Map([](Expr x) { return x * x; },
                                              {.num_parallel_calls = calls})),
              expected);
  }
}

TEST(Filter, KeepsElementsThatSatisfyThePredicate) {
  EXPECT_THAT(ReadAll(Numbers({1, 2, 3}).Filter([](Expr x) { return x < 3; })),
              ElementsAre("1", "2"));
}

TEST(FlatMap, ReadsTheDatasetsOneAfterTheOther) {
  // tf.data: flat_map(Dataset.from_tensor_slices) over rows.
  EXPECT_THAT(ReadAll(Dataset::Range(9).Batch(3).FlatMap(
                  [](Expr x) { return Dataset::FromTensorSlices(x); })),
              ElementsAre("0", "1", "2", "3", "4", "5", "6", "7", "8"));
}

TEST(FlatMap, PassesOverEmptyDatasets) {
  EXPECT_THAT(ReadAll(Numbers({0, 2, 0, 0, 1}).FlatMap([](Expr x) { return Dataset::Range(x); })),
              ElementsAre("0", "1", "0"));
}

TEST(Interleave, IsTheDocumentedExample) {
  // tf.data: Dataset.range(1, 6).interleave(lambda x: from_tensors(x).repeat(6),
  // cycle_length=2, block_length=4)
  const Dataset dataset =
      Dataset::Range(1, 6).Interleave([](Expr x) { return Dataset::FromTensors(x).Repeat(6); },
                                      {.cycle_length = 2, .block_length = 4});
  EXPECT_THAT(ReadAll(dataset),
              ElementsAre("1", "1", "1", "1", "2", "2", "2", "2", "1", "1", "2", "2",  //
                          "3", "3", "3", "3", "4", "4", "4", "4", "3", "3", "4", "4",  //
                          "5", "5", "5", "5", "5", "5"));
}

TEST(Interleave, TakesTurnsByOneUnlessToldOtherwise) {
  EXPECT_THAT(ReadAll(Numbers({10, 20, 30})
                          .Interleave([](Expr x) { return Dataset::FromTensors(x).Repeat(2); },
                                      {.cycle_length = 3})),
              ElementsAre("10", "20", "30", "10", "20", "30"));
}

TEST(Interleave, OpensTheNextWhereOneEnded) {
  // Two slots have 2 and 3 elements; the third dataset takes the first slot.
  EXPECT_THAT(ReadAll(Numbers({2, 3, 2}).Interleave([](Expr x) { return Dataset::Range(x); },
                                                    {.cycle_length = 2})),
              ElementsAre("0", "0", "1", "1", "2", "0", "1"));
}

TEST(Interleave, WithACycleOfOneIsFlatMap) {
  EXPECT_EQ(ReadAll(Dataset::Range(6).Interleave([](Expr x) { return Dataset::Range(x); },
                                                 {.cycle_length = 1})),
            ReadAll(Dataset::Range(6).FlatMap([](Expr x) { return Dataset::Range(x); })));
}

TEST(Batch, KeepsTheRemainderUnlessToldToDropIt) {
  EXPECT_THAT(ReadAll(Dataset::Range(8).Batch(3)), ElementsAre("[0, 1, 2]", "[3, 4, 5]", "[6, 7]"));
  EXPECT_THAT(ReadAll(Dataset::Range(8).Batch(3, {.drop_remainder = true})),
              ElementsAre("[0, 1, 2]", "[3, 4, 5]"));
}

TEST(Batch, KnowsItsFirstDimensionOnlyWithoutARemainder) {
  EXPECT_EQ(Dataset::Range(8).Batch(3).element_spec(), Spec(Dense(kInt64, Shape({kUnknownDim}))));
  EXPECT_EQ(Dataset::Range(8).Batch(3, {.drop_remainder = true}).element_spec(),
            Spec(Dense(kInt64, Shape({3}))));
}

TEST(Batch, StacksEachComponent) {
  const Dataset dataset = Dataset::Range(3).Map([](Expr x) {
    return Struct({{"x", x}, {"half", Cast(x, kFloat32) / 2.0f}});
  });
  EXPECT_THAT(ReadAll(dataset.Batch(2)),
              ElementsAre("{half: [0, 0.5], x: [0, 1]}", "{half: [1], x: [2]}"));
}

TEST(Batch, OfBatchesHasOneMoreDimension) {
  EXPECT_THAT(ReadAll(Dataset::Range(8).Batch(2).Batch(2)),
              ElementsAre("[[0, 1], [2, 3]]", "[[4, 5], [6, 7]]"));
}

TEST(Batch, StacksStrings) {
  EXPECT_THAT(ReadAll(Dataset::FromTensorSlices<std::string>({"a", "", "ccc"}).Batch(2)),
              ElementsAre("[a, ]", "[ccc]"));
}

TEST(Batch, RefusesRowsOfDifferentShapesAndGoesOn) {
  EXPECT_THAT(ReadAll(Ranges({2, 2, 3, 1, 2, 2}).Batch(2)),
              ElementsAre("[[0, 1], [0, 1]]",
                          "error: the element: row 1 of a batch has shape [1], but row 0 has shape "
                          "[3]; PaddedBatch and RaggedBatch take rows of different shapes; in "
                          "Batch#4",
                          "[[0, 1], [0, 1]]"));
}

TEST(RaggedBatch, MakesUnknownDimensionsRagged) {
  const Dataset dataset = Ranges({1, 3, 2}).RaggedBatch(2);
  EXPECT_EQ(dataset.element_spec(), Spec(Ragged(kInt64, Shape({kUnknownDim, kUnknownDim}), 1)));
  EXPECT_THAT(ReadAll(dataset), ElementsAre("[[0], [0, 1, 2]]", "[[0, 1]]"));
}

TEST(RaggedBatch, KeepsKnownShapesDense) {
  EXPECT_THAT(ReadAll(Dataset::Range(3).RaggedBatch(2)), ElementsAre("[0, 1]", "[2]"));
  EXPECT_EQ(Dataset::Range(3).RaggedBatch(2).element_spec(),
            Dataset::Range(3).Batch(2).element_spec());
}

TEST(RaggedBatch, AddsALevelToRaggedElements) {
  EXPECT_THAT(ReadAll(Ranges({1, 2, 3}).RaggedBatch(2).Batch(2)),
              ElementsAre("[[[0], [0, 1]], [[0, 1, 2]]]"));
}

TEST(RaggedBatch, IsRaggedUpToTheLastUnknownDimension) {
  // Elements [2, ?]: two ragged levels, the outer one uniform.
  const Dataset rows = Ranges({2, 3}).Map([](Expr x) { return Reshape(x, {1, -1}); });
  EXPECT_THAT(ReadAll(rows.RaggedBatch(2)), ElementsAre("[[[0, 1]], [[0, 1, 2]]]"));
}

TEST(Repeat, ReadsAgain) {
  EXPECT_THAT(ReadAll(Numbers({1, 2, 3}).Repeat(3)),
              ElementsAre("1", "2", "3", "1", "2", "3", "1", "2", "3"));
  EXPECT_THAT(ReadAll(Numbers({1, 2, 3}).Repeat(0)), IsEmpty());
  EXPECT_THAT(ReadAll(Numbers({1, 2}).Repeat(), {.limit = 5}),
              ElementsAre("1", "2", "1", "2", "1"));
}

TEST(Repeat, BeforeBatchMixesPasses) {
  EXPECT_THAT(ReadAll(Dataset::Range(3).Repeat(2).Batch(4)), ElementsAre("[0, 1, 2, 0]", "[1, 2]"));
  EXPECT_THAT(ReadAll(Dataset::Range(3).Batch(4).Repeat(2)), ElementsAre("[0, 1, 2]", "[0, 1, 2]"));
}

// Lists one file; the second call fails.
class FilesThatFailOnce final : public Files {
 public:
  explicit FilesThatFailOnce(absl::Status error) : error_(std::move(error)) {}
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name, std::stop_token) override {
    return absl::NotFoundError(name);
  }
  absl::StatusOr<std::vector<std::string>> Glob(const std::string&, std::stop_token) override {
    if (++lists_ == 2) return error_;
    return std::vector<std::string>{"a"};
  }

 private:
  const absl::Status error_;
  int lists_ = 0;
};

TEST(Repeat, APassThatCannotBeMadeAtTheMomentIsTriedAgain) {
  const Dataset dataset = Dataset::ListFiles("*").Repeat(3);
  for (const absl::Status& error :
       {absl::UnavailableError("busy"), absl::ResourceExhaustedError("busy"),
        absl::DeadlineExceededError("busy"), absl::AbortedError("busy")}) {
    FilesThatFailOnce files(error);
    EXPECT_THAT(ReadAll(dataset, {.files = &files}),
                ElementsAre("a", ::testing::HasSubstr("busy"), "a", "a"))
        << error;
  }
  // An error that would recur for ever ends the reading.
  FilesThatFailOnce gone(absl::NotFoundError("gone"));
  EXPECT_THAT(ReadAll(dataset, {.files = &gone}), ElementsAre("a", ::testing::HasSubstr("gone")));
}

TEST(Repeat, WithoutEndOfNothingIsAnError) {
  // tf.data ends at once; here it is an error, because an endless dataset that ends would end a
  // training silently.
  const std::vector<std::string> all =
      ReadAll(Dataset::Range(5).Filter([](Expr x) { return x > 9; }).Repeat());
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_THAT(all[0], ::testing::HasSubstr("Repeat#2: the input is empty"));
}

TEST(Take, GivesAtMostSoMany) {
  EXPECT_THAT(ReadAll(Dataset::Range(10).Take(3)), ElementsAre("0", "1", "2"));
  EXPECT_THAT(ReadAll(Dataset::Range(2).Take(3)), ElementsAre("0", "1"));
  EXPECT_THAT(ReadAll(Dataset::Range(2).Take(-1)), ElementsAre("0", "1"));
  EXPECT_THAT(ReadAll(Dataset::Range(2).Take(0)), IsEmpty());
}

TEST(Skip, LeavesOutTheFirst) {
  EXPECT_THAT(ReadAll(Dataset::Range(10).Skip(7)), ElementsAre("7", "8", "9"));
  EXPECT_THAT(ReadAll(Dataset::Range(10).Skip(70)), IsEmpty());
  EXPECT_THAT(ReadAll(Dataset::Range(10).Skip(-1)), IsEmpty());
}

TEST(Shard, GivesEachNth) {
  EXPECT_THAT(ReadAll(Dataset::Range(10).Shard(3, 0)), ElementsAre("0", "3", "6", "9"));
  EXPECT_THAT(ReadAll(Dataset::Range(10).Shard(3, 2)), ElementsAre("2", "5", "8"));
}

TEST(Zip, EndsWithTheShortest) {
  EXPECT_THAT(ReadAll(Dataset::Zip({Dataset::Range(1, 4), Dataset::Range(4, 9)})),
              ElementsAre("(1, 4)", "(2, 5)", "(3, 6)"));
}

TEST(Zip, NestsTuples) {
  EXPECT_THAT(
      ReadAll(Dataset::Zip({Dataset::Range(1, 3).Enumerate(), Dataset::Range(7, 13).Batch(2)})),
      ElementsAre("((0, 1), [7, 8])", "((1, 2), [9, 10])"));
}

TEST(Concatenate, ReadsOneThenTheOther) {
  EXPECT_THAT(ReadAll(Dataset::Range(1, 4).Concatenate(Dataset::Range(4, 8))),
              ElementsAre("1", "2", "3", "4", "5", "6", "7"));
}

TEST(Concatenate, WidensShapes) {
  const Dataset dataset = Dataset::Range(4)
                              .Batch(2, {.drop_remainder = true})
                              .Concatenate(Dataset::Range(3).Batch(3, {.drop_remainder = true}));
  EXPECT_EQ(dataset.element_spec(), Spec(Dense(kInt64, Shape({kUnknownDim}))));
  EXPECT_THAT(ReadAll(dataset), ElementsAre("[0, 1]", "[2, 3]", "[0, 1, 2]"));
}

TEST(Enumerate, CountsFromStart) {
  EXPECT_THAT(ReadAll(Numbers({1, 2, 3}).Enumerate(5)), ElementsAre("(5, 1)", "(6, 2)", "(7, 3)"));
}

TEST(Prefetch, ChangesNothing) {
  EXPECT_THAT(ReadAll(Dataset::Range(3).Prefetch(2)), ElementsAre("0", "1", "2"));
}

TEST(Options, ChangeNothing) {
  EXPECT_THAT(ReadAll(Dataset::Range(3).WithOptions({.deterministic = false, .threads = 1})),
              ElementsAre("0", "1", "2"));
}

TEST(Shuffle, GivesEachElementOnceInAnotherOrder) {
  std::vector<std::string> sorted = ReadAll(Dataset::Range(100));
  const std::vector<std::string> shuffled = ReadAll(Dataset::Range(100).Shuffle(100));
  EXPECT_NE(shuffled, sorted);
  EXPECT_THAT(shuffled, ::testing::UnorderedElementsAreArray(sorted));
}

TEST(Shuffle, IsTheSameForTheSameSeed) {
  const Dataset seeded = Dataset::Range(50).Shuffle(10, {.seed = 4});
  EXPECT_EQ(ReadAll(seeded, {.seed = 1}), ReadAll(seeded, {.seed = 2}));
  EXPECT_NE(ReadAll(seeded), ReadAll(Dataset::Range(50).Shuffle(10, {.seed = 5})));
  const Dataset open = Dataset::Range(50).Shuffle(10);
  EXPECT_EQ(ReadAll(open, {.seed = 1}), ReadAll(open, {.seed = 1}));
  EXPECT_NE(ReadAll(open, {.seed = 1}), ReadAll(open, {.seed = 2}));
}

TEST(Shuffle, OfOneKeepsTheOrder) {
  EXPECT_EQ(ReadAll(Dataset::Range(20).Shuffle(1)), ReadAll(Dataset::Range(20)));
}

TEST(Shuffle, OrdersEachRepetitionDifferentlyByDefault) {
  const auto halves = [](const Dataset& dataset) {
    const std::vector<std::string> all = ReadAll(dataset);
    return std::pair(std::vector(all.begin(), all.begin() + 40),
                     std::vector(all.begin() + 40, all.end()));
  };
  const auto [first, second] = halves(Dataset::Range(40).Shuffle(40).Repeat(2));
  EXPECT_NE(first, second);
  EXPECT_THAT(first, ::testing::UnorderedElementsAreArray(second));
  const auto [third, fourth] =
      halves(Dataset::Range(40).Shuffle(40, {.reshuffle_each_iteration = false}).Repeat(2));
  EXPECT_EQ(third, fourth);
}

TEST(Shuffle, BeforeRepeatKeepsPassesApart) {
  const std::vector<std::string> all = ReadAll(Dataset::Range(10).Shuffle(10).Repeat(3));
  for (int pass = 0; pass < 3; ++pass) {
    EXPECT_THAT(std::vector(all.begin() + 10 * pass, all.begin() + 10 * (pass + 1)),
                ::testing::UnorderedElementsAreArray(ReadAll(Dataset::Range(10))));
  }
}

TEST(Cardinality, IsKnownWhereItCanBe) {
  const Dataset ten = Dataset::Range(10);
  const Dataset some = ten.Filter([](Expr x) { return x > 4; });
  EXPECT_EQ(ten.Batch(3).cardinality(), 4);
  EXPECT_EQ(ten.Batch(3, {.drop_remainder = true}).cardinality(), 3);
  EXPECT_EQ(ten.Repeat(3).cardinality(), 30);
  EXPECT_EQ(ten.Repeat().cardinality(), kInfinite);
  EXPECT_EQ(ten.Repeat().Take(7).cardinality(), 7);
  EXPECT_EQ(ten.Skip(4).cardinality(), 6);
  EXPECT_EQ(ten.Shard(3, 0).cardinality(), 4);
  EXPECT_EQ(ten.Shard(3, 1).cardinality(), 3);
  EXPECT_EQ(Dataset::Zip({ten.Repeat(), ten}).cardinality(), 10);
  EXPECT_EQ(Dataset::Zip({some, ten}).cardinality(), kUnknown);
  EXPECT_EQ(ten.Concatenate(ten.Repeat()).cardinality(), kInfinite);
  EXPECT_EQ(ten.Concatenate(ten).cardinality(), 20);
  EXPECT_EQ(ten.Enumerate().Prefetch().Shuffle(3).cardinality(), 10);
  EXPECT_EQ(some.cardinality(), kUnknown);
  EXPECT_EQ(ten.FlatMap([](Expr x) { return Dataset::Range(x); }).cardinality(), kUnknown);
}

}  // namespace
}  // namespace penstock
