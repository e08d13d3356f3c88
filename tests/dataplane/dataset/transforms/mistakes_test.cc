// SPDX-License-Identifier: Apache-2.0
// Refusals when a dataset is built, and errors while it is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"
#include "penstock/plugin.h"
#include "tests/dataplane/dataset/transforms/of_the_moment.h"
#include "tests/dataplane/dataset/transforms/text_of.h"
#include "tests/dataplane/dataset/transforms/vectors.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns x; fails for odd numbers.
absl::Status EvenOnly(CallContext& call) {
  const int64_t x = call.inputs()[0].scalar<int64_t>();
  if (x % 2 != 0) return absl::InvalidArgumentError(absl::StrCat(x, " is odd"));
  ASSIGN_OR_RETURN(absl::Span<int64_t> out, call.OutputAs<int64_t>(0, {}));
  out[0] = x;
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("mistakes.even_only", 1, Scalar(kInt64), EvenOnly);

Expr Even(const Expr& x) {
  return Call("mistakes.even_only", x);
}

// A source whose elements differ at each reading.
class MomentReader final : public SourceReader {
 public:
  absl::Status Open(int64_t) override { return absl::OkStatus(); }
  absl::StatusOr<bool> Next(ElementOutputs&) override { return false; }
  absl::StatusOr<std::string> Save() override { return ""; }
  absl::Status Restore(std::string_view) override { return absl::OkStatus(); }
};
const bool kSourceRegistered =
    RegisterSource("mistakes.moments",
                   {.describe = [](const Params&) -> absl::StatusOr<SourceInfo> {
                      return SourceInfo{.spec = Scalar(kInt64)};
                    },
                    .open = [](const Params&) -> absl::StatusOr<std::unique_ptr<SourceReader>> {
                      return std::make_unique<MomentReader>();
                    },
                    .deterministic = false})
        .ok() &&
    RegisterTransform(
        "mistakes.transform",
        {.describe = [](const Params&, const Spec& input, Cardinality)
             -> absl::StatusOr<TransformInfo> { return TransformInfo{.spec = input}; },
         .open = [](const Params&, const Spec&) -> absl::StatusOr<std::unique_ptr<Transform>> {
           return absl::UnimplementedError("is never read");
         }})
        .ok();

TEST(Mistakes, NondeterminismIsRefusedBelowNodesThatDecideByValue) {
  const Dataset of_a_map = Dataset::Range(10).Map(OfTheMoment);
  const Dataset of_a_source = FromSource("mistakes.moments");
  ASSERT_TRUE(of_a_map.status().ok() && of_a_source.status().ok()) << of_a_source.status();
  for (const Dataset& data : {of_a_map, of_a_source}) {
    const auto small = [](Expr x) { return x < 3; };
    for (const Dataset& deciding :
         {data.Filter(small), data.TakeWhile(small),
          data.FlatMap([](Expr x) { return Dataset::Range(x); }),
          data.Interleave([](Expr x) { return Dataset::Range(x); }), data.IgnoreErrors(),
          ApplyTransform(data, "mistakes.transform"),
          Dataset::ChooseFromDatasets({Dataset::Range(3), Dataset::Range(3)}, data)}) {
      EXPECT_THAT(Mistake(deciding), HasSubstr("not deterministic"));
    }
    EXPECT_TRUE(data.Batch(2).Prefetch(1).Shuffle(3).status().ok());
  }
}

TEST(Mistakes, NameTheNodeAndTheArgument) {
  const Dataset ten = Dataset::Range(10);
  EXPECT_EQ(Mistake(ten.Batch(0)), "Batch#1: batch_size must be at least 1, not 0");
  EXPECT_THAT(Mistake(ten.Map([](Expr x) { return x; }, {.num_parallel_calls = 0})),
              HasSubstr("Map#1: num_parallel_calls"));
  EXPECT_THAT(Mistake(ten.Shuffle(0)), HasSubstr("Shuffle#1: buffer_size"));
  EXPECT_THAT(Mistake(ten.Repeat(-2)), HasSubstr("Repeat#1: count"));
  EXPECT_THAT(Mistake(ten.Take(-2)), HasSubstr("Take#1: count"));
  EXPECT_THAT(Mistake(ten.Skip(-2)), HasSubstr("Skip#1: count"));
  EXPECT_THAT(Mistake(ten.Shard(0, 0)), HasSubstr("Shard#1: num_shards"));
  EXPECT_THAT(Mistake(ten.Shard(3, 3)), HasSubstr("Shard#1: index"));
  EXPECT_THAT(Mistake(ten.Prefetch(-2)), HasSubstr("Prefetch#1: buffer_size"));
  EXPECT_THAT(
      Mistake(ten.Interleave([](Expr x) { return Dataset::Range(x); }, {.cycle_length = 0})),
      HasSubstr("Interleave#2: cycle_length"));
  EXPECT_THAT(
      Mistake(ten.Interleave([](Expr x) { return Dataset::Range(x); }, {.block_length = 0})),
      HasSubstr("Interleave#2: block_length"));
  EXPECT_THAT(Mistake(ten.WithOptions({.threads = 0})), HasSubstr("Options#1: threads"));
  EXPECT_THAT(Mistake(ten.Filter([](Expr x) { return x; })),
              HasSubstr("Filter#1: predicate must return a bool scalar"));
  EXPECT_THAT(Mistake(ten.Map([](Expr x) { return x["a"]; })), HasSubstr("Map#1"));
  EXPECT_THAT(Mistake(Dataset::Zip({})), HasSubstr("Zip#0: takes"));
  EXPECT_THAT(Mistake(ten.Concatenate(Dataset::FromTensors(1.0f))),
              HasSubstr("Concatenate#2: the datasets differ"));
  EXPECT_THAT(Mistake(ten.Concatenate(ten.Enumerate())),
              HasSubstr("Concatenate#3: the datasets have different structures"));
}

TEST(Mistakes, TheFirstIsHandedOn) {
  const Dataset dataset = Dataset::Range(10).Batch(0).Map([](Expr x) { return x; }).Shuffle(0);
  EXPECT_THAT(Mistake(dataset), HasSubstr("Batch#1"));
}

TEST(Mistakes, NothingDecidesByAValueThatIsNotDeterministic) {
  ASSERT_TRUE(kOfTheMomentRegistered);
  const Dataset ten = Dataset::Range(10);
  EXPECT_THAT(Mistake(ten.Filter([](Expr x) { return OfTheMoment(x) > 3; })),
              HasSubstr("Filter#1: predicate calls a function that is registered as not"));
  EXPECT_THAT(Mistake(ten.Map(OfTheMoment).Filter([](Expr x) { return x > 3; })),
              HasSubstr("Filter#2: Map#1 calls a function"));
  EXPECT_THAT(Mistake(ten.Map(OfTheMoment).FlatMap([](Expr x) { return Dataset::Range(x); })),
              HasSubstr("FlatMap#3: Map#1 calls a function"));
  EXPECT_TRUE(ten.Map(OfTheMoment).Batch(2).status().ok());
}

TEST(Errors, StandAtTheirElementAndReadingGoesOn) {
  const std::vector<std::string> all =
      ReadAll(Dataset::Range(4).Map(Even, {.num_parallel_calls = 3}));
  ASSERT_EQ(all.size(), 4);
  EXPECT_EQ(all[0], "0");
  EXPECT_THAT(all[1], testing::AllOf(HasSubstr("1 is odd"), HasSubstr("in Map#1, element 1")));
  EXPECT_EQ(all[2], "2");
  EXPECT_THAT(all[3], HasSubstr("3 is odd"));
}

TEST(Errors, InARowStandForTheirBatch) {
  const Dataset dataset =
      Dataset::FromTensorSlices<int64_t>({0, 2, 4, 5, 7, 6, 8, 10}).Map(Even).Batch(3);
  const std::vector<std::string> all = ReadAll(dataset);
  ASSERT_EQ(all.size(), 3);
  EXPECT_EQ(all[0], "[0, 2, 4]");
  EXPECT_THAT(all[1], testing::AllOf(HasSubstr("5 is odd"),
                                     HasSubstr("row 0 of a batch, in which 2 rows failed")));
  EXPECT_EQ(all[2], "[8, 10]");
  // The error is the same when rows are not written in place.
  EXPECT_EQ(
      ReadAll(
          Dataset::FromTensorSlices<int64_t>({0, 2, 4, 5, 7, 6, 8, 10}).Map(Even).Take(-1).Batch(3))
          .size(),
      3);
}

TEST(Errors, TakeUpThePlaceOfAnElement) {
  const Dataset odd_fails = Dataset::Range(6).Map(Even);
  EXPECT_EQ(ReadAll(odd_fails.Take(3)).size(), 3);
  EXPECT_THAT(ReadAll(odd_fails.Shard(2, 0)), ElementsAre("0", "2", "4"));
  EXPECT_EQ(ReadAll(odd_fails.Enumerate())[2], "(2, 2)");
  EXPECT_EQ(ReadAll(Dataset::Zip({odd_fails, Dataset::Range(9)}))[4], "(4, 4)");
  EXPECT_EQ(ReadAll(odd_fails.Shuffle(4)).size(), 6);
  EXPECT_EQ(ReadAll(odd_fails.Prefetch(2))[4], "4");
}

}  // namespace
}  // namespace penstock
