// SPDX-License-Identifier: Apache-2.0
// Coordinated reads: all consumers see the same rounds, whatever process goes away.
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "control/observe/metrics.h"
#include "tests/cluster/consumers.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RoundsTest : public ::testing::TestWithParam<int64_t> {};

TEST_P(RoundsTest, AllConsumersSeeTheSameRounds) {
  const int64_t consumers = GetParam();
  Cluster cluster(2);
  auto its = Consumers(cluster, consumers, Numbers(400), ShardingPolicy::kDynamic);
  const std::vector<Read> reads = ReadTogether(its);
  for (const Read& read : reads) EXPECT_TRUE(read.error.ok()) << read.error;
  ExpectAligned(reads, 0, /*remainder_rounds=*/1);
  EXPECT_EQ(Values(reads), UpTo(400));
}
INSTANTIATE_TEST_SUITE_P(Consumers, RoundsTest, ::testing::Values(1, 2, 4));

TEST(Rounds, EveryWorkerReadsTheWholeUnderOff) {
  Cluster cluster(2);
  auto its = Consumers(cluster, 2, Numbers(100), ShardingPolicy::kOff);
  const std::vector<Read> reads = ReadTogether(its);
  ExpectAligned(reads);
  std::vector<int64_t> twice = UpTo(100);
  twice.insert(twice.end(), twice.begin(), twice.end());
  EXPECT_EQ(Values(reads), Sorted(twice));
}

struct RemainderCase {
  RemainderPolicy remainder_policy;
  int64_t rounds;    // that the elements make
  int64_t elements;  // without pads
  int64_t pads;
};
class RemainderTest : public ::testing::TestWithParam<RemainderCase> {};

// Two whole passes of 11 elements for 4 consumers. The remainders of 3 and 3 together make one
// whole round, and 2 elements of another.
TEST_P(RemainderTest, AtMostOneRoundIsNotFilled) {
  const RemainderCase& its = GetParam();
  Cluster cluster(2);
  auto consumers =
      Consumers(cluster, 4, Numbers(11), ShardingPolicy::kOff, [&](DistributeOptions& options) {
        std::get<CoordinatedRounds>(options.delivery).remainder_policy = its.remainder_policy;
      });
  const std::vector<Read> reads = ReadTogether(consumers);
  ExpectAligned(reads, 0, /*remainder_rounds=*/2);
  std::map<int64_t, int64_t> pads;
  for (const Read& read : reads) {
    EXPECT_EQ(read.rounds.size(), static_cast<size_t>(its.rounds));
    EXPECT_EQ(absl::IsOutOfRange(read.error), its.remainder_policy == RemainderPolicy::kError)
        << read.error;
    for (const Seen& seen : read.rounds) pads[seen.token.round] += seen.token.pad ? 1 : 0;
  }
  EXPECT_EQ(static_cast<int64_t>(Values(reads).size()), its.elements);
  EXPECT_EQ(static_cast<int64_t>(Values(reads, /*pads=*/true).size()), its.elements + its.pads);
  if (its.pads > 0) {
    EXPECT_EQ(pads[its.rounds - 1], its.pads);
  }
}
INSTANTIATE_TEST_SUITE_P(Policies, RemainderTest,
                         ::testing::Values(RemainderCase{RemainderPolicy::kPad, 6, 22, 2},
                                           RemainderCase{RemainderPolicy::kDrop, 5, 20, 0},
                                           RemainderCase{RemainderPolicy::kError, 5, 20, 0}));

