// SPDX-License-Identifier: Apache-2.0
// Simulated runs of the whole service. PENSTOCK_SIMULATED_SEEDS: how many seeds of each scenario
// run; no rules are broken then.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/protocol/rules.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
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

Outcome RunOf(const Scenario& scenario, uint64_t seed) {
  absl::StatusOr<Outcome> outcome = RunScenario(scenario, seed);
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

// Seeds that a change has made fail, and that must not fail again, are in the scenarios' ranges.
class Corpus : public testing::TestWithParam<std::string> {};

TEST_P(Corpus, KeepsItsPromises) {
  absl::StatusOr<Scenario> scenario =
      ReadScenario(absl::StrCat(PENSTOCK_CORPUS, "/", GetParam(), ".scenario"));
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  if (const char* seeds = std::getenv("PENSTOCK_SIMULATED_SEEDS")) {
    scenario->last_seed = scenario->first_seed + std::strtoull(seeds, nullptr, 10) - 1;
  }
  for (uint64_t seed = scenario->first_seed; seed <= scenario->last_seed; ++seed) {
    const Outcome outcome = RunOf(*scenario, seed);
    EXPECT_THAT(outcome.violations, IsEmpty())
        << "penstock simulate tests/simulator/corpus/" << GetParam() << ".scenario --seed " << seed;
  }
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

// A broken rule of the protocol is noticed within a number of seeds. Each scenario notices its
// rules with at least one seed of ten.
struct BrokenRule {
  const char* name;
  protocol::Broken rule;
  const char* scenario;
};
class BrokenRules : public testing::TestWithParam<BrokenRule> {};

TEST_P(BrokenRules, AreNoticed) {
  if (std::getenv("PENSTOCK_SIMULATED_SEEDS") != nullptr) GTEST_SKIP() << "few seeds";
  constexpr uint64_t kSeeds = 60;
  Scenario scenario =
      ReadScenario(absl::StrCat(PENSTOCK_CORPUS, "/", GetParam().scenario, ".scenario")).value();
  scenario.broken = GetParam().rule;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    if (!RunOf(scenario, seed).violations.empty()) return;
  }
  ADD_FAILURE() << "no violation with seeds 1 to " << kSeeds;
}

constexpr BrokenRule kBrokenRules[] = {
    {"assign_without_fence", protocol::Broken::kAssignWithoutFence, "dense"},
    {"skip_without_received", protocol::Broken::kSkipWithoutReceived, "dense"},
    {"no_raise_on_death", protocol::Broken::kNoRaiseOnDeath, "dense"},
    {"newer_state_after_death", protocol::Broken::kNewerStateAfterDeath, "dense"},
    {"close_on_received_by_dead", protocol::Broken::kCloseOnReceivedByDead, "slow_trainers"},
    {"close_on_received", protocol::Broken::kCloseOnReceived, "slow_trainers"},
    {"newest_bookmark", protocol::Broken::kNewestBookmark, "slow_trainers"},
};
INSTANTIATE_TEST_SUITE_P(Of, BrokenRules, testing::ValuesIn(kBrokenRules),
                         [](const auto& rule) { return rule.param.name; });

}  // namespace
}  // namespace penstock::simulator
