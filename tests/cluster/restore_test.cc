// SPDX-License-Identifier: Apache-2.0
// States of all ranks, restored on another service by another number of ranks and workers. Every
// element is in exactly one committed history.
#include <fstream>
#include <optional>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "penstock/states_of_ranks.h"
#include "penstock/step_token.h"
#include "tests/cluster/cluster.h"
#include "tests/cluster/temporary_folder.h"

namespace penstock {
namespace {

constexpr int64_t kRestoredCount = 6000;

// How often each value was committed.
using Histories = std::map<int64_t, int>;

// One rank: an iterator, and the elements delivered since its last state.
struct Rank {
  explicit Rank(const Dataset& dataset) : it(dataset.MakeIterator().value()) {}

  // Reads up to `count` elements; returns false at the end.
  bool Read(int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      absl::StatusOr<std::optional<Element>> element = it.Next();
      EXPECT_TRUE(element.ok()) << element.status();
      if (!element.ok() || !element->has_value()) return false;
      delivered.push_back((*element)->tensor(0).scalar<int64_t>());
    }
    return true;
  }

  Iterator it;
  std::vector<int64_t> delivered;
};

void Add(const std::vector<int64_t>& values, Histories& histories) {
  for (int64_t value : values) ++histories[value];
}

std::string Differences(const std::vector<int64_t>& wanted, const Histories& histories) {
  Histories left = histories;
  for (int64_t value : wanted) --left[value];
  std::string text;
  for (const auto& [value, count] : left) {
    if (count != 0) absl::StrAppend(&text, count < 0 ? "lost " : "doubled ", value, "; ");
  }
  return text;
}

// The nodes before Distribute. Their elements are determined by their number.
struct RestoredPipeline {
  const char* name;
  Dataset (*make)();
  ShardingPolicy mode = ShardingPolicy::kDynamic;
};
void PrintTo(const RestoredPipeline& pipeline, std::ostream* out) {
  *out << pipeline.name;
}

Dataset RestoredFiltered() {
  return Dataset::Range(kRestoredCount).Filter([](auto x) { return x % 3 != 0; });
}
Dataset RestoredShuffled() {
  return Dataset::Range(kRestoredCount).Shuffle(64, {.seed = 5}).Map([](auto x) { return x + 0; });
}
Dataset RestoredMixed() {
  return Dataset::SampleFromDatasets(
      {Dataset::Range(0, 2000), Dataset::Range(2000, 4000), Dataset::Range(4000, kRestoredCount)},
      {.weights = {0.5, 0.3, 0.2}, .seed = 3, .stop_on_empty_dataset = false});
}

Dataset RestoredNumbers() {
  return Dataset::Range(kRestoredCount).Map([](auto x) { return x + 0; });
}
Dataset Hinted() {
  return Dataset::Range(kRestoredCount).Shard(kShardHint, 0).Map([](auto x) { return x + 0; });
}
// Files of 500 numbers each.
Dataset RestoredFiles() {
  static const TemporaryFolder folder;
  for (int64_t f = 0; f < kRestoredCount / 500; ++f) {
    std::ofstream file(absl::StrCat(folder.path(), "/", f, ".txt"));
    for (int64_t i = f * 500; i < (f + 1) * 500; ++i) file << i << "\n";
  }
  return Dataset::ListFiles(folder.path() + "/*.txt", {.shuffle = true, .seed = 3})
      .Interleave([](Expr name) { return Dataset::TextLine(name); }, {.cycle_length = 2})
      .Map([](Expr line) { return StringToNumber(line, kInt64); });
}

class RestoreOnOthers : public testing::TestWithParam<RestoredPipeline> {
 protected:
  Dataset Job(const Cluster& cluster) const {
    DistributeOptions options = cluster.Options(GetParam().mode, "job");
    options.max_outstanding_requests = 32;
    options.ack_mode = AckMode::kOnCommit;
    return GetParam().make().Distribute(options);
  }