// The pad is a copy of the last element, which is the other consumer's. That consumer is at its
// end.
TEST(Rounds, AConsumerThatComesBackForItsPadAloneGetsIt) {
  Cluster cluster(1);
  auto its = Consumers(cluster, 2, Numbers(9), ShardingPolicy::kDynamic,
                       [](DistributeOptions& options) { options.ack_mode = AckMode::kOnCommit; });
  auto other = std::async(std::launch::async, [&] { return ReadRounds(its[0]); });
  const Read before = ReadRounds(its[1], 4);
  ASSERT_TRUE(before.error.ok()) << before.error;
  const absl::StatusOr<State> state = its[1].Save();
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_TRUE(its[1].Commit(*state).ok());
  EXPECT_EQ(other.get().rounds.size(), 5);
  const absl::StatusOr<State> last = its[0].Save();
  ASSERT_TRUE(last.ok()) << last.status();
  ASSERT_TRUE(its[0].Commit(*last).ok());
  its.clear();
  DistributeOptions options = Consumer(cluster, 1, 2, ShardingPolicy::kDynamic);
  options.ack_mode = AckMode::kOnCommit;
  absl::StatusOr<Iterator> back = Numbers(9).Distribute(options).MakeIterator();
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_TRUE(back->Restore(*state).ok());
  const Read after = ReadRounds(*back);
  EXPECT_TRUE(after.error.ok()) << after.error;
  ASSERT_EQ(after.rounds.size(), 1);
  EXPECT_TRUE(after.rounds[0].token.pad);
}

TEST(Rounds, AWorkerThatGoesTakesNothingWithIt) {
  Cluster cluster(2);
  auto its = Consumers(cluster, 2, Numbers(2000), ShardingPolicy::kDynamic);
  const std::vector<Read> reads = ReadTogether(its, INT64_MAX, [&](int64_t step) {
    if (step == 100) cluster.RemoveWorker(0);
  });
  ExpectAligned(reads, 0, /*remainder_rounds=*/1);
  EXPECT_EQ(Values(reads), UpTo(2000));
}

TEST(Rounds, AWorkerThatJoinsIsReadToo) {
  Cluster cluster(1);
  auto its = Consumers(cluster, 2, Numbers(2000), ShardingPolicy::kOff);
  const std::vector<Read> reads = ReadTogether(its, INT64_MAX, [&](int64_t step) {
    if (step == 20) cluster.AddWorker();
  });
  ExpectAligned(reads);
  std::set<PartitionId> partitions;
  for (const Seen& seen : reads[0].rounds) partitions.insert(seen.token.partition);
  EXPECT_EQ(partitions.size(), 2);
  EXPECT_EQ(Values(reads).size(), 4000);
}

TEST(Rounds, GoOnAfterADispatcherRestart) {
  DispatcherConfig config;
  config.work_dir = ::testing::TempDir() + "/rounds_restart";
  std::filesystem::remove_all(config.work_dir);
  config.fault_tolerant_mode = true;
  Cluster cluster(2, config);
  auto its = Consumers(cluster, 2, Numbers(2000), ShardingPolicy::kDynamic);
  const std::vector<Read> reads = ReadTogether(its, INT64_MAX, [&](int64_t step) {
    if (step == 100 || step == 300) cluster.RestartDispatcher();
  });
  ExpectAligned(reads, 0, /*remainder_rounds=*/1);
  EXPECT_EQ(Values(reads), UpTo(2000));
}

TEST(Rounds, ALateConsumerIsRefusedInWords) {
  Cluster cluster(1);
  auto its = Consumers(cluster, 2, Numbers(1000), ShardingPolicy::kDynamic);
  ReadTogether(its, 10);
  auto again =
      Numbers(1000).Distribute(Consumer(cluster, 1, 2, ShardingPolicy::kDynamic)).MakeIterator();
  ASSERT_TRUE(again.ok());
  auto element = again->Next();
  EXPECT_EQ(element.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(element.status().message()), HasSubstr("consumer_index"));
  ASSERT_TRUE(its[1].Stop().ok());
  auto later =
      Numbers(1000).Distribute(Consumer(cluster, 1, 2, ShardingPolicy::kDynamic)).MakeIterator();
  ASSERT_TRUE(later.ok());
  element = later->Next();
  EXPECT_EQ(element.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(element.status().message()), HasSubstr("without a state"));
}

