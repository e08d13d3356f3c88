// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "control/observe/event_log.h"
#include "control/observe/fail_point.h"
#include "control/observe/metrics.h"
#include "control/observe/secret.h"
#include "control/observe/wait_lines.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Metrics, AreRenderedForPrometheus) {
  Metrics metrics;
  metrics.GetCounter("penstock_moves_total", "Partitions moved.", {{"why", "worker \"a\""}}).Add(2);
  metrics.GetCounter("penstock_moves_total", "Partitions moved.", {{"why", "worker \"a\""}}).Add();
  metrics.GetGauge("penstock_workers", "Connected workers.").Set(4);
  EXPECT_EQ(metrics.Render(),
            "# HELP penstock_moves_total Partitions moved.\n"
            "# TYPE penstock_moves_total counter\n"
            "penstock_moves_total{why=\"worker \\\"a\\\"\"} 3\n"
            "# HELP penstock_workers Connected workers.\n"
            "# TYPE penstock_workers gauge\n"
            "penstock_workers 4\n");
}

TEST(Metrics, TimesArePrintedInSecondsAndUnderTheOldNameInMicroseconds) {
  Metrics metrics;
  metrics.GetCounter("penstock_busy_seconds_total", "Time at work.", {{"rank", "1"}})
      .Add(2'500'001);
  EXPECT_EQ(metrics.Render(),
            "# HELP penstock_busy_seconds_total Time at work.\n"
            "# TYPE penstock_busy_seconds_total counter\n"
            "penstock_busy_seconds_total{rank=\"1\"} 2.500001\n"
            "# HELP penstock_busy_microseconds_total Time at work.\n"
            "# TYPE penstock_busy_microseconds_total counter\n"
            "penstock_busy_microseconds_total{rank=\"1\"} 2500001\n");
}

TEST(Metrics, TheNewestUnusedOnesStay) {
  Metrics metrics;
  const auto counter = [&](const std::string& client) {
    return metrics.ShareCounter("penstock_waits_total", "Waits.", {{"client", client}});
  };
  const auto line = [](const std::string& client) {
    return absl::StrCat("penstock_waits_total{client=\"", client, "\"} 1\n");
  };
  const std::shared_ptr<Counter> held = counter("held");
  held->Add();
  EXPECT_EQ(counter("held"), held);
  for (size_t i = 0; i < 3 * Metrics::kGoneKept; ++i) counter(absl::StrCat(i))->Add();
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr(line("held")));
  EXPECT_THAT(text, HasSubstr(line(absl::StrCat(3 * Metrics::kGoneKept - 1))));
  EXPECT_THAT(text, Not(HasSubstr(line("0"))));
  EXPECT_LE(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')),
            2 + 1 + Metrics::kGoneKept + 1);
}

TEST(Metrics, HistogramsCountUpToEachBound) {
  Metrics metrics;
  Histogram& plain = metrics.GetHistogram("penstock_plain_seconds", "Without labels.");
  Histogram& wait = metrics.GetHistogram("penstock_wait_seconds", "Waits.", {{"protocol", "shm"}});
  for (double seconds : {0.5e-6, 1e-6, 0.02, 0.02, 1000.0}) wait.Observe(seconds);
  EXPECT_EQ(wait.count(), 5);
  EXPECT_NEAR(wait.sum(), 1000.04, 1e-3);
  EXPECT_EQ(plain.count(), 0);
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("# TYPE penstock_wait_seconds histogram\n"
                              "penstock_wait_seconds_bucket{protocol=\"shm\",le=\"1e-06\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("penstock_wait_seconds_bucket{protocol=\"shm\",le=\"0.01\"} 2\n"
                              "penstock_wait_seconds_bucket{protocol=\"shm\",le=\"0.03\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("penstock_wait_seconds_bucket{protocol=\"shm\",le=\"100\"} 4\n"
                              "penstock_wait_seconds_bucket{protocol=\"shm\",le=\"+Inf\"} 5\n"
                              "penstock_wait_seconds_sum{protocol=\"shm\"} 1000.04\n"
                              "penstock_wait_seconds_count{protocol=\"shm\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("penstock_plain_seconds_bucket{le=\"1e-06\"} 0\n"));
}

TEST(SameSecret, IsTrueForTheWholeSecretOnly) {
  EXPECT_TRUE(SameSecret("secret", "secret"));
  EXPECT_TRUE(SameSecret("", ""));
  for (const char* wrong : {"", "s", "secre", "secret2", "Secret", "secretsecret"}) {
    EXPECT_FALSE(SameSecret(wrong, "secret")) << wrong;
  }
  EXPECT_FALSE(SameSecret("presented", ""));
}

TEST(EventLog, LinesAreOneLineAndQuotedWhereNeeded) {
  EXPECT_EQ(ToString(Event{"lost", {{"worker", "1f"}, {"why", "port\nrefuses"}, {"to", ""}}}),
            "lost worker=1f why=\"port\\nrefuses\" to=\"\"");
  EXPECT_EQ(ToString(Event{"lost", {{"why", "\x1b[2J"}, {"to", "caf\xe9"}, {"in", "a=\"b\""}}}),
            "lost why=\"\\033[2J\" to=\"caf\\351\" in=\"a=\\\"b\\\"\"");
}

TEST(EventLog, TestsSeeWrittenEvents) {
  auto log = CapturedEvents::Make();
  log->Write({"joined", {{"worker", "1"}}});
  EXPECT_EQ(log->WaitFor("joined", absl::Seconds(1)).field("worker"), "1");
  EXPECT_EQ(log->All().size(), 1u);
}

TEST(FailPointDeathTest, KillsAtTheGivenPass) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  setenv("PENSTOCK_FAIL_POINT", "elsewhere,here:3", 1);
  FailPoint("other");
  EXPECT_EXIT(
      {
        FailPoint("here");
        FailPoint("here");
        FailPoint("here");
      },
      ::testing::KilledBySignal(SIGKILL), "");
  unsetenv("PENSTOCK_FAIL_POINT");
}

TEST(WaitLines, ComeAfterTwoSecondsAndThenSeldom) {
  const auto events = CapturedEvents::Make();
  WaitLines lines(events, {{"job", "j"}});
  const auto worker = [] { return std::string("a worker"); };
  const auto said = [&] { return events->All().size(); };
  lines.Waits(absl::Seconds(1), worker);
  EXPECT_EQ(said(), 0);
  lines.Waits(absl::Seconds(2), worker);
  EXPECT_EQ(ToString(events->All().back()), "waits job=j for=\"a worker\" since=2s");
  for (int at = 3; at <= 100; ++at) lines.Waits(absl::Seconds(at), worker);
  EXPECT_EQ(said(), 5);  // at 2, 6, 14, 30 and 62
}

TEST(WaitLines, SayAtOnceWhenItIsAnother) {
  const auto events = CapturedEvents::Make();
  WaitLines lines(events);
  for (int at = 1; at <= 20; ++at) lines.Waits(absl::Seconds(at), [] { return "a"; });
  lines.Waits(absl::Seconds(21), [] { return "b"; });
  EXPECT_EQ(events->All().back().field("for"), "b");
}

// All elements take a while.
TEST(WaitLines, AreNotOneForEachOfManyWaits) {
  const auto events = CapturedEvents::Make();
  WaitLines lines(events);
  for (int wait = 0; wait < 100; ++wait) {
    for (int at = 0; at <= 3; ++at) lines.Waits(absl::Seconds(at), [] { return "elements"; });
  }
  EXPECT_EQ(events->All().size(), 1);
}

}  // namespace
}  // namespace penstock
