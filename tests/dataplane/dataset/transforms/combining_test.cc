// SPDX-License-Identifier: Apache-2.0
// ChooseFromDatasets, SampleFromDatasets, Scan, TakeWhile, IgnoreErrors, Reduce and Apply: their
// results and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "control/observe/metrics.h"
#include "include/status_macros.h"
#include "penstock/register.h"
#include "tests/dataplane/dataset/transforms/of_the_moment.h"
#include "tests/dataplane/dataset/transforms/text_of.h"
#include "tests/dataplane/dataset/transforms/vectors.h"

namespace penstock {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Strings = std::vector<std::string>;

// Fails with the number as status code; returns 100 and more unchanged.
absl::Status FailAs(CallContext& call) {
  const int64_t x = call.inputs()[0].scalar<int64_t>();
  if (x < 100) return absl::Status(static_cast<absl::StatusCode>(x), absl::StrCat("code ", x));
  ASSIGN_OR_RETURN(absl::Span<int64_t> out, call.OutputAs<int64_t>(0, {}));
  out[0] = x;
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("combining.fail_as", 1, Scalar(kInt64), FailAs);

Expr Failing(const Expr& x) {
  return Call("combining.fail_as", x);
}

// --- ChooseFromDatasets -----------------------------------------------------------

TEST(ChooseFromDatasets, IsTheDocumentedExample) {
  // tf.data: choice = range(3).repeat(3)
  EXPECT_THAT(ReadAll(Dataset::ChooseFromDatasets(
                  {Dataset::FromTensors("foo").Repeat(), Dataset::FromTensors("bar").Repeat(),
                   Dataset::FromTensors("baz").Repeat()},
                  Dataset::Range(3).Repeat(3))),
              ElementsAre("foo", "bar", "baz", "foo", "bar", "baz", "foo", "bar", "baz"));
}

TEST(ChooseFromDatasets, EndsWhereOneEndsOrPassesOverIt) {
  const std::vector<Dataset> datasets = {Numbers({1}), Numbers({10, 20, 30})};
  const Dataset choice = Numbers({0, 1, 0, 1, 0, 1, 1});
  EXPECT_THAT(ReadAll(Dataset::ChooseFromDatasets(datasets, choice)), ElementsAre("1", "10"));
  EXPECT_THAT(
      ReadAll(Dataset::ChooseFromDatasets(datasets, choice, {.stop_on_empty_dataset = false})),
      ElementsAre("1", "10", "20", "30"));
}

TEST(ChooseFromDatasets, EndsWhenAllHaveEnded) {
  EXPECT_THAT(
      ReadAll(Dataset::ChooseFromDatasets({Numbers({1}), Numbers({2})}, Dataset::Range(2).Repeat(),
                                          {.stop_on_empty_dataset = false})),
      ElementsAre("1", "2"));
}

TEST(ChooseFromDatasets, TakesAnIndexThatIsNoneForAnErrorInItsPlace) {
  const Strings all = ReadAll(
      Dataset::ChooseFromDatasets({Numbers({1, 2}), Numbers({10, 20})}, Numbers({0, 2, -1, 1})));
  ASSERT_THAT(all, SizeIs(4));
  EXPECT_EQ(all[0], "1");
  EXPECT_THAT(all[1], HasSubstr("choice_dataset produced 2, but the datasets are 0 to 1"));
  EXPECT_THAT(all[2], HasSubstr("choice_dataset produced -1"));
  EXPECT_EQ(all[3], "10");
}

TEST(ChooseFromDatasets, HasNoSplitsOfItsChoice) {
  const Dataset dataset = Dataset::ChooseFromDatasets({Dataset::Range(5), Dataset::Range(7)},
                                                      Dataset::Range(2).Repeat());
  const absl::StatusOr<SplitPlan> plan = PlanSplits(dataset);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_THAT(plan->providers, SizeIs(2));
  EXPECT_EQ(plan->providers[0].count, 5);
  EXPECT_EQ(plan->providers[1].count, 7);
}

TEST(ChooseFromDatasets, RefusesMismatchedArguments) {
  const Dataset ten = Dataset::Range(10);
  EXPECT_THAT(
      Mistake(Dataset::ChooseFromDatasets({ten, Dataset::FromTensors(1.0f)}, ten)),
      HasSubstr("ChooseFromDatasets#3: the datasets differ: TensorSpec([], int64) in the first, "
                "TensorSpec([], float32) in the second; the second is dataset 1"));
  EXPECT_THAT(Mistake(Dataset::ChooseFromDatasets({ten}, ten.Batch(2))),
              HasSubstr("choice_dataset must produce int64 scalars"));
  EXPECT_THAT(Mistake(Dataset::ChooseFromDatasets({}, ten)), HasSubstr("takes 2 to"));
  ASSERT_TRUE(kOfTheMomentRegistered);
  EXPECT_THAT(Mistake(Dataset::ChooseFromDatasets({ten, ten}, ten.Map(OfTheMoment))),
              HasSubstr("registered as not deterministic"));
}

// --- SampleFromDatasets -----------------------------------------------------------

// Returns how many of the first `count` elements are `value`.
int64_t CountOf(const Dataset& dataset, const std::string& value, int64_t count) {
  const Strings all = ReadAll(dataset, {.limit = count});
  return std::count(all.begin(), all.end(), value);
}

TEST(SampleFromDatasets, DrawsByWeight) {
  const Dataset dataset = Dataset::SampleFromDatasets(
      {Numbers({1}).Repeat(), Numbers({2}).Repeat(), Numbers({3}).Repeat()},
      {.weights = {1, 0, 3}, .seed = 5});
  // 4,000 draws at 1/4: five standard deviations are 137.
  EXPECT_NEAR(CountOf(dataset, "1", 4000), 1000, 137);
  EXPECT_EQ(CountOf(dataset, "2", 4000), 0);
}

TEST(SampleFromDatasets, DrawsAlikeWithoutWeights) {
  const Dataset dataset =
      Dataset::SampleFromDatasets({Numbers({1}).Repeat(), Numbers({2}).Repeat()}, {.seed = 5});
  EXPECT_NEAR(CountOf(dataset, "1", 4000), 2000, 158);
}

TEST(SampleFromDatasets, ReadsAllByDefault) {
  const std::vector<Dataset> datasets = {Dataset::Range(3), Dataset::Range(10, 40)};
  EXPECT_THAT(ReadAll(Dataset::SampleFromDatasets(datasets)), SizeIs(33));
  EXPECT_EQ(Dataset::SampleFromDatasets(datasets).cardinality(), 33);
  const Strings some =
      ReadAll(Dataset::SampleFromDatasets(datasets, {.seed = 1, .stop_on_empty_dataset = true}));
  EXPECT_LT(some.size(), 33);
}

TEST(SampleFromDatasets, OmitsDatasetsThatAreNeverDrawn) {
  EXPECT_THAT(ReadAll(Dataset::SampleFromDatasets({Numbers({1}).Repeat(), Numbers({2, 3})},
                                                  {.weights = {0, 1}})),
              ElementsAre("2", "3"));
}

TEST(SampleFromDatasets, DrawsTheSameInEachRepetitionByDefault) {
  const auto halves = [](bool rerandomize) {
    const Strings all =
        ReadAll(Dataset::SampleFromDatasets({Dataset::Range(20), Dataset::Range(20, 40)},
                                            {.rerandomize_each_iteration = rerandomize})
                    .Repeat(2));
    return std::pair(Strings(all.begin(), all.begin() + 40), Strings(all.begin() + 40, all.end()));
  };
  const auto [first, second] = halves(false);
  EXPECT_EQ(first, second);
  const auto [third, fourth] = halves(true);
  EXPECT_NE(third, fourth);
}

TEST(SampleFromDatasets, RefusesWeightsThatAreNone) {
  const Dataset ten = Dataset::Range(10);
  const auto with = [&](std::vector<double> weights) {
    return Mistake(Dataset::SampleFromDatasets({ten, ten}, {.weights = std::move(weights)}));
  };
  EXPECT_THAT(with({1}), HasSubstr("SampleFromDatasets#2: weights has 1 values for 2 datasets"));
  EXPECT_THAT(with({1, -1}), HasSubstr("weights must be 0 or more"));
  EXPECT_THAT(with({1, 0.0 / 0.0}), HasSubstr("weights must be 0 or more"));
  EXPECT_THAT(with({1e308, 1e308}), HasSubstr("finite"));
  EXPECT_THAT(with({0, 0}), HasSubstr("weights are all 0"));
}

// --- Scan ---------------------------------------------------------------------------

TEST(Scan, CarriesAStateAlong) {
  EXPECT_THAT(ReadAll(Dataset::Range(1, 6).Scan(int64_t{0},
                                                [](Expr state, Expr x) {
                                                  return Tuple({state + x, state * x});
                                                })),
              ElementsAre("0", "2", "9", "24", "50"));
}

TEST(Scan, KnowsOutputAndCardinality) {
  const Dataset dataset = Dataset::Range(4).Scan(int64_t{0}, [](Expr state, Expr x) {
    return Tuple({state, Struct({{"x", Cast(x, kFloat32)}})});
  });
  EXPECT_EQ(dataset.element_spec(), Spec::Dict({{"x", Scalar(kFloat32)}}));
  EXPECT_EQ(dataset.cardinality(), 4);
}

TEST(Scan, TakesAStateWhoseShapeChanges) {
  const int64_t dims[] = {1};
  const int64_t zero = 0;
  const Dataset dataset =
      Dataset::Range(3)
          .Batch(3, {.drop_remainder = true})
          .Repeat(2)
          .Scan(Expr::Constant(Tensor(kInt64, dims, &zero)), [](Expr state, Expr x) {
            return Tuple({x + 1, state});
          });
  EXPECT_EQ(dataset.element_spec(), Spec(Dense(kInt64, Shape({kUnknownDim}))));
  EXPECT_THAT(ReadAll(dataset), ElementsAre("[0]", "[1, 2, 3]"));
}

TEST(Scan, KeepsTheStateWhereThereIsAnError) {
  const Strings all =
      ReadAll(Numbers({100, 3, 200, 300}).Map(Failing).Scan(int64_t{0}, [](Expr state, Expr x) {
        return Tuple({state + x, Failing(x - 100) + state});
      }));
  ASSERT_THAT(all, SizeIs(4));
  EXPECT_THAT(all[0], HasSubstr("in Scan#2, element 0"));  // from the function, on 0
  EXPECT_THAT(all[1], HasSubstr("code 3"));                // from the input
  EXPECT_EQ(all[2], "100");                                // the state is still 0
  EXPECT_EQ(all[3], "400");
}

TEST(Scan, RefusesAStateThatIsTooLarge) {
  const Dataset doubling = Dataset::Range(20).Scan("0123456789", [](Expr state, Expr x) {
    return Tuple({StringConcat(state, state), x});
  });
  const Strings all = ReadAll(doubling);
  ASSERT_THAT(all, SizeIs(20));
  EXPECT_EQ(all[11], "11");
  EXPECT_THAT(all[19], HasSubstr("bytes; the limit is 65536; in Scan#1, element 19"));
  EXPECT_THAT(Mistake(Dataset::Range(3).Scan(std::string_view(std::string(70'000, 'x')),
                                             [](Expr s, Expr x) {
                                               return Tuple({s, x});
                                             })),
              HasSubstr("Scan#1: initial_state takes"));
}

TEST(Scan, RefusesFunctionsThatDoNotFit) {
  const Dataset ten = Dataset::Range(10);
  EXPECT_THAT(
      Mistake(ten.Scan(int64_t{0}, [](Expr s, Expr x) { return s + x; })),
      HasSubstr("Scan#1: the function must return Tuple({new state, output}), not TensorSpec"));
  EXPECT_THAT(Mistake(ten.Scan(int64_t{0},
                               [](Expr, Expr x) {
                                 return Tuple({Cast(x, kFloat32), x});
                               })),
              HasSubstr("Scan#1: the states before and after an element differ"));
  EXPECT_THAT(Mistake(ten.Scan(int64_t{0},
                               [](Expr, Expr x) {
                                 return Tuple({Tuple({x}), x});
                               })),
              HasSubstr("have different structures"));
  Dataset inner;
  (void)ten.FlatMap([&](Expr x) {
    inner = Dataset::Range(x).Scan(x, [](Expr s, Expr y) { return Tuple({s, y}); });
    return inner;
  });
  EXPECT_THAT(Mistake(inner), HasSubstr("initial_state must be made of constants"));
}

// --- TakeWhile ----------------------------------------------------------------------

TEST(TakeWhile, EndsBeforeTheFirstThatIsFalse) {
  EXPECT_THAT(ReadAll(Numbers({1, 2, 9, 3}).TakeWhile([](Expr x) { return x < 5; })),
              ElementsAre("1", "2"));
  EXPECT_THAT(ReadAll(Dataset::Range(3).TakeWhile([](Expr x) { return x < 0; })), IsEmpty());
  EXPECT_THAT(ReadAll(Dataset::Range(3).TakeWhile([](Expr x) { return x < 5; })), SizeIs(3));
}

TEST(TakeWhile, EndsAnEndlessDataset) {
  EXPECT_THAT(
      ReadAll(Numbers({1, 2, 3}).Repeat().Enumerate().TakeWhile([](Expr e) { return e[0] < 4; })),
      SizeIs(4));
}

TEST(TakeWhile, RefusesFunctionsThatAreNoPredicate) {
  ASSERT_TRUE(kOfTheMomentRegistered);
  const Dataset ten = Dataset::Range(10);
  EXPECT_THAT(Mistake(ten.TakeWhile([](Expr x) { return x; })),
              HasSubstr("TakeWhile#1: predicate must return a bool scalar"));
  EXPECT_THAT(Mistake(ten.TakeWhile([](Expr x) { return OfTheMoment(x) > 3; })),
              HasSubstr("TakeWhile#1: predicate calls a function that is registered as not"));
  EXPECT_THAT(Mistake(ten.Map(OfTheMoment).TakeWhile([](Expr x) { return x > 3; })),
              HasSubstr("TakeWhile#2: Map#1 calls a function"));
}

// --- IgnoreErrors -------------------------------------------------------------------

TEST(IgnoreErrors, PassesOverErrorsOfTheData) {
  EXPECT_THAT(ReadAll(Numbers({100, 2, 3, 101, 5, 11, 12, 15, 102}).Map(Failing).IgnoreErrors()),
              ElementsAre("100", "101", "102"));
}

TEST(IgnoreErrors, ReturnsTransientErrors) {
  // DeadlineExceeded, PermissionDenied, ResourceExhausted, FailedPrecondition
  // (a lost session), Aborted, Internal, Unavailable, Unauthenticated.
  const std::vector<int64_t> codes = {4, 7, 8, 9, 10, 13, 14, 16};
  const Strings all = ReadAll(Numbers(codes).Map(Failing).IgnoreErrors());
  EXPECT_THAT(all, SizeIs(codes.size()));
  EXPECT_THAT(all, Each(HasSubstr("error: Call: code")));
}

TEST(IgnoreErrors, ReturnsErrorsBeyondTheMaximum) {
  const Strings all =
      ReadAll(Numbers({3, 100, 3, 101, 3, 102}).Map(Failing).IgnoreErrors({.max = 2}));
  ASSERT_THAT(all, SizeIs(4));
  EXPECT_THAT(all[2], HasSubstr("code 3"));
  EXPECT_THAT(Mistake(Dataset::Range(1).IgnoreErrors({.max = -1})),
              HasSubstr("IgnoreErrors#1: max must be 0 or more"));
}

TEST(IgnoreErrors, CountsSkippedErrors) {
  Counter& counter = ProcessMetrics().GetCounter("penstock_errors_ignored_total", "",
                                                 {{"node", "IgnoreErrors#2"}});
  const int64_t before = counter.value();
  ReadAll(Numbers({3, 100, 3, 101, 3}).Map(Failing).IgnoreErrors());
  EXPECT_EQ(counter.value() - before, 3);
}

TEST(IgnoreErrors, RefusesInputsWhoseErrorsMayDiffer) {
  ASSERT_TRUE(kOfTheMomentRegistered);
  EXPECT_THAT(Mistake(Dataset::Range(10).Map(OfTheMoment).IgnoreErrors()),
              HasSubstr("IgnoreErrors#2: Map#1 calls a function"));
}

// --- Reduce and Apply -----------------------------------------------------------------

TEST(Reduce, GivesTheLastState) {
  const absl::StatusOr<Element> sum =
      Dataset::Range(5).Reduce(int64_t{0}, [](Expr state, Expr x) { return state + x; });
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ(TextOf(*sum), "10");
  const absl::StatusOr<Element> mean = Dataset::Range(1, 5).Reduce(
      Struct({{"sum", 0.0f}, {"count", int64_t{0}}}), [](Expr state, Expr x) {
        return Struct({{"sum", state["sum"] + Cast(x, kFloat32)}, {"count", state["count"] + 1}});
      });
  ASSERT_TRUE(mean.ok()) << mean.status();
  EXPECT_EQ(TextOf(*mean), "{count: 4, sum: 10}");
}

TEST(Reduce, OfNothingGivesTheInitialState) {
  const absl::StatusOr<Element> none =
      Dataset::Range(0).Reduce(int64_t{7}, [](Expr state, Expr x) { return state + x; });
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(TextOf(*none), "7");
}

TEST(Reduce, StopsAtTheFirstError) {
  const absl::StatusOr<Element> sum =
      Numbers({100, 3, 200}).Map(Failing).Reduce(int64_t{0}, [](Expr s, Expr x) { return s + x; });
  EXPECT_EQ(sum.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(sum.status().message()), HasSubstr("in Reduce, element 1"));
}

TEST(Reduce, RefusesEndlessInputsAndMismatches) {
  const auto add = [](Expr state, Expr x) { return state + x; };
  EXPECT_THAT(std::string(Dataset::Range(3).Repeat().Reduce(int64_t{0}, add).status().message()),
              HasSubstr("the dataset is infinite"));
  EXPECT_THAT(std::string(Dataset::Range(3).Reduce(1.0f, add).status().message()),
              HasSubstr("in Reduce"));
  EXPECT_THAT(std::string(Dataset::Range(3).Batch(0).Reduce(int64_t{0}, add).status().message()),
              HasSubstr("Batch#1"));
}

TEST(Apply, CallsAFunctionOfTheDataset) {
  const auto squares = [](const Dataset& dataset) {
    return dataset.Map([](Expr x) { return x * x; });
  };
  EXPECT_THAT(ReadAll(Dataset::Range(4).Apply(squares).Take(3)), ElementsAre("0", "1", "4"));
}

}  // namespace
}  // namespace penstock