TEST(Rounds, SaysWhichConsumerIsMissing) {
  Cluster cluster(1);
  DistributeOptions options = Consumer(cluster, 0, 2, ShardingPolicy::kDynamic);
  options.timeout = absl::Seconds(1);
  auto it = Numbers(100).Distribute(options).MakeIterator();
  ASSERT_TRUE(it.ok());
  auto element = it->Next();
  EXPECT_EQ(element.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(element.status().message()), HasSubstr("consumer 1 has not joined"));
}

// Counts the calls of Next() that waited for a worker's element, in all sessions of this process.
double CountWaits() {
  double waits = 0;
  const std::string page = ProcessMetrics().Render();
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    if (!absl::StartsWith(line, "penstock_client_waits_total{")) continue;
    double of_worker = 0;
    EXPECT_TRUE(absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &of_worker)) << line;
    waits += of_worker;
  }
  return waits;
}

TEST(Rounds, WaitsOfStepsAreCounted) {
  Cluster cluster(1);
  const double before = CountWaits();
  auto its = Consumers(cluster, 2, Numbers(100), ShardingPolicy::kDynamic);
  ReadTogether(its);
  EXPECT_GE(CountWaits() - before, 2);  // each waits at least for its first element
}

TEST(Rounds, AnErrorConcernsTheWholeRound) {
  Cluster cluster(2);
  const Dataset dataset =
      Dataset::Range(200).Map([](auto x) { return Where(x == 77, x / (x - 77), x); });
  auto its = Consumers(cluster, 2, dataset, ShardingPolicy::kDynamic);
  std::vector<std::vector<std::string>> errors(2);
  std::vector<std::future<int64_t>> reading;
  for (size_t i = 0; i < 2; ++i) {
    reading.push_back(std::async(std::launch::async, [&, i] {
      int64_t elements = 0;
      while (true) {
        auto element = its[i].Next();
        if (element.ok() && !element->has_value()) return elements;
        if (element.ok()) {
          ++elements;
        } else {
          errors[i].push_back(std::string(element.status().message()));
          if (errors[i].size() > 3) return elements;
        }
      }
    }));
  }
  for (auto& read : reading) EXPECT_EQ(read.get(), 99);
  ASSERT_EQ(errors[0].size(), 1);
  EXPECT_EQ(errors[0], errors[1]);
  EXPECT_THAT(errors[0][0], HasSubstr("of consumer "));
}

TEST(Rounds, AllConsumersGoBackToStatesOfOneStep) {
  Cluster cluster(2);
  const auto committed = [](DistributeOptions& options) { options.ack_mode = AckMode::kOnCommit; };
  std::vector<Read> before;
  std::vector<State> states;
  {
    auto its = Consumers(cluster, 2, Numbers(1000), ShardingPolicy::kDynamic, committed);
    before = ReadTogether(its, 50);
    for (Iterator& it : its) states.push_back(*it.Save());
    for (size_t i = 0; i < its.size(); ++i) ASSERT_TRUE(its[i].Commit(states[i]).ok());
    ReadTogether(its, 30);  // and they are lost with the processes
  }
  auto its = Consumers(cluster, 2, Numbers(1000), ShardingPolicy::kDynamic, committed);
  for (size_t i = 0; i < its.size(); ++i) ASSERT_TRUE(its[i].Restore(states[i]).ok());
  const std::vector<Read> after = ReadTogether(its);
  ExpectAligned(after, 50, /*remainder_rounds=*/1);
  std::vector<int64_t> all = Values(before);
  for (int64_t value : Values(after)) all.push_back(value);
  EXPECT_EQ(Sorted(all), UpTo(1000));
}

