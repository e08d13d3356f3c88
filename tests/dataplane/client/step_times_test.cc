// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/step_times.h"

#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using std::chrono::microseconds;

int64_t Value(const char* name, const Labels& labels = {}) {
  return ProcessMetrics().GetCounter(name, "", labels).value();
}
int64_t Waited(const char* cause) {
  return Value("penstock_client_waited_microseconds_total", {{"worker", "w:1"}, {"cause", cause}});
}

TEST(StepTimes, AWaitIsOfTheWorkerUntilItsElementLandsAndOfTheHandOverFromThenOn) {
  StepTimes::Clock::time_point now;
  StepTimes times([&] { return now; });
  const int64_t before = Value("penstock_client_trainer_microseconds_total");
  now += microseconds(1000);  // the trainer's step
  EXPECT_FALSE(times.waiting());
  times.Landed();  // before anybody waits
  times.Waits();
  now += microseconds(300);
  times.Waits();
  now += microseconds(100);
  times.Landed();
  now += microseconds(7);
  times.Landed();
  times.Goes("w:1");
  now += microseconds(50);
  times.Account();
  EXPECT_EQ(Waited("worker"), 400);
  EXPECT_EQ(Waited("hand_over"), 7);
  EXPECT_EQ(Value("penstock_client_waits_total", {{"worker", "w:1"}}), 1);
  EXPECT_EQ(Value("penstock_client_trainer_microseconds_total") - before, 1050);
}

TEST(StepTimes, AWaitThatIsNotOverIsNotTheTrainers) {
  StepTimes::Clock::time_point now;
  StepTimes times([&] { return now; });
  const int64_t before = Value("penstock_client_trainer_microseconds_total");
  now += microseconds(10);
  times.Waits();
  now += microseconds(5000);
  times.Account();
  now += microseconds(5000);
  times.Landed();
  times.Goes("w:2");
  now += microseconds(20);
  times.Account();
  EXPECT_EQ(Value("penstock_client_trainer_microseconds_total") - before, 30);
}

}  // namespace
}  // namespace penstock::client
