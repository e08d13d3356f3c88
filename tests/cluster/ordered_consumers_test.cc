// SPDX-License-Identifier: Apache-2.0
// order = kDeterministic with several consumers. Their elements by step and consumer are in the
// order that one reader gets, on any workers, for any number of consumers that go on from the
// states, and whatever process is killed in between.
#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/states_of_ranks.h"
#include "penstock/step_token.h"
#include "tests/cluster/ordered_pipelines.h"
#include "tests/cluster/worker_elsewhere.h"

namespace penstock {
namespace {

// One consumer of as many as there are ranks; -1 is a single reader.
DistributeOptions OrderedOf(const Cluster& cluster, int64_t consumer = 0, int64_t consumers = 0) {
  DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic, "ordered");
  options.delivery = DeterministicOrder{.consumer_index = consumer, .num_consumers = consumers};
  options.ack_mode = AckMode::kOnCommit;
  options.seed = 11;
  options.timeout = absl::Seconds(60);
  return options;
}

struct DeliveredElement {
  int64_t step;
  int64_t consumer;
  int64_t value;
  auto operator<=>(const DeliveredElement&) const = default;
};

std::vector<int64_t> InOrder(std::vector<DeliveredElement> delivered) {
  std::sort(delivered.begin(), delivered.end());
  std::vector<int64_t> values;
  for (const DeliveredElement& its : delivered) values.push_back(its.value);
  return values;
}

// Takes one element; returns false at the end.
bool TakeOne(Iterator& it, std::vector<DeliveredElement>& delivered) {
  absl::StatusOr<std::optional<Element>> element = it.Next();
  EXPECT_TRUE(element.ok()) << element.status();
  if (!element.ok() || !element->has_value()) return false;
  const StepToken token = StepTokenOf(**element);
  delivered.push_back({token.round, token.consumer, (*element)->tensor(0).scalar<int64_t>()});
  return true;
}

Dataset AllOfThem() {
  std::vector<Dataset> parts;
  for (int64_t i = 0; i < 3; ++i) {
    parts.push_back(Dataset::Range(1000 * i, 1000 * i + 1500)
                        .Filter([](auto x) { return x % 3 != 0; })
                        .Shuffle(64, {.seed = static_cast<uint64_t>(5 + i)}));
  }
  return Dataset::SampleFromDatasets(
      parts, {.weights = {0.5, 0.3, 0.2}, .seed = 3, .stop_on_empty_dataset = false});
}

class OrderedConsumers : public testing::TestWithParam<Pipeline> {
 protected:
  static std::vector<int64_t> OfOneReader() {
    Cluster cluster(2);
    return ReadAll(GetParam().make().Distribute(OrderedOf(cluster)));
  }
};

// Workers are processes, killed with kill −9 at the end of a launch.
struct Launch {
  explicit Launch(int count) {
    for (int i = 0; i < count; ++i) workers.push_back(std::make_unique<WorkerElsewhere>(cluster));
  }
  static DispatcherConfig Config() {
    DispatcherConfig config;
    config.client_timeout = absl::Minutes(10);  // nobody is declared dead
    return config;
  }
  Cluster cluster{0, Config()};
  std::vector<std::unique_ptr<WorkerElsewhere>> workers;
};

TEST_P(OrderedConsumers, InAnyNumberContinueTheSameOrder) {
  const std::vector<int64_t> order = OfOneReader();
  std::mt19937 random(6);
  std::vector<int64_t> read;
  std::vector<State> states;
  struct Group {
    int ranks, workers;
    bool ends;
  };
  for (const Group& group : {Group{4, 2, false}, Group{2, 5, false}, Group{3, 2, true}}) {
    const int ranks = group.ranks;
    const bool ends = group.ends;
    Launch launch(group.workers);
    const int64_t steps = ends ? kOrderedCount : 100 + static_cast<int64_t>(random() % 100);
    const std::string run_id = absl::StrCat("launch of ", ranks);
    std::vector<std::vector<DeliveredElement>> delivered(static_cast<size_t>(ranks));
    std::vector<std::optional<State>> saved(static_cast<size_t>(ranks));
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; ++r) {
      threads.emplace_back([&, r] {
        DistributeOptions options = OrderedOf(launch.cluster, r, ranks);
        options.data_transfer_protocol = "shm";
        absl::StatusOr<Iterator> it = GetParam().make().Distribute(options).MakeIterator();
        ASSERT_TRUE(it.ok()) << it.status();
        if (!states.empty()) {
          const absl::Status restored = it->Restore(MergeRankStates(states, {.run_id = run_id}));
          ASSERT_TRUE(restored.ok()) << restored;
        }
        const auto at = static_cast<size_t>(r);
        for (int64_t i = 0; i < steps; ++i) {
          if (!TakeOne(*it, delivered[at])) return;
          if (!ends) {
            ASSERT_EQ(delivered[at].back().step, i);
            ASSERT_EQ(delivered[at].back().consumer, r);
          }
        }
        absl::StatusOr<State> state = it->Save();
        ASSERT_TRUE(state.ok()) << state.status();
        saved[at] = *std::move(state);
        std::vector<DeliveredElement> struck_out;  // after the state
        for (int i = 0; i < 7 * r; ++i) TakeOne(*it, struck_out);
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (HasFatalFailure()) return;
    std::vector<DeliveredElement> all;
    for (const std::vector<DeliveredElement>& of : delivered)
      all.insert(all.end(), of.begin(), of.end());
    for (const int64_t value : InOrder(std::move(all))) read.push_back(value);
    states.clear();
    for (std::optional<State>& state : saved) {
      if (state.has_value()) states.push_back(*std::move(state));
    }
    ASSERT_EQ(states.size(), ends ? 0u : static_cast<size_t>(ranks));
  }
  EXPECT_EQ(read, order);
}

TEST_P(OrderedConsumers, KeepTheOrderWhicheverWorkersAreKilled) {
  const std::vector<int64_t> order = OfOneReader();
  Launch launch(3);
  std::vector<std::vector<DeliveredElement>> delivered(3);
  std::vector<std::thread> threads;
  for (int r = 0; r < 3; ++r) {
    threads.emplace_back([&, r] {
      DistributeOptions options = OrderedOf(launch.cluster, r, 3);
      options.data_transfer_protocol = "shm";
      options.max_outstanding_requests = 16;
      absl::StatusOr<Iterator> it = GetParam().make().Distribute(options).MakeIterator();
      ASSERT_TRUE(it.ok()) << it.status();
      const auto at = static_cast<size_t>(r);
      while (TakeOne(*it, delivered[at])) {
        if (r > 0) continue;
        if (delivered[at].size() == 150) launch.workers[1]->Kill();
        if (delivered[at].size() == 400) launch.workers[0]->Kill();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<DeliveredElement> all;
  for (const std::vector<DeliveredElement>& of : delivered)
    all.insert(all.end(), of.begin(), of.end());
  EXPECT_EQ(InOrder(std::move(all)), order);
}

INSTANTIATE_TEST_SUITE_P(Pipelines, OrderedConsumers,
                         testing::Values(Pipeline{"Filter", Filtered},
                                         Pipeline{"Shuffle", Shuffled},
                                         Pipeline{"ThreeWayMix", Mixed},
                                         Pipeline{"AllOfThem", AllOfThem}),
                         [](const auto& info) { return std::string(info.param.name); });

// --- One consumer ------------------------------------------------------------------

class OneOrderedConsumer : public testing::Test {
 protected:
  Iterator Consumer(int64_t consumer, int64_t of, absl::Duration timeout = absl::Seconds(60)) {
    DistributeOptions options = OrderedOf(cluster_, consumer, of);
    options.timeout = timeout;
    absl::StatusOr<Iterator> it = Shuffled().Distribute(options).MakeIterator();
    EXPECT_TRUE(it.ok()) << it.status();
    return *std::move(it);
  }

  // Expects that consumer 1 does not go on from it.
  void ExpectOfConsumer0(const State& state) {
    Iterator wrong = Consumer(1, 2);
    ASSERT_TRUE(wrong.Restore(state).ok());
    const absl::Status status = wrong.Next().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()),
                testing::HasSubstr("the state belongs to consumer 0 of job ordered"));
  }

  Cluster cluster_{2};
};

TEST_F(OneOrderedConsumer, ThatReturnsWithItsStateGetsTheSameAgain) {
  std::vector<DeliveredElement> others;
  std::thread other([&, it = Consumer(1, 2)]() mutable {
    while (TakeOne(it, others)) {
    }
  });
  std::vector<DeliveredElement> delivered;
  std::vector<DeliveredElement> lost;
  std::optional<State> state;
  {
    Iterator first = Consumer(0, 2);
    for (int i = 0; i < 300; ++i) ASSERT_TRUE(TakeOne(first, delivered));
    absl::StatusOr<State> saved = first.Save();
    ASSERT_TRUE(saved.ok()) << saved.status();
    ASSERT_TRUE(first.Commit(*saved).ok());
    state = *std::move(saved);
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(TakeOne(first, lost));
    Iterator again = Consumer(0, 2);  // another process, before the loss of the first is noticed
    ASSERT_TRUE(again.Restore(*state).ok());
    while (TakeOne(again, delivered)) {
    }
  }
  other.join();
  ASSERT_GE(delivered.size(), 340u);
  EXPECT_EQ(std::vector<DeliveredElement>(delivered.begin() + 300, delivered.begin() + 340), lost);
  delivered.insert(delivered.end(), others.begin(), others.end());
  Cluster elsewhere(1);
  EXPECT_EQ(InOrder(std::move(delivered)), ReadAll(Shuffled().Distribute(OrderedOf(elsewhere))));
}

TEST_F(OneOrderedConsumer, ThatIsMissingIsNamed) {
  Iterator only = Consumer(1, 3, absl::Seconds(1));
  absl::Status status;
  std::vector<DeliveredElement> delivered;
  while (status.ok()) status = only.Next().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("consumer 0 has not joined"));
}

TEST_F(OneOrderedConsumer, HasItsNumberAlone) {
  Iterator first = Consumer(0, 2);
  std::thread reading([&] { (void)first.Next(); });
  Iterator other = Consumer(1, 2);
  std::vector<DeliveredElement> delivered;
  ASSERT_TRUE(TakeOne(other, delivered));
  reading.join();
  Iterator second = Consumer(1, 2);
  const absl::Status status = second.Next().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("consumer"));
}

TEST_F(OneOrderedConsumer, MayBeFurtherThanTheOthersWhenAllAreRestored) {
  std::vector<DeliveredElement> delivered;
  std::vector<DeliveredElement> others;
  std::vector<State> states;
  {
    Iterator first = Consumer(0, 2);
    Iterator other = Consumer(1, 2);
    std::thread reading([&] {
      for (int i = 0; i < 25; ++i) ASSERT_TRUE(TakeOne(other, others));
    });
    for (int i = 0; i < 40; ++i) EXPECT_TRUE(TakeOne(first, delivered));
    reading.join();
    for (Iterator* it : {&first, &other}) {
      absl::StatusOr<State> saved = it->Save();
      ASSERT_TRUE(saved.ok()) << saved.status();
      states.push_back(*std::move(saved));
    }
  }
  delivered.insert(delivered.end(), others.begin(), others.end());
  ASSERT_EQ(delivered.size(), 65u);
  Cluster elsewhere(1);
  std::vector<int64_t> left = ReadAll(Shuffled().Distribute(OrderedOf(elsewhere)));
  for (const DeliveredElement& its : delivered) std::erase(left, its.value);
  ASSERT_EQ(left.size(), static_cast<size_t>(kOrderedCount) - delivered.size());
  Cluster another(2);
  absl::StatusOr<Iterator> one = Shuffled().Distribute(OrderedOf(another)).MakeIterator();
  ASSERT_TRUE(one.ok()) << one.status();
  const absl::Status restored = one->Restore(MergeRankStates(states));
  ASSERT_TRUE(restored.ok()) << restored;
  EXPECT_EQ(ReadAll(*one), left);
}

TEST_F(OneOrderedConsumer, TakesUpNoOtherConsumersState) {
  Iterator first = Consumer(0, 2);
  Iterator other = Consumer(1, 2);
  std::vector<DeliveredElement> delivered;
  std::thread reading([&] { (void)other.Next(); });
  ASSERT_TRUE(TakeOne(first, delivered));
  reading.join();
  absl::StatusOr<State> saved = first.Save();
  ASSERT_TRUE(saved.ok()) << saved.status();
  ExpectOfConsumer0(*saved);
}

TEST_F(OneOrderedConsumer, RefusesAnotherConsumersStateAfterTheEndToo) {
  Iterator first = Consumer(0, 2);
  Iterator other = Consumer(1, 2);
  const auto read = [](Iterator& it) {
    std::vector<DeliveredElement> delivered;
    while (TakeOne(it, delivered)) {
    }
  };
  std::thread reading([&] { read(other); });
  read(first);
  reading.join();
  absl::StatusOr<State> saved = first.Save();
  ASSERT_TRUE(saved.ok()) << saved.status();
  ExpectOfConsumer0(*saved);
  Iterator right = Consumer(0, 2);
  ASSERT_TRUE(right.Restore(*saved).ok());
  absl::StatusOr<std::optional<Element>> end = right.Next();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_FALSE(end->has_value());
}

}  // namespace
}  // namespace penstock