// All that was delivered is committed; then one consumer dies with a round that is in no state.
TEST(Rounds, OneConsumerComesBackAloneWhereTheOthersWait) {
  constexpr int64_t kEach = 40;
  Cluster cluster(2);
  const auto committed = [](DistributeOptions& options) { options.ack_mode = AckMode::kOnCommit; };
  auto its = Consumers(cluster, 3, Numbers(1000), ShardingPolicy::kDynamic, committed);
  std::vector<int64_t> all;
  for (int64_t life = 0; life < 4; ++life) {
    const std::vector<Read> reads = ReadTogether(its, kEach);
    ExpectAligned(reads, life * (kEach + 1));
    for (int64_t value : Values(reads)) all.push_back(value);
    std::vector<State> states;
    for (Iterator& it : its) states.push_back(*it.Save());
    for (size_t i = 0; i < its.size(); ++i) ASSERT_TRUE(its[i].Commit(states[i]).ok());
    const auto dies = static_cast<size_t>(life % 3);
    ASSERT_TRUE(its[dies].Next().ok());
    DistributeOptions options =
        Consumer(cluster, static_cast<int64_t>(dies), 3, ShardingPolicy::kDynamic);
    committed(options);
    its[dies] = *Numbers(1000).Distribute(options).MakeIterator();
    ASSERT_TRUE(its[dies].Restore(states[dies]).ok());
    EXPECT_EQ(its[dies].CheckStep(3).code(), absl::StatusCode::kOutOfRange);
    // The next round is there for it while the others wait, and after that for them.
    std::vector<Read> round(its.size());
    round[dies] = ReadRounds(its[dies], 1);
    for (size_t i = 0; i < its.size(); ++i) {
      if (i != dies) round[i] = ReadRounds(its[i], 1);
    }
    ExpectAligned(round, life * (kEach + 1) + kEach);
    for (int64_t value : Values(round)) all.push_back(value);
  }
  const std::vector<Read> rest = ReadTogether(its);
  for (const Read& read : rest) EXPECT_TRUE(read.error.ok()) << read.error;
  ExpectAligned(rest, 4 * (kEach + 1), /*remainder_rounds=*/2);
  for (int64_t value : Values(rest)) all.push_back(value);
  EXPECT_EQ(Sorted(all), UpTo(1000));
}

TEST(Rounds, AConsumerThatComesBackAtAnEarlierRoundIsRefused) {
  Cluster cluster(1);
  const auto committed = [](DistributeOptions& options) {
    options.ack_mode = AckMode::kOnCommit;
    options.timeout = absl::Seconds(1);
  };
  auto its = Consumers(cluster, 2, Numbers(1000), ShardingPolicy::kDynamic, committed);
  ReadTogether(its, 10);
  const State state = *its[1].Save();
  ReadTogether(its, 5);
  DistributeOptions options = Consumer(cluster, 1, 2, ShardingPolicy::kDynamic);
  committed(options);
  its[1] = *Numbers(1000).Distribute(options).MakeIterator();
  ASSERT_TRUE(its[1].Restore(state).ok());
  EXPECT_THAT(std::string(its[1].Next().status().message()),
              AllOf(HasSubstr("consumer 0 is at step 15"), HasSubstr("came back at step 10")));
}

TEST(Rounds, StatesOfDifferentStepsAreNoPlaceToGoOnFrom) {
  Cluster cluster(1);
  const auto committed = [](DistributeOptions& options) {
    options.ack_mode = AckMode::kOnCommit;
    options.timeout = absl::Seconds(1);
  };
  std::vector<State> states;
  {
    auto its = Consumers(cluster, 2, Numbers(1000), ShardingPolicy::kDynamic, committed);
    ReadTogether(its, 10);
    states.push_back(*its[0].Save());
    ReadTogether(its, 5);
    states.push_back(*its[1].Save());
  }
  auto its = Consumers(cluster, 2, Numbers(1000), ShardingPolicy::kDynamic, committed);
  for (size_t i = 0; i < its.size(); ++i) ASSERT_TRUE(its[i].Restore(states[i]).ok());
  for (const Read& read : ReadTogether(its)) {
    EXPECT_THAT(read.error.message(), HasSubstr("states of one step"));
  }
}

