// SPDX-License-Identifier: Apache-2.0
// The merge of all ranks' states: by hand, and over random histories. Each rule is also broken
// once.
#include "control/protocol/restore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"

namespace penstock::control {
namespace {

using Broken = BrokenMerge;
using ::testing::HasSubstr;

constexpr PartitionId kFirst(1);

SavedRepetition::Reader Reads(uint64_t client, IndexSet committed = {}) {
  SavedRepetition::Reader reader{.client = ClientId(client), .committed_count = committed.size()};
  if (!committed.empty()) reader.committed.push_back({kFirst, std::move(committed)});
  return reader;
}

SavedRepetition Saved(uint64_t version, std::vector<SavedRepetition::Reader> readers) {
  SavedRepetition saved{.version = version, .readers = std::move(readers)};
  saved.partitions.push_back({.given = {{.numbers = {4, 2}}}, .bookmarks = {{0, "start"}}});
  return saved;
}

RankState StateOf(uint64_t client, SavedRepetition saved, IndexSet delivered) {
  return {.client = ClientId(client),
          .job = JobId(1),
          .job_name = "job",
          .repetitions = {{std::move(saved), {{kFirst, std::move(delivered)}}}}};
}

std::string Why(const absl::StatusOr<Restoration>& merged) {
  EXPECT_EQ(merged.status().code(), absl::StatusCode::kInvalidArgument) << merged.status();
  return std::string(merged.status().message());
}

TEST(MergeRankStates, JoinsAllDeliveriesWithTheNewestState) {
  SavedRepetition newer = Saved(9, {Reads(1), Reads(2)});
  newer.partitions[0].given[0].numbers = {4, 2, 7};
  const auto merged =
      MergeRankStates({StateOf(1, Saved(5, {Reads(1), Reads(2)}), IndexSet::Of(0, 3)),
                       StateOf(2, newer, IndexSet::Of(5, 9))},
                      17);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->name, 17);
  ASSERT_EQ(merged->repetitions.size(), 1u);
  const Restoration::Partition& partition = merged->repetitions[0].partitions.at(0);
  EXPECT_EQ(partition.committed.ToString(), "[0,3) [5,9)");
  EXPECT_EQ(partition.given[0].numbers, (std::vector<int64_t>{4, 2, 7}));
  EXPECT_EQ(partition.bookmarks.at(0).bytes, "start");
}

TEST(MergeRankStates, ContainsTheCommitsOfDepartedReaders) {
  SavedRepetition::Reader gone = Reads(7, IndexSet::Of(10, 12));
  gone.gone = true;
  const auto merged =
      MergeRankStates({StateOf(1, Saved(1, {Reads(1), gone}), IndexSet::Of(0, 1))}, 0);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->repetitions[0].partitions[0].committed.ToString(), "[0,1) [10,12)");
}

TEST(MergeRankStates, RefusesAMissingState) {
  const auto merged = MergeRankStates({StateOf(1, Saved(1, {Reads(1), Reads(0xab)}), {})}, 0);
  EXPECT_THAT(Why(merged), HasSubstr("client ab"));
  EXPECT_THAT(Why(merged), HasSubstr("is missing"));
}

TEST(MergeRankStates, RefusesAnElementClaimedTwice) {
  const SavedRepetition saved = Saved(1, {Reads(1), Reads(2)});
  EXPECT_THAT(
      Why(MergeRankStates(
          {StateOf(1, saved, IndexSet::Of(0, 3)), StateOf(2, saved, IndexSet::Of(2, 5))}, 0)),
      HasSubstr("two states contain the same elements of partition 1"));
}

TEST(MergeRankStates, RefusesStatesOfDifferentCommits) {
  const SavedRepetition later = Saved(2, {Reads(1, IndexSet::Of(0, 3)), Reads(2)});
  EXPECT_THAT(Why(MergeRankStates({StateOf(1, Saved(1, {Reads(1), Reads(2)}), IndexSet::Of(0, 2)),
                                   StateOf(2, later, IndexSet::Of(5, 6))},
                                  0)),
              HasSubstr("older than what it had committed"));
}

TEST(MergeRankStates, RefusesTheUncommittedStateOfADeadRank) {
  SavedRepetition::Reader dead = Reads(1, IndexSet::Of(0, 3));
  dead.gone = true;
  EXPECT_THAT(Why(MergeRankStates({StateOf(1, Saved(1, {Reads(1), Reads(2)}), IndexSet::Of(0, 5)),
                                   StateOf(2, Saved(2, {dead, Reads(2)}), {})},
                                  0)),
              HasSubstr("went to other clients"));
}

TEST(MergeRankStates, RefusesOtherJobsAndTwoStatesOfOneRank) {
  const SavedRepetition saved = Saved(1, {Reads(1)});
  EXPECT_THAT(Why(MergeRankStates({StateOf(1, saved, {}), StateOf(1, saved, {})}, 0)),
              HasSubstr("two states belong to client 1"));
  RankState other = StateOf(2, saved, {});
  other.job_mark = 5;
  EXPECT_THAT(Why(MergeRankStates({StateOf(1, saved, {}), other}, 0)),
              HasSubstr("to different jobs"));
}

TEST(MergeRankStates, NeedsSplitsFromWhereAReplayBegins) {
  RankState state = StateOf(1, Saved(1, {Reads(1)}), IndexSet::Of(0, 3));
  state.repetitions[0].saved.partitions[0].given[0].first_ordinal = 2;
  state.repetitions[0].saved.partitions[0].bookmarks = {{8, "later"}};
  EXPECT_EQ(MergeRankStates({state}, 0).status().code(), absl::StatusCode::kDataLoss);
}

