// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session_state/step_times.h"

#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using std::chrono::microseconds;

int64_t Value(const char* name, const Labels& labels = {}) {
  return ProcessMetrics().GetCounter(name, "", labels).value();
}
int64_t Waited(const char* cause) {
  return Value("penstock_client_waited_seconds_total", {{"worker", "w:1"}, {"cause", cause}});
}

TEST(StepTimes, AWaitIsOfTheWorkerUntilItsElementIsReceivedAndOfTheHandOverFromThenOn) {
  StepTimes::Clock::time_point now;
  StepTimes times([&] { return now; });
  const int64_t before = Value("penstock_client_trainer_seconds_total");
  now += microseconds(1000);  // the trainer's step
  EXPECT_FALSE(times.waiting());
  times.OnReceived();  // before any call waits
  times.Waits();
  now += microseconds(300);
  times.Waits();
  now += microseconds(100);
  times.OnReceived();
  now += microseconds(7);
  times.OnReceived();
  times.Goes("w:1", "tcp");
  now += microseconds(50);
  times.Account();
  EXPECT_EQ(Waited("worker"), 400);
  EXPECT_EQ(Waited("hand_over"), 7);
  EXPECT_EQ(Value("penstock_client_waits_total", {{"worker", "w:1"}}), 1);
  EXPECT_EQ(Value("penstock_client_trainer_seconds_total") - before, 1050);
}

TEST(StepTimes, AWaitThatIsNotOverIsNotTheTrainers) {
  StepTimes::Clock::time_point now;
  StepTimes times([&] { return now; });
  const int64_t before = Value("penstock_client_trainer_seconds_total");
  now += microseconds(10);
  times.Waits();
  now += microseconds(5000);
  times.Account();
  now += microseconds(5000);
  times.OnReceived();
  times.Goes("w:2", "tcp");
  now += microseconds(20);
  times.Account();
  EXPECT_EQ(Value("penstock_client_trainer_seconds_total") - before, 30);
}

TEST(StepTimes, StepsAreWholeAndCountFromTheFirstElementOn) {
  StepTimes::Clock::time_point now;
  StepTimes times([&] { return now; });
  now += microseconds(70'000);  // before the first call
  times.Called();
  times.Waits();
  now += microseconds(9000);  // for the first element
  times.OnReceived();
  times.Goes("w:3", "tcp");
  times.Returns();
  EXPECT_EQ(times.Steps(), control::StepCounts());
  for (int step = 0; step < 2; ++step) {
    now += microseconds(1000);
    times.Called();
    times.Waits();
    now += microseconds(300);
    times.OnReceived();
    times.Goes("w:3", "tcp");
    times.Returns();
  }
  // Counts up to the first call after the last Steps(): one step, and no part of the second.
  EXPECT_EQ(times.Steps(), (control::StepCounts{1, absl::Microseconds(1000), absl::Duration()}));
  now += microseconds(1000);
  times.Called();
  now += microseconds(50);  // another thread asks during a call
  EXPECT_EQ(times.Steps(),
            (control::StepCounts{3, absl::Microseconds(3000), absl::Microseconds(600)}));
}

TEST(StepTimes, SaysOfEachWorkerHowLongItWasWaitedFor) {
  StepTimes::Clock::time_point now;
  StepTimes times([&] { return now; });
  for (int i = 0; i < 3; ++i) {
    times.Waits();
    now += microseconds(400);
    times.OnReceived();
    now += microseconds(5);
    times.Goes("w:4", "tcp");
  }
  control::LinkCounts link, other;
  times.Into(link, "w:4");
  times.Into(other, "w:5");
  EXPECT_EQ(link.waits, 3);
  EXPECT_EQ(link.waited_until_received, absl::Microseconds(1200));
  EXPECT_EQ(link.waited_after_received, absl::Microseconds(15));
  EXPECT_EQ(other, control::LinkCounts());
}

TEST(StepTimes, CountsWaitsByTheirLengthAndTheTimeToTheFirstElement) {
  const Histogram& waits =
      ProcessMetrics().GetHistogram("penstock_client_wait_seconds", "", {{"protocol", "ucx"}});
  const Histogram& first =
      ProcessMetrics().GetHistogram("penstock_client_first_element_seconds", "");
  const int64_t waits_before = waits.count(), first_before = first.count();
  const double sum_before = first.sum();
  StepTimes::Clock::time_point now;
  StepTimes times([&] { return now; });
  now += microseconds(200'000);
  for (int i = 0; i < 3; ++i) {
    times.Waits();
    now += microseconds(20'000);
    times.Goes("w:6", "ucx");
    times.Returns();
    times.Returns();  // for an element that was there
  }
  EXPECT_EQ(waits.count() - waits_before, 3);
  EXPECT_EQ(waits.count_up_to(9) - waits.count_up_to(8), 3);  // above 10 ms, up to 30 ms
  EXPECT_EQ(first.count() - first_before, 1);
  EXPECT_NEAR(first.sum() - sum_before, 0.22, 1e-6);
}

}  // namespace
}  // namespace penstock::client
