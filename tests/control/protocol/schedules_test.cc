// SPDX-License-Identifier: Apache-2.0
// Seeded random schedules with every kind of failure. To run more of them, or one of
// them again, by hand:
//   PENSTOCK_SCHEDULES=100000 protocol_schedules_test    (and PENSTOCK_SCHEDULES_FROM)
//   PENSTOCK_SCHEDULE_SEED=1234 protocol_schedules_test --gtest_filter=*KillWorker
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

#include "tests/control/protocol/schedule.h"

namespace penstock::protocol {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Plays the requested seeds and prints a summary.
void Play(uint64_t unless_said, const std::function<Outcome(uint64_t seed)>& play) {
  const uint64_t one = FromEnvironment("PENSTOCK_SCHEDULE_SEED", 0);
  const uint64_t first = one ? one : FromEnvironment("PENSTOCK_SCHEDULES_FROM", 1);
  const uint64_t last = one ? one : FromEnvironment("PENSTOCK_SCHEDULES", unless_said);
  Outcome sum;
  int faults = 0;
  for (uint64_t seed = first; seed <= last && faults < 5; ++seed) {
    const Outcome outcome = play(seed);
    EXPECT_EQ(outcome.fault, "") << "again with PENSTOCK_SCHEDULE_SEED=" << seed;
    faults += !outcome.fault.empty();
    sum.elements += outcome.elements;
    sum.failures += outcome.failures;
    sum.given_up += outcome.given_up;
    sum.events += outcome.events;
  }
  std::printf(
      "seeds %llu to %llu: %lld elements, %d failures, %lld events, %lld given up by name\n",
      static_cast<unsigned long long>(first), static_cast<unsigned long long>(last),
      static_cast<long long>(sum.elements), sum.failures, static_cast<long long>(sum.events),
      static_cast<long long>(sum.given_up));
}

TEST(Schedules, LoseNothingDoubleNothingAndEnd) {
  Play(2000, [](uint64_t seed) { return RunSchedule(seed); });
}

class SchedulesOf : public testing::TestWithParam<Fault> {};

TEST_P(SchedulesOf, OneFaultLoseNothingDoubleNothingAndEnd) {
  Play(300, [](uint64_t seed) { return RunSchedule(seed, GetParam()); });
}

INSTANTIATE_TEST_SUITE_P(Faults, SchedulesOf,
                         testing::Values(Fault::kKillWorker, Fault::kRestartDispatcher,
                                         Fault::kKillClient, Fault::kStopWorker,
                                         Fault::kAddOrRemoveWorker),
                         [](const auto& info) {
                           switch (info.param) {
                             case Fault::kKillWorker:
                               return "KillWorker";
                             case Fault::kRestartDispatcher:
                               return "RestartDispatcher";
                             case Fault::kKillClient:
                               return "KillClient";
                             case Fault::kStopWorker:
                               return "StopWorker";
                             default:
                               return "AddOrRemoveWorker";
                           }
                         });

// The schedules must find faults: a broken rule is noticed within a few of them.
class BrokenSchedules : public testing::TestWithParam<Broken> {};

TEST_P(BrokenSchedules, AreNoticed) {
  for (uint64_t seed = 1; seed <= 500; ++seed)
    if (!RunSchedule(seed, GetParam()).fault.empty()) return;
  FAIL() << "500 schedules saw nothing";
}

INSTANTIATE_TEST_SUITE_P(Rules, BrokenSchedules,
                         testing::Values(Broken::kAssignWithoutFence, Broken::kSkipWithoutReceived,
                                         Broken::kAcceptOldPlacements, Broken::kNoRaiseOnDeath,
                                         Broken::kResendWithoutAsking, Broken::kNoRaiseOnRestart,
                                         Broken::kNewestBookmark, Broken::kRetireBelowDelivered,
                                         Broken::kGiveBackAndKeep));

}  // namespace
}  // namespace penstock::protocol