// --- Random histories -----------------------------------------------------------

// Clients that take elements of one partition, commit, save and die, and the dispatcher's view of
// them. Then a restore from the last states of the living clients.
class History {
 public:
  explicit History(uint32_t seed) : random_(seed) {}

  // Returns "" if the restored indices are exactly those of the histories, else the fault.
  std::string Run(Broken broken) {
    for (int step = 0; step < 60; ++step) Step();
    std::vector<RankState> states;
    for (auto& [client, rank] : ranks_) {
      if (rank.gone) continue;
      if (rank.states.empty()) rank.states.push_back(Save(client));
      // A trainer restarts from its last state, or by mistake from the one before.
      const size_t back = Chance(8) && rank.states.size() > 1 ? 2 : 1;
      states.push_back(rank.states[rank.states.size() - back]);
    }
    if (states.empty()) return "";  // no client is left to go on
    if (states.size() > 1 && Chance(8)) states.pop_back();
    if (states.size() > 1 && Chance(8)) {  // a state that was overwritten with another's bytes
      states[0].repetitions[0].delivered = states[1].repetitions[0].delivered;
    }
    const absl::StatusOr<Restoration> merged = MergeRankStates(states, 0, broken);
    if (!merged.ok()) return "";
    // The histories are those of the given states, and the committed ones of clients that are gone.
    IndexSet histories;
    std::string wrong;
    auto add = [&](const IndexSet& its) {
      if (histories.Intersects(its)) wrong = "doubled";
      histories.Add(its);
    };
    for (const RankState& state : states) add(state.repetitions[0].delivered[0].indices);
    // A client in the states is one of the given ranks, or its history has ended.
    std::map<uint64_t, const Rank*> known;
    for (const RankState& state : states) {
      for (const SavedRepetition::Reader& reader : state.repetitions[0].saved.readers) {
        if (!Gives(states, reader.client)) {
          known[reader.client.value()] = &ranks_[reader.client.value()];
        }
      }
    }
    for (const auto& [client, rank] : known) {
      if (!rank->gone) wrong = "without a rank";
      add(rank->committed);
    }
    const IndexSet& committed = merged->repetitions[0].partitions[0].committed;
    if (!histories.Contains(committed)) return "lost";
    if (!committed.Contains(histories)) return "doubled";
    return wrong;
  }

 private:
  struct Rank {
    IndexSet delivered;
    IndexSet committed;
    bool gone = false;
    std::vector<RankState> states;
  };

  static bool Gives(const std::vector<RankState>& states, ClientId client) {
    return std::any_of(states.begin(), states.end(),
                       [&](const RankState& state) { return state.client == client; });
  }

  bool Chance(uint32_t of) { return random_() % of == 0; }

  void Step() {
    const uint64_t client = 1 + random_() % 4;
    Rank& rank = ranks_[client];
    if (rank.gone) return;
    ++version_;
    switch (random_() % 6) {
      case 0:
        rank.states.push_back(Save(client));
        break;
      case 1:
        if (!rank.states.empty())
          rank.committed = rank.states.back().repetitions[0].delivered[0].indices;
        break;
      case 2:
        if (!Chance(10)) break;
        rank.gone = true;  // others get what it had not committed
        break;
      default:
        Take(rank);
    }
  }

  // Takes an index that no client has: the lowest one, or the next.
  void Take(Rank& rank) {
    IndexSet has;
    for (const auto& [client, other] : ranks_)
      has.Add(other.gone ? other.committed : other.delivered);
    Index index = has.FirstMissing();
    if (Chance(2)) index = has.FirstMissing(index + 1);
    rank.delivered.Add(index);
  }

  RankState Save(uint64_t client) {
    SavedRepetition saved{.version = version_};
    IndexSet all_committed;
    for (const auto& [id, rank] : ranks_) all_committed.Add(rank.committed);
    const Index below = all_committed.FirstMissing();
    saved.partitions.push_back({.committed_below = below});
    for (const auto& [id, rank] : ranks_) {
      IndexSet committed = rank.committed;
      SavedRepetition::Reader reader{
          .client = ClientId(id), .gone = rank.gone, .committed_count = committed.size()};
      committed.Remove(IndexSet::Of(0, below));
      if (!committed.empty()) reader.committed.push_back({kFirst, std::move(committed)});
      saved.readers.push_back(std::move(reader));
    }
    return StateOf(client, std::move(saved), ranks_[client].delivered);
  }

  std::mt19937 random_;
  uint64_t version_ = 0;
  std::map<uint64_t, Rank> ranks_;
};

// Returns the first fault in this many histories; "" if there is none.
std::string FirstFault(Broken broken, int64_t histories = 20'000) {
  for (uint32_t seed = 0; seed < histories; ++seed) {
    const std::string fault = History(seed).Run(broken);
    if (!fault.empty()) return absl::StrCat("seed ", seed, ": ", fault);
  }
  return "";
}

TEST(MergeOfRandomHistories, IsEachOfThemOnce) {
  const char* enough = std::getenv("PENSTOCK_HISTORIES");
  EXPECT_EQ(FirstFault(Broken::kNone, enough ? std::atoll(enough) : 20'000), "");
}

TEST(MergeOfRandomHistories, NoticesEachRuleThatIsBroken) {
  EXPECT_NE(FirstFault(Broken::kMissingState), "");
  EXPECT_NE(FirstFault(Broken::kClaimedTwice), "");
  EXPECT_NE(FirstFault(Broken::kOlderState), "");
}

}  // namespace
}  // namespace penstock::control
