// SPDX-License-Identifier: Apache-2.0
// Steps in which some replicas lack data: all replicas make equal numbers of steps by each policy,
// in one process and as seen by each of several.
#include <algorithm>

#include "tests/dataplane/replica/replicas.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Steps = std::vector<std::vector<Rows>>;

absl::StatusOr<DistributedDataset> Distributed(const ReplicaGroup& group, const Dataset& dataset,
                                               PartialBatches policy,
                                               AutoShardPolicy shard = AutoShardPolicy::kAuto,
                                               std::optional<int64_t> steps = std::nullopt) {
  InputOptions options;
  options.partial_batches = policy;
  options.auto_shard = shard;
  options.steps = steps;
  return DistributeDataset(group, dataset, options);
}

Dataset Batches(int64_t count, int64_t size) {
  return Dataset::Range(count).Batch(size);
}

TEST(PartialBatches, EmptyOnesForReplicasWithoutData) {
  EXPECT_EQ(ReadSteps(Distributed(Mirrored(3), Batches(7, 6), PartialBatches::kEmpty)),
            (Steps{{{0, 1}, {2, 3}, {4, 5}}, {{6}, {}, {}}}));
}

TEST(PartialBatches, EmptyOnesHaveTheOtherDimensions) {
  const Dataset rows = Dataset::FromTensorSlices<float>({1, 2, 3, 4, 5})
                           .Map([](auto x) { return BroadcastTo(x, {3}); })
                           .Batch(4);
  absl::StatusOr<DistributedDataset> dataset =
      Distributed(Mirrored(2), rows, PartialBatches::kEmpty);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  absl::StatusOr<DistributedIterator> it = dataset->MakeIterator();
  ASSERT_TRUE(it->Next().ok());
  absl::StatusOr<DistributedValues> last = it->GetNext();
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_THAT((*last)[0].tensor(0).dims(), ElementsAre(1, 3));
  EXPECT_THAT((*last)[1].tensor(0).dims(), ElementsAre(0, 3));
}

TEST(PartialBatches, DroppedForAll) {
  EXPECT_EQ(ReadSteps(Distributed(Mirrored(3), Batches(7, 6), PartialBatches::kDrop)),
            (Steps{{{0, 1}, {2, 3}, {4, 5}}}));
  // A short batch does not count as missing, but is dropped with its step.
  EXPECT_EQ(ReadSteps(Distributed(Mirrored(2), Batches(7, 4), PartialBatches::kDrop)),
            (Steps{{{0, 1}, {2, 3}}}));
}

TEST(PartialBatches, PaddedFromTheFrontWithWeights) {
  absl::StatusOr<DistributedDataset> dataset =
      Distributed(Mirrored(3), Batches(7, 6), PartialBatches::kPad);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  absl::StatusOr<DistributedIterator> it = dataset->MakeIterator();
  absl::StatusOr<DistributedValues> whole = it->GetNext();
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(whole->weights(0), IsEmpty());
  absl::StatusOr<DistributedValues> last = it->GetNext();
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(RowsOf((*last)[0]), (Rows{6, 0}));
  EXPECT_THAT(last->weights(0), ElementsAre(1, 0));
  EXPECT_EQ(RowsOf((*last)[1]), (Rows{1, 2}));
  EXPECT_THAT(last->weights(1), ElementsAre(0, 0));
  EXPECT_EQ(RowsOf((*last)[2]), (Rows{3, 4}));
  EXPECT_FALSE(it->Next()->has_value());
}

TEST(PartialBatches, WeightsEnterSumsAndMeansOverRows) {
  const ReplicaGroup group = Mirrored(2);
  absl::StatusOr<DistributedDataset> dataset = Distributed(
      group, Dataset::FromTensorSlices<float>({1, 2, 3, 4, 10}).Batch(4), PartialBatches::kPad);
  absl::StatusOr<DistributedIterator> it = dataset->MakeIterator();
  ASSERT_TRUE(it->Next().ok());
  absl::StatusOr<DistributedValues> last = it->GetNext();
  ASSERT_TRUE(last.ok()) << last.status();
  absl::StatusOr<Element> mean = group.Reduce(ReduceOp::kMean, *last, 0);
  ASSERT_TRUE(mean.ok()) << mean.status();
  EXPECT_FLOAT_EQ(mean->tensor(0).scalar<float>(), 10);
  EXPECT_FLOAT_EQ(group.Reduce(ReduceOp::kSum, *last, 0)->tensor(0).scalar<float>(), 10);
}

TEST(PartialBatches, RepeatedFromTheFront) {
  EXPECT_EQ(ReadSteps(Distributed(Mirrored(3), Batches(7, 6), PartialBatches::kRepeat)),
            (Steps{{{0, 1}, {2, 3}, {4, 5}}, {{6, 0}, {1, 2}, {3, 4}}}));
  // If there are fewer rows than are missing, they are repeated.
  EXPECT_EQ(ReadSteps(Distributed(Mirrored(3), Batches(2, 6), PartialBatches::kRepeat)),
            (Steps{{{0, 1}, {0, 1}, {0, 1}}}));
}

TEST(PartialBatches, NothingAtAllEndsAtOnce) {
  for (const PartialBatches policy : {PartialBatches::kEmpty, PartialBatches::kDrop,
                                      PartialBatches::kPad, PartialBatches::kRepeat}) {
    EXPECT_EQ(ReadSteps(Distributed(Mirrored(2), Batches(0, 6), policy)), Steps());
  }
}

