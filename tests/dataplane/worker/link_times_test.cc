// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/link_times.h"

#include <algorithm>
#include <string>

#include "gtest/gtest.h"

namespace penstock::worker {
namespace {

using std::chrono::microseconds;

int64_t Booked(const char* waits_for) {
  return ProcessMetrics()
      .GetCounter("penstock_worker_link_seconds_total", "",
                  {{"client", "c"}, {"waits_for", waits_for}})
      .value();
}

TEST(LinkTimes, EachMomentBelongsToTheCauseOfItsWait) {
  LinkTimes::Clock::time_point now;
  LinkTimes times("c", [&] { return now; });
  now += microseconds(10);
  times.Now(LinkWaitsFor::kTransport);
  now += microseconds(200);
  times.Now(LinkWaitsFor::kTransport);
  now += microseconds(300);
  times.Now(LinkWaitsFor::kTrainer);
  now += microseconds(4000);
  times.Now(LinkWaitsFor::kProduce);
  EXPECT_EQ(Booked("produce"), 10);
  EXPECT_EQ(Booked("transport"), 500);
  EXPECT_EQ(Booked("trainer"), 4000);
}

TEST(LinkTimes, DoNotGrowWithTheClientsThatEverCame) {
  const auto lines = [] {
    const std::string text = ProcessMetrics().Render();
    return std::count(text.begin(), text.end(), '\n');
  };
  for (int client = 0; client < 1000; ++client) LinkTimes times(std::to_string(client));
  EXPECT_LT(lines(), 500);
}

}  // namespace
}  // namespace penstock::worker
