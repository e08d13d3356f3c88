// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/farm/trial.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/simulator/farm/child.h"

namespace penstock::simulator {
namespace {

using ::testing::Contains;
using ::testing::Key;
using ::testing::StartsWith;

constexpr absl::Duration kLong = absl::Minutes(5);

TEST(Child, ReturnsWhatItsFunctionReturns) {
  const std::string large(1 << 20, 'x');  // more than a pipe holds
  const ChildEnd end = RunInChild([&] { return large; }, kLong);
  EXPECT_EQ(end.text, large);
}

TEST(Child, ItsOutputOnStderrIsNotPartOfTheText) {
  const ChildEnd end = RunInChild(
      [] {
        std::fprintf(stderr, "a warning\n");
        return std::string("text");
      },
      kLong);
  EXPECT_EQ(end.text, "text");
}

TEST(Child, ACrashIsReportedWithItsLastWords) {
  const ChildEnd end = RunInChild(
      []() -> std::string {
        std::fprintf(stderr, "no such element\n");
        std::abort();
      },
      kLong);
  EXPECT_FALSE(end.text.has_value());
  EXPECT_EQ(end.failure, "crashed by Aborted: no such element");
}

TEST(Child, AHangIsKilled) {
  const ChildEnd end = RunInChild(
      []() -> std::string {
        while (true) absl::SleepFor(absl::Seconds(1));
      },
      absl::Milliseconds(200));
  EXPECT_FALSE(end.text.has_value());
  EXPECT_EQ(end.failure, "hangs: no end within 200ms of processor time");
}

TEST(Child, ALoopIsKilled) {
  const ChildEnd end = RunInChild(
      []() -> std::string {
        for (volatile int rounds = 0;;) rounds = rounds + 1;
      },
      absl::Milliseconds(200));
  EXPECT_EQ(end.failure, "hangs: no end within 200ms of processor time");
}

// A child that waits uses no processor time.
TEST(Child, MayTakeMoreRealTimeThanItsLimit) {
  const ChildEnd end = RunInChild(
      [] {
        absl::SleepFor(absl::Milliseconds(300));
        return std::string("text");
      },
      absl::Milliseconds(200));
  EXPECT_EQ(end.text, "text");
}

TEST(Trial, ARunGivesItsCoverageAndTime) {
  const TrialResult result =
      RunTrial({"workers 1\ntrainers 1 step=1ms..2ms\ndataset range 20\n", 1, true}, kLong);
  EXPECT_EQ(result.violation, "");
  EXPECT_GT(result.virtual_time, absl::ZeroDuration());
  EXPECT_THAT(result.coverage.counts(), Contains(Key("message WorkerUp hello")));
}

TEST(Trial, ATextThatIsNoScenarioIsAViolation) {
  EXPECT_THAT(RunTrial({"wrokers 1\n", 1}, kLong).violation, StartsWith("no run: line 1"));
}

TEST(Trial, NamesTheCheckOfAViolation) {
  EXPECT_EQ(CheckOf("at 41.2s: stuck: not all trainers reached the end"), "stuck");
  EXPECT_EQ(CheckOf("doubled: iteration 1, partition 2"), "doubled");
  EXPECT_EQ(CheckOf("at 1m2s: worker12 ended by itself, and no fault explains it: INTERNAL: x"),
            "worker ended by itself, and no fault explains it");
  EXPECT_EQ(CheckOf("crashed by Aborted: at 3"), "crashed by Aborted");
  EXPECT_EQ(CheckOf(""), "");
}

}  // namespace
}  // namespace penstock::simulator
