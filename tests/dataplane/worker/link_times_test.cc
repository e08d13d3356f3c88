// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/link_times.h"

#include "gtest/gtest.h"

namespace penstock::worker {
namespace {

using std::chrono::microseconds;

int64_t Booked(const char* waits_for) {
  return ProcessMetrics()
      .GetCounter("penstock_worker_link_microseconds_total", "",
                  {{"client", "c"}, {"waits_for", waits_for}})
      .value();
}

TEST(LinkTimes, EachMomentBelongsToWhatWasWaitedFor) {
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

}  // namespace
}  // namespace penstock::worker