// Once during the reading, and once when all have read to the end.
TEST(Rounds, TheStateOfAnotherConsumerIsRefused) {
  Cluster cluster(1);
  auto its = Consumers(cluster, 2, Numbers(100), ShardingPolicy::kDynamic,
                       [](DistributeOptions& options) { options.ack_mode = AckMode::kOnCommit; });
  for (int64_t most : {int64_t{10}, INT64_MAX}) {
    ReadTogether(its, most);
    const State of_first = *its[0].Save();
    DistributeOptions options = Consumer(cluster, 1, 2, ShardingPolicy::kDynamic);
    options.ack_mode = AckMode::kOnCommit;
    Iterator wrong = *Numbers(100).Distribute(options).MakeIterator();
    ASSERT_TRUE(wrong.Restore(of_first).ok());
    const absl::Status status = wrong.Next().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("the state belongs to consumer 0 of job rounds"),
                      HasSubstr("consumer_index is 1"), HasSubstr("give it to that consumer")));
  }
}

// Returns the cost of each consumer's steps, by `cost` of its batch.
std::vector<std::vector<double>> CostsOfSteps(std::vector<Iterator>& consumers, int64_t steps,
                                              double (*cost)(const Element&)) {
  std::vector<std::future<std::vector<double>>> reading;
  for (Iterator& it : consumers) {
    reading.push_back(std::async(std::launch::async, [&it, steps, cost] {
      std::vector<double> costs;
      for (int64_t step = 0; step < steps; ++step) {
        EXPECT_TRUE(it.CheckStep(step).ok());
        auto element = it.Next();
        EXPECT_TRUE(element.ok() && element->has_value()) << element.status();
        if (!element.ok() || !element->has_value()) break;
        costs.push_back(cost(**element));
      }
      return costs;
    }));
  }
  std::vector<std::vector<double>> costs;
  for (auto& read : reading) costs.push_back(read.get());
  return costs;
}

// (most - least) / most of each step's costs: the maximum over all steps, and the mean.
struct Spread {
  double largest = 0;
  double mean = 0;
};
Spread SpreadOf(const std::vector<std::vector<double>>& costs) {
  Spread spread;
  for (size_t step = 0; step < costs[0].size(); ++step) {
    double least = costs[0][step], most = costs[0][step];
    for (const std::vector<double>& of : costs) {
      least = std::min(least, of.at(step));
      most = std::max(most, of.at(step));
    }
    spread.largest = std::max(spread.largest, (most - least) / most);
    spread.mean += (most - least) / most / static_cast<double>(costs[0].size());
  }
  return spread;
}

Dataset Lengths(double mean, double deviation, int64_t least, int64_t most) {
  return Dataset::Range(1 << 14).Map([=](auto) {
    const Expr length = Exp(RandomNormal({}, mean, deviation));
    return Cast(Minimum(Maximum(length, static_cast<float>(least)), static_cast<float>(most)),
                kInt64);
  });
}

TEST(Rounds, BatchesOfOneRoundAreOfOneBucket) {
  constexpr int64_t kConsumers = 4;
  Cluster cluster(2);
  const Dataset dataset = Numbers(512)
                              .GroupByWindow([](auto x) { return x % 5; }, 8)
                              .Batch()
                              .Repeat()
                              .Rounds(kConsumers, {.bucket = [](auto x) { return x[0] % 5; }});
  auto its = Consumers(cluster, kConsumers, dataset, ShardingPolicy::kDynamic);
  const auto buckets = CostsOfSteps(its, 100, [](const Element& batch) {
    return static_cast<double>(batch.tensor(0).data<int64_t>()[0] % 5);
  });
  for (const auto& of : buckets) EXPECT_EQ(of, buckets[0]);
}

// L2: 8 sequences of lognormal(5, 1) tokens. Cost a·longest + b·longest², as if padded.
double CostOfLengths(const Element& batch) {
  const auto lengths = batch.tensor(0).data<int64_t>();
  const auto longest = static_cast<double>(*std::max_element(lengths.begin(), lengths.end()));
  return longest + longest * longest / 512;
}
Expr CostOf(const Expr& lengths) {
  const Expr longest = Cast(ReduceMax(lengths), kFloat64);
  return longest + longest * longest / 512.0;
}