TEST(PartialBatches, ALoneReplicaHasThemToo) {
  EXPECT_EQ(ReadSteps(Distributed(Mirrored(1), Batches(3, 2), PartialBatches::kEmpty)),
            (Steps{{{0, 1}}, {{2}}}));
  EXPECT_EQ(ReadSteps(Distributed(Mirrored(1), Batches(3, 2), PartialBatches::kDrop)),
            (Steps{{{0, 1}}}));
  EXPECT_EQ(ReadSteps(Distributed(Mirrored(1), Batches(3, 2), PartialBatches::kRepeat)),
            (Steps{{{0, 1}}, {{2, 0}}}));
}

TEST(PartialBatches, PaddingNeedsToKnowTheBatchSize) {
  const Dataset unknown = Batches(9, 4).Map([](auto x) { return x + 1; });
  for (const PartialBatches policy : {PartialBatches::kPad, PartialBatches::kRepeat}) {
    const absl::Status status = Distributed(Mirrored(2), unknown, policy).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("drop_remainder"));
  }
}

TEST(PartialBatches, GivenStepsAreMadeWhateverTheDataHas) {
  const auto read = [](PartialBatches policy, int64_t steps) {
    return ReadSteps(
        Distributed(Mirrored(2), Batches(6, 4), policy, AutoShardPolicy::kAuto, steps));
  };
  EXPECT_EQ(read(PartialBatches::kEmpty, 3), (Steps{{{0, 1}, {2, 3}}, {{4, 5}, {}}, {{}, {}}}));
  EXPECT_EQ(read(PartialBatches::kRepeat, 3),
            (Steps{{{0, 1}, {2, 3}}, {{4, 5}, {0, 1}}, {{2, 3}, {4, 5}}}));
  EXPECT_EQ(read(PartialBatches::kEmpty, 1), (Steps{{{0, 1}, {2, 3}}}));
}

TEST(PartialBatches, DroppingCannotMakeStepsThatThereAreNot) {
  absl::StatusOr<DistributedDataset> dataset =
      Distributed(Mirrored(2), Batches(6, 4), PartialBatches::kDrop, AutoShardPolicy::kAuto, 3);
  absl::StatusOr<DistributedIterator> it = dataset->MakeIterator();
  ASSERT_TRUE(it->Next().ok());
  const absl::Status status = it->Next().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("ended at step 1, but every replica must run 3 steps"));
  EXPECT_FALSE(it->Next()->has_value());
}

// --- Several processes, each planned as it would be there ------------------------------

class AcrossProcesses
    : public ::testing::TestWithParam<std::tuple<PartialBatches, AutoShardPolicy>> {};

// Ten sizes of data, cut in all ways. Every process makes as many steps, and the steps in which all
// replicas have a part contain each row as often as they should.
TEST_P(AcrossProcesses, MakeAsManySteps) {
  const auto [policy, shard] = GetParam();
  for (const std::vector<int>& replicas :
       {std::vector<int>{1, 1}, {2, 2}, {1, 2}, {3, 1, 2}, {1, 1, 1, 1}}) {
    for (int64_t count : {0, 1, 3, 6, 7, 12, 13, 14, 29, 61}) {
      SCOPED_TRACE(absl::StrCat(count, " rows, ", replicas.size(), " processes"));
      Rows seen;
      std::vector<size_t> steps;
      for (size_t process = 0; process < replicas.size(); ++process) {
        const Steps read = ReadSteps(Distributed(Process(static_cast<int>(process), replicas),
                                                 Batches(count, 7), policy, shard));
        steps.push_back(read.size());
        for (const auto& step : read)
          for (const Rows& rows : step) seen.insert(seen.end(), rows.begin(), rows.end());
      }
      EXPECT_THAT(steps, ::testing::Each(steps[0]));
      if (shard != AutoShardPolicy::kData || policy == PartialBatches::kPad ||
          policy == PartialBatches::kRepeat)
        continue;
      std::sort(seen.begin(), seen.end());
      Rows all(static_cast<size_t>(policy == PartialBatches::kDrop ? count / 7 * 7 : count));
      for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
      EXPECT_EQ(seen, all);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Policies, AcrossProcesses,
    ::testing::Combine(::testing::Values(PartialBatches::kEmpty, PartialBatches::kDrop,
                                         PartialBatches::kPad, PartialBatches::kRepeat),
                       ::testing::Values(AutoShardPolicy::kOff, AutoShardPolicy::kData)));

TEST(StepsOfOthers, ThatCannotBeKnownAreRefusedInWords) {
  const Dataset unknown = Dataset::Range(20).Filter([](auto x) { return x % 3 == 0; }).Batch(4);
  const absl::Status status =
      Distributed(Process(0, {1, 1}), unknown, PartialBatches::kEmpty, AutoShardPolicy::kOff)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  for (const char* way : {"InputOptions::steps", "kData", "consumer_index", "Repeat"})
    EXPECT_THAT(std::string(status.message()), HasSubstr(way));
  // All remedies that the message names.
  EXPECT_EQ(ReadSteps(Distributed(Process(0, {1, 1}), unknown, PartialBatches::kEmpty,
                                  AutoShardPolicy::kOff, 5))
                .size(),
            5u);
  for (int process = 0; process < 2; ++process) {
    EXPECT_EQ(ReadSteps(Distributed(Process(process, {1, 1}), unknown, PartialBatches::kEmpty,
                                    AutoShardPolicy::kData))
                  .size(),
              2u);
  }
  EXPECT_EQ(ReadSteps(Distributed(Process(0, {1, 1}), unknown.Repeat(), PartialBatches::kEmpty,
                                  AutoShardPolicy::kOff),
                      9)
                .size(),
            9u);
}

}  // namespace
}  // namespace penstock