  // Runs `ranks` trainers on `workers` workers. They restore `states`, read up to a random step
  // each, save, and end with the whole cluster.
  std::vector<State> Live(int workers, int ranks, std::vector<State> states, bool to_end) {
    const std::string run_id = absl::StrCat("launch ", ++launches_);
    Cluster cluster(workers);
    std::vector<std::unique_ptr<Rank>> all;
    for (int r = 0; r < ranks; ++r) {
      all.push_back(std::make_unique<Rank>(Job(cluster)));
      if (states.empty()) continue;
      std::shuffle(states.begin(), states.end(), random_);  // in any order
      absl::Status restored = all.back()->it.Restore(MergeRankStates(states, {.run_id = run_id}));
      EXPECT_TRUE(restored.ok()) << restored;
    }
    std::vector<std::thread> threads;
    for (auto& rank : all) {
      const int64_t count = to_end ? kRestoredCount : 1 + static_cast<int64_t>(random_() % 400);
      threads.emplace_back([&rank = *rank, count] { rank.Read(count); });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<State> saved;
    for (auto& rank : all) {
      Add(rank->delivered, histories_);
      if (to_end) continue;
      absl::StatusOr<State> state = rank->it.Save();
      EXPECT_TRUE(state.ok()) << state.status();
      if (state.ok()) saved.push_back(*std::move(state));
      rank->Read(random_() % 50);  // struck out: after the state
    }
    return saved;
  }

  std::mt19937 random_{20261122};
  int launches_ = 0;
  Histories histories_;
};

TEST_P(RestoreOnOthers, EachElementIsInOneHistory) {
  const bool by_hint = GetParam().mode == ShardingPolicy::kHint;  // not readable without a service
  const std::vector<int64_t> wanted = ReadAll(by_hint ? RestoredNumbers() : GetParam().make());
  std::vector<State> states = Live(2, 4, {}, false);
  ASSERT_EQ(states.size(), 4u);
  states = Live(5, 2, std::move(states), false);
  ASSERT_EQ(states.size(), 2u);
  Live(2, 3, std::move(states), true);
  EXPECT_EQ(Differences(wanted, histories_), "");
}

INSTANTIATE_TEST_SUITE_P(
    Pipelines, RestoreOnOthers,
    testing::Values(RestoredPipeline{"Filter", RestoredFiltered},
                    RestoredPipeline{"Shuffle", RestoredShuffled},
                    RestoredPipeline{"ThreeWayMix", RestoredMixed},
                    RestoredPipeline{"Data", RestoredNumbers, ShardingPolicy::kData},
                    RestoredPipeline{"Hint", Hinted, ShardingPolicy::kHint},
                    RestoredPipeline{"File", RestoredFiles, ShardingPolicy::kFile}),
    [](const auto& info) { return std::string(info.param.name); });

// --- Coordinated reads -----------------------------------------------------------

class RestoreRounds : public RestoreOnOthers {
 protected:
  // Same as Live(), but in rounds: all ranks read the same number.
  std::vector<State> LiveInRounds(int workers, int ranks, const std::vector<State>& states,
                                  bool to_end) {
    const std::string run_id = absl::StrCat("launch ", ++launches_);
    const int64_t rounds = to_end ? kRestoredCount : 1 + static_cast<int64_t>(random_() % 300);
    Cluster cluster(workers);
    std::vector<std::thread> threads;
    std::vector<std::optional<State>> saved(static_cast<size_t>(ranks));
    std::vector<std::vector<int64_t>> delivered(static_cast<size_t>(ranks));
    for (int r = 0; r < ranks; ++r) {
      threads.emplace_back([&, r] {
        DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic, "rounds");
        options.ack_mode = AckMode::kOnCommit;
        options.delivery = CoordinatedRounds{.consumer_index = r, .num_consumers = ranks};
        absl::StatusOr<Iterator> it = GetParam().make().Distribute(options).MakeIterator();
        ASSERT_TRUE(it.ok()) << it.status();
        if (!states.empty()) {
          const absl::Status restored = it->Restore(MergeRankStates(states, {.run_id = run_id}));
          ASSERT_TRUE(restored.ok()) << restored;
        }
        for (int64_t i = 0; i < rounds; ++i) {
          absl::StatusOr<std::optional<Element>> element = it->Next();
          ASSERT_TRUE(element.ok()) << element.status();
          if (!element->has_value()) return;
          if (StepTokenOf(**element).pad) continue;
          delivered[static_cast<size_t>(r)].push_back((*element)->tensor(0).scalar<int64_t>());
        }
        absl::StatusOr<State> state = it->Save();
        ASSERT_TRUE(state.ok()) << state.status();
        saved[static_cast<size_t>(r)] = *std::move(state);
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<State> all;
    for (const std::vector<int64_t>& values : delivered) Add(values, histories_);
    for (std::optional<State>& state : saved) {
      if (state.has_value()) all.push_back(*std::move(state));
    }
    return all;
  }
};

TEST_P(RestoreRounds, EachElementIsInOneHistory) {
  const std::vector<int64_t> wanted = ReadAll(GetParam().make());
  std::vector<State> states = LiveInRounds(2, 4, {}, false);
  ASSERT_EQ(states.size(), 4u);
  states = LiveInRounds(5, 2, states, false);
  ASSERT_EQ(states.size(), 2u);
  LiveInRounds(2, 3, states, true);
  EXPECT_EQ(Differences(wanted, histories_), "");
}

INSTANTIATE_TEST_SUITE_P(Pipelines, RestoreRounds,
                         testing::Values(RestoredPipeline{"Filter", RestoredFiltered},
                                         RestoredPipeline{"Shuffle", RestoredShuffled},
                                         RestoredPipeline{"ThreeWayMix", RestoredMixed}),
                         [](const auto& info) { return std::string(info.param.name); });

// --- Edits ----------------------------------------------------------------------

Dataset Adding(const Cluster& cluster, int64_t what) {
  DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic, "edited");
  options.ack_mode = AckMode::kOnCommit;
  options.max_outstanding_requests = 16;
  return Dataset::Range(kRestoredCount)
      .Map([what](auto x) { return x + what; })
      .Distribute(options);
}

TEST(RestoreEdited, NamesTheNodesThatDifferAndGoesOnIfTheyMay) {
  std::vector<State> states;
  Histories histories;
  {
    Cluster cluster(1);
    Rank rank(Adding(cluster, 0));
    rank.Read(200);
    absl::StatusOr<State> state = rank.it.Save();
    ASSERT_TRUE(state.ok()) << state.status();
    states.push_back(*state);
    Add(rank.delivered, histories);
  }
  Cluster cluster(1);
  Rank rank(Adding(cluster, 10'000));
  const absl::Status refused = rank.it.Restore(MergeRankStates(states));
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("nodes that differ are Map#1;"));
  const absl::Status restored = rank.it.Restore(MergeRankStates(states, {.allow = {"Map#1"}}));
  ASSERT_TRUE(restored.ok()) << restored;
  rank.Read(kRestoredCount);
  for (int64_t& value : rank.delivered) value -= 10'000;
  Add(rank.delivered, histories);
  EXPECT_EQ(Differences(ReadAll(Dataset::Range(kRestoredCount)), histories), "");
}

TEST(RestoreEdited, StepsMayBePassedOver) {
  Cluster cluster(1);
  Rank before(Adding(cluster, 0));
  before.Read(100);
  absl::StatusOr<State> state = before.it.Save();
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_TRUE(before.it.Commit(*state).ok());
  ASSERT_TRUE(before.it.Stop().ok());
  Rank after(Adding(cluster, 0));
  const absl::Status restored =
      after.it.Restore(MergeRankStates({*state}, {.run_id = "again", .skip_steps = 30}));
  ASSERT_TRUE(restored.ok()) << restored;
  EXPECT_EQ(after.it.CheckStep(0).code(), absl::StatusCode::kOutOfRange);
  after.Read(kRestoredCount);
  EXPECT_EQ(after.delivered.size(), kRestoredCount - 100 - 30);
}

TEST(RestoreAtTheEnd, NothingComesAgain) {
  std::vector<State> states;
  {
    Cluster cluster(1);
    Rank rank(Adding(cluster, 0));
    EXPECT_FALSE(rank.Read(kRestoredCount + 1));
    EXPECT_EQ(rank.delivered.size(), kRestoredCount);
    absl::StatusOr<State> last = rank.it.Save();
    ASSERT_TRUE(last.ok()) << last.status();
    ASSERT_TRUE(rank.it.Commit(*last).ok());
    last = rank.it.Save();  // the dispatcher no longer has what it would replay from
    ASSERT_TRUE(last.ok()) << last.status();
    states.push_back(*last);
  }
  Cluster cluster(1);
  Rank rank(Adding(cluster, 0));
  const absl::Status restored = rank.it.Restore(MergeRankStates(states));
  ASSERT_TRUE(restored.ok()) << restored;
  EXPECT_FALSE(rank.Read(1));
  EXPECT_TRUE(rank.delivered.empty());
}

// --- Refusals ------------------------------------------------------------------

Dataset Plain(const Cluster& cluster, std::string name = "job") {
  DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic, std::move(name));
  options.ack_mode = AckMode::kOnCommit;
  options.max_outstanding_requests = 16;
  return Dataset::Range(kRestoredCount).Distribute(options);
}

class RestoreRefuses : public testing::Test {
 protected:
  absl::Status Restored(std::vector<State> states) {
    absl::StatusOr<Iterator> it = Plain(cluster_).MakeIterator();
    EXPECT_TRUE(it.ok()) << it.status();
    return it->Restore(MergeRankStates(states, {.run_id = "again"}));
  }
  State Saved(Rank& rank) {
    absl::StatusOr<State> state = rank.it.Save();
    EXPECT_TRUE(state.ok()) << state.status();
    return state.value_or(State());
  }

