// SPDX-License-Identifier: Apache-2.0
// Simulated runs of the whole service. PENSTOCK_SIMULATED_SEEDS: how many seeds of each scenario
// run; no rules are broken then.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/journal/changes_proto.h"
#include "control/protocol/rules.h"
#include "control/state/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/releases/first_format.h"
#include "tools/simulator/environment.h"
#include "tools/simulator/run.h"
#include "tools/simulator/scenario.h"

namespace penstock::simulator {
namespace {

using ::testing::IsEmpty;

constexpr char kCalm[] = R"(
workers 3 permits=2
trainers 2 step=1ms..5ms
dataset range 500 map
)";

// PENSTOCK_SIMULATED_SEEDS; nullopt: not set. Read before the environment is forgotten.
const std::optional<uint64_t> kSeedsOfEach = [] {
  const char* const text = std::getenv("PENSTOCK_SIMULATED_SEEDS");
  std::optional<uint64_t> seeds;
  if (text != nullptr) seeds = std::strtoull(text, nullptr, 10);
  ForgetEnvironment();
  return seeds;
}();

Outcome RunOf(const Scenario& scenario, uint64_t seed,
              std::function<void(const std::string& record)> on_record = {}) {
  absl::StatusOr<Outcome> outcome =
      RunScenario(scenario, seed, {.on_record = std::move(on_record)});
  // After such an error no other run may begin in this process.
  if (!outcome.ok()) {
    ADD_FAILURE() << "seed " << seed << ": " << outcome.status();
    std::abort();
  }
  return *std::move(outcome);
}

TEST(Simulation, ACalmRunIsExact) {
  const Outcome outcome = RunOf(ParseScenario(kCalm).value(), 1);
  EXPECT_THAT(outcome.violations, IsEmpty());
  EXPECT_EQ(outcome.elements, 500);
  EXPECT_EQ(outcome.given_up, 0);
  EXPECT_LT(outcome.virtual_time, absl::Minutes(1));
}

TEST(Simulation, OneSeedGivesOneRun) {
  const Scenario scenario = ParseScenario(kCalm).value();
  const Outcome first = RunOf(scenario, 7);
  EXPECT_EQ(first.hash, RunOf(scenario, 7).hash);
  EXPECT_NE(first.hash, RunOf(scenario, 8).hash);
}

TEST(Simulation, ARunWithFaultsIsReplayedToo) {
  const Scenario scenario =
      ReadScenario(absl::StrCat(PENSTOCK_CORPUS, "/everything.scenario")).value();
  EXPECT_EQ(RunOf(scenario, 1).hash, RunOf(scenario, 1).hash);
}

// It has about 20 ms to say goodbye when the faults end.
TEST(Simulation, AnotherTrainerReadsIfTheLastOneIsAboutToLeave) {
  const Scenario scenario = ParseScenario(R"(
workers 2
trainers 1 step=5ms..10ms
dataset range 500
network delay=20ms..30ms
at 2s leave trainer
calm at 2010ms
)")
                                .value();
  const Outcome outcome = RunOf(scenario, 1);
  EXPECT_THAT(outcome.violations, IsEmpty());
  EXPECT_EQ(outcome.elements, 500);
}

// It goes on when the standby has led for most of a minute.
TEST(Simulation, AStandbyLeadsWhileTheLeaderStandsStill) {
  const Scenario scenario = ParseScenario(R"(
dispatchers 2
workers 3
trainers 2 ack=on_commit step=10ms..40ms save_every=20
dataset range 2000
dispatcher heartbeat=500ms client_timeout=20s worker_timeout=5s snapshot_every=50
at 10s pause dispatcher 60s
calm at 80s
)")
                                .value();
  const Outcome outcome = RunOf(scenario, 1);
  EXPECT_THAT(outcome.violations, IsEmpty());
  EXPECT_EQ(outcome.elements, 2000);
  EXPECT_EQ(outcome.coverage.counts().at("event leads"), 2);
  EXPECT_LT(outcome.virtual_time, absl::Seconds(90));
}

// A worker dies before its first element can reach the trainer.
TEST(Simulation, ARunThatTheRuleOfDeathsHasEndedIsInconclusive) {
  const Scenario scenario = ParseScenario(R"(
workers 2 permits=1
trainers 1
dataset range 500
dispatcher worker_timeout=1s
network delay=300ms..400ms
every 500ms..1s crash worker back=100ms
calm at 2m
)")
                                .value();
  const Outcome outcome = RunOf(scenario, 1);
  EXPECT_THAT(outcome.violations, IsEmpty());
  EXPECT_TRUE(outcome.inconclusive);
}

// Seeds that a change has made fail, and that must not fail again, are in the scenarios' ranges.
class Corpus : public testing::TestWithParam<std::string> {};

TEST_P(Corpus, KeepsItsPromises) {
  absl::StatusOr<Scenario> scenario =
      ReadScenario(absl::StrCat(PENSTOCK_CORPUS, "/", GetParam(), ".scenario"));
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  if (kSeedsOfEach.has_value()) scenario->last_seed = scenario->first_seed + *kSeedsOfEach - 1;
  for (uint64_t seed = scenario->first_seed; seed <= scenario->last_seed; ++seed) {
    const Outcome outcome = RunOf(*scenario, seed);
    EXPECT_THAT(outcome.violations, IsEmpty())
        << "penstock simulate tests/simulator/corpus/" << GetParam() << ".scenario --seed " << seed;
    EXPECT_FALSE(outcome.inconclusive) << seed;
  }
}

// An upgrade that is not finalised can be undone.
TEST_P(Corpus, WritesWhatTheReleaseBeforeReads) {
  absl::StatusOr<Scenario> scenario =
      ReadScenario(absl::StrCat(PENSTOCK_CORPUS, "/", GetParam(), ".scenario"));
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  scenario->format = control::kFirstFormat;
  for (JobPlan& job : scenario->jobs) job.share = {};  // needs the next format
  std::erase_if(scenario->rules, [](const FaultRule& rule) {
    return rule.faults.front().kind == Fault::Kind::kFinalise;
  });
  int records = 0;
  const Outcome outcome = RunOf(*scenario, scenario->first_seed, [&](const std::string& record) {
    ++records;
    const absl::Status read = control::first_format::Read(record);
    EXPECT_TRUE(read.ok()) << read << " " << control::DescribeRecord(record);
  });
  EXPECT_THAT(outcome.violations, IsEmpty());
  EXPECT_GT(records, 10);
}

std::vector<std::string> CorpusFiles() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(PENSTOCK_CORPUS)) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Of, Corpus, testing::ValuesIn(CorpusFiles()),
                         [](const auto& name) { return name.param; });