TEST(Rounds, OfLognormalLengthsCostAllConsumersTheSame) {
  constexpr int64_t kConsumers = 4;
  Cluster cluster(2);
  // With 15 buckets for each doubling, and a factor of 190 between the smallest and the largest
  // cost, there are 114.
  const Dataset batches = Lengths(5, 1, 16, 1024).Batch(8, {.drop_remainder = true}).Repeat();
  auto its = Consumers(cluster, kConsumers, batches.Rounds(kConsumers, {.cost = CostOf}),
                       ShardingPolicy::kDynamic);
  const Spread spread = SpreadOf(CostsOfSteps(its, 300, CostOfLengths));
  EXPECT_LT(spread.largest, 0.05);
  // Without Rounds the costs must differ, or the test would show nothing.
  its = Consumers(cluster, kConsumers, batches, ShardingPolicy::kOff,
                  [](DistributeOptions& options) { options.job_name = "as they come"; });
  EXPECT_GT(SpreadOf(CostsOfSteps(its, 300, CostOfLengths)).mean, 0.3);
}

// M1: sequences with 0 to 8 images, cost tokens + 576 for each image. A batch has as many of one
// bucket of costs as a budget of 16,384 tokens allows.
double CostOfImages(const Element& batch) {
  double cost = 0;
  for (const int64_t tokens : batch["tokens"].data<int64_t>()) cost += static_cast<double>(tokens);
  for (const int64_t images : batch["images"].data<int64_t>()) {
    cost += 576 * static_cast<double>(images);
  }
  return cost;
}

TEST(Rounds, OfTextAndImagesCostAllConsumersTheSame) {
  constexpr int64_t kConsumers = 4;
  constexpr int64_t kBudget = 16384;
  Cluster cluster(2);
  const Dataset samples = Lengths(5, 1, 16, 1024).Map([](auto tokens) {
    return Struct(
        {{"tokens", tokens}, {"images", RandomUniform({}, Expr(int64_t{0}), Expr(int64_t{9}))}});
  });
  std::vector<int64_t> boundaries, sizes;
  for (int64_t cost = 64; cost < 6000; cost += cost / 4) {
    boundaries.push_back(cost);
    sizes.push_back(kBudget / cost);
  }
  sizes.push_back(2);
  const Dataset batches =
      samples
          .BucketBySequenceLength([](auto s) { return s["tokens"] + s["images"] * 576; },
                                  boundaries, sizes)
          .Repeat();
  const auto cost = [](const Expr& batch) {
    return ReduceSum(batch["tokens"]) + ReduceSum(batch["images"]) * 576;
  };
  auto its = Consumers(cluster, kConsumers, batches.Rounds(kConsumers, {.cost = cost}),
                       ShardingPolicy::kDynamic);
  const Spread spread = SpreadOf(CostsOfSteps(its, 200, CostOfImages));
  EXPECT_LT(spread.largest, 0.05);
}

// tf.data's recipe, X9: as many batches of one length in a row as there are consumers.
TEST(Rounds, BatchesByTfDatasRecipeAreOfOneBucket) {
  constexpr int64_t kConsumers = 2;
  Cluster cluster(2);
  const Dataset dataset = Dataset::Range(512)
                              .Map([](auto x) { return x % 4; })
                              .GroupByWindow([](auto x) { return x; }, 8 * kConsumers)
                              .Batch()
                              .Unbatch()
                              .Batch(8)
                              .Repeat();
  auto its = Consumers(cluster, kConsumers, dataset, ShardingPolicy::kOff);
  const auto keys = CostsOfSteps(its, 100, [](const Element& batch) {
    return static_cast<double>(batch.tensor(0).data<int64_t>()[0]);
  });
  EXPECT_EQ(keys[0], keys[1]);
}

}  // namespace
}  // namespace penstock