  Cluster cluster_{1};
  Rank one_{Plain(cluster_)};
  Rank other_{Plain(cluster_)};
};

TEST_F(RestoreRefuses, AStateThatIsMissing) {
  one_.Read(20);
  other_.Read(20);
  const absl::Status status = Restored({Saved(one_)});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("is missing"));
}

TEST_F(RestoreRefuses, TwoStatesOfOneRank) {
  one_.Read(20);
  const State first = Saved(one_);
  one_.Read(20);
  const absl::Status status = Restored({first, Saved(one_)});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("two states belong to client"));
}

TEST_F(RestoreRefuses, AStateOlderThanItsRanksCommit) {
  one_.Read(20);
  const State first = Saved(one_);
  one_.Read(20);
  ASSERT_TRUE(one_.it.Commit(Saved(one_)).ok());
  other_.Read(20);
  const absl::Status status = Restored({first, Saved(other_)});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("older than what it had committed"));
}

TEST_F(RestoreRefuses, AJobThatIsThereForOthers) {
  one_.Read(20);
  other_.Read(20);
  const std::vector<State> states = {Saved(one_), Saved(other_)};
  absl::StatusOr<Iterator> it = Plain(cluster_).MakeIterator();
  ASSERT_TRUE(it.ok() && it->Restore(MergeRankStates(states)).ok());
  const absl::Status status = it->Next().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("did not begin with these states"));
}

}  // namespace
}  // namespace penstock