// A broken rule of the protocol is noticed within a number of seeds.
struct BrokenRule {
  const char* name;
  protocol::Broken rule;
  const char* scenario;
  uint64_t seeds = 60;  // most, until one notices the rule
};
class BrokenRules : public testing::TestWithParam<BrokenRule> {};

TEST_P(BrokenRules, AreNoticed) {
  if (kSeedsOfEach.has_value()) GTEST_SKIP() << "few seeds";
  Scenario scenario =
      ReadScenario(absl::StrCat(PENSTOCK_CORPUS, "/", GetParam().scenario, ".scenario")).value();
  scenario.broken = GetParam().rule;
  for (uint64_t seed = 1; seed <= GetParam().seeds; ++seed) {
    if (!RunOf(scenario, seed).violations.empty()) return;
  }
  ADD_FAILURE() << "no violation with seeds 1 to " << GetParam().seeds;
}

constexpr BrokenRule kBrokenRules[] = {
    {"assign_without_fence", protocol::Broken::kAssignWithoutFence, "dense"},
    {"skip_without_received", protocol::Broken::kSkipWithoutReceived, "dense"},
    {"no_raise_on_death", protocol::Broken::kNoRaiseOnDeath, "dense"},
    {"newer_state_after_death", protocol::Broken::kNewerStateAfterDeath, "dense"},
    {"close_on_received_by_dead", protocol::Broken::kCloseOnReceivedByDead, "slow_trainers"},
    {"close_on_received", protocol::Broken::kCloseOnReceived, "slow_trainers"},
    {"newest_bookmark", protocol::Broken::kNewestBookmark, "slow_trainers"},
    {"no_raise_on_restart", protocol::Broken::kNoRaiseOnRestart, "restarts", 20},
    {"closed_is_finished", protocol::Broken::kClosedIsFinished, "restarts", 200},
    {"retire_below_delivered", protocol::Broken::kRetireBelowDelivered, "uncommitted", 100},
    {"serve_before_answer", protocol::Broken::kServeBeforeAnswer, "audiences"},
    {"ask_only_served", protocol::Broken::kAskOnlyServed, "audiences_commit", 100},
    {"complete_is_answer", protocol::Broken::kCompleteIsAnswer, "audiences_commit", 100},
    {"complete_forgets", protocol::Broken::kCompleteForgets, "dense"},
    {"agree_on_some", protocol::Broken::kAgreeOnSome, "rounds"},
    {"move_only_served", protocol::Broken::kMoveOnlyServed, "audiences_commit", 100},
};
INSTANTIATE_TEST_SUITE_P(Of, BrokenRules, testing::ValuesIn(kBrokenRules),
                         [](const auto& rule) { return rule.param.name; });

}  // namespace
}  // namespace penstock::simulator
