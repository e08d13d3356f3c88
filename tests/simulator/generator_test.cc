// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/farm/generator.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/simulator/farm/shrinker.h"
#include "tools/simulator/scenario.h"

namespace penstock::simulator {
namespace {

using ::testing::Contains;
using ::testing::ElementsAreArray;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::SizeIs;

constexpr uint64_t kDrawn = 200;

TEST(Generator, DrawsTextsThatCanBeParsed) {
  for (uint64_t seed = 1; seed <= kDrawn; ++seed) {
    const std::string text = DrawScenario(seed);
    const absl::StatusOr<Scenario> scenario = ParseScenario(text);
    ASSERT_TRUE(scenario.ok()) << scenario.status() << "\n" << text;
    EXPECT_EQ(scenario->first_seed, seed);
    EXPECT_EQ(scenario->last_seed, seed);
    EXPECT_GE(scenario->finished_within, absl::Minutes(5)) << text;
  }
}

// A saved scenario has the same statements, so that it gives the same run.
TEST(Generator, ItsTextsAreTheSameAfterSaving) {
  for (uint64_t seed = 1; seed <= kDrawn; ++seed) {
    const std::string text = DrawScenario(seed);
    const std::string comment = absl::StrCat("Drawn from the seed ", seed, ".");
    EXPECT_EQ(ToFile({text, seed, comment}), text);
  }
}

TEST(Generator, ASeedGivesOneText) {
  std::set<std::string> texts;
  for (uint64_t seed = 1; seed <= kDrawn; ++seed) {
    EXPECT_EQ(DrawScenario(seed), DrawScenario(seed));
    texts.insert(DrawScenario(seed));
  }
  EXPECT_EQ(texts.size(), kDrawn);
}

TEST(Generator, DrawsEachFaultAndAlsoCalmRuns) {
  std::set<std::string> drawn;
  int calm = 0;
  for (uint64_t seed = 1; seed <= kDrawn; ++seed) {
    const Scenario scenario = ParseScenario(DrawScenario(seed)).value();
    calm += scenario.rules.empty() ? 1 : 0;
    for (const FaultRule& rule : scenario.rules) {
      for (const Fault& fault : rule.faults) drawn.insert(fault.name);
    }
  }
  EXPECT_THAT(drawn, ElementsAreArray(DrawnFaults()));
  EXPECT_THAT(calm, Ge(10));
}

TEST(Generator, DrawsJobsOfEachKindAndAlsoOneJob) {
  std::set<Reading> readings;
  std::set<ShardingPolicy> modes;
  int without = 0;
  for (uint64_t seed = 1; seed <= kDrawn; ++seed) {
    const Scenario scenario = ParseScenario(DrawScenario(seed)).value();
    without += scenario.jobs.empty() ? 1 : 0;
    for (const JobPlan& job : scenario.jobs) {
      readings.insert(job.reading);
      modes.insert(job.mode);
    }
  }
  EXPECT_THAT(readings, SizeIs(5));
  EXPECT_THAT(modes, SizeIs(5));
  EXPECT_THAT(without, Ge(10));
}

TEST(Generator, DrawsEachOption) {
  std::set<std::string> drawn;
  for (uint64_t seed = 1; seed <= kDrawn; ++seed) drawn.merge(OptionStates(DrawScenario(seed)));
  EXPECT_THAT(drawn, ElementsAreArray(DrawnOptions()));
  EXPECT_THAT(drawn, IsSupersetOf({"option dispatcher format", "option job namespace",
                                   "option job priority", "option job weight",
                                   "option namespace max_clients"}));
}

// A journal of the first format cannot contain a job's share.
TEST(Generator, DrawsSharesOnlyForTheNewestFormat) {
  int old = 0, shares = 0;
  for (uint64_t seed = 1; seed <= kDrawn; ++seed) {
    const Scenario scenario = ParseScenario(DrawScenario(seed)).value();
    bool shared = false;
    for (const JobPlan& job : scenario.jobs) shared |= job.share != JobShare();
    EXPECT_FALSE(shared && scenario.format == control::kFirstFormat);
    old += scenario.format == control::kFirstFormat ? 1 : 0;
    shares += shared ? 1 : 0;
  }
  EXPECT_THAT(old, Ge(10));
  EXPECT_THAT(shares, Ge(10));
}

// Nothing may be given up where each reader commits what it was given.
TEST(Generator, AllowsThatElementsAreGivenUpWhereStatesAreCommitted) {
  for (uint64_t seed = 1; seed <= kDrawn; ++seed) {
    const std::string text = DrawScenario(seed);
    const Scenario scenario = ParseScenario(text).value();
    bool commits = false;
    for (const JobPlan& job : JobsOf(scenario)) commits |= job.ack == AckMode::kOnCommit;
    EXPECT_EQ(scenario.given_up > 0, commits && !scenario.rules.empty()) << text;
  }
}

TEST(Generator, NamesFaultsWithoutTimes) {
  EXPECT_THAT(DrawnFaults(), Contains("crash dispatcher power_loss"));
  EXPECT_THAT(DrawnFaults(), Contains("cut trainer worker both"));
  EXPECT_THAT(DrawnFaults(), Contains("jump clock trainer"));
  EXPECT_THAT(DrawnFaults(), Not(Contains(HasSubstr("{"))));
}

}  // namespace
}  // namespace penstock::simulator
