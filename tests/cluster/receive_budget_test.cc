// SPDX-License-Identifier: Apache-2.0
// How many elements consumers of a coordinated read hold. A program of its own, since the maximum
// is counted per process and never reset.
#include "absl/strings/str_cat.h"
#include "control/observe/metrics.h"
#include "tests/cluster/consumers.h"

namespace penstock {
namespace {

TEST(RoundsReceiveBudget, NoConsumerHoldsMoreThanMayBeOutstanding) {
  struct Case {
    int64_t requests;
    int64_t bytes;
    int64_t most;  // elements
  };
  constexpr int64_t kBytes = 32 << 10;  // per element, with its head
  const Dataset large =
      Numbers(41).Map([](auto x) { return BroadcastTo(x, {(kBytes - 1024) / 8}); });
  Cluster cluster(8);
  const Gauge& most = ProcessMetrics().GetGauge("penstock_client_elements_held_most", "");
  for (const Case& c : {Case{1, 1 << 30, 1}, Case{2, 1 << 30, 2}, Case{64, 3 * kBytes, 4},
                        Case{4, 1 << 30, 4}, Case{64, 1 << 30, 64}}) {
    auto its = Consumers(cluster, 2, large, ShardingPolicy::kOff, [&](auto& options) {
      options.job_name = absl::StrCat("budget of ", c.requests, ", ", c.bytes);
      options.max_outstanding_requests = c.requests;
      options.max_outstanding_bytes = c.bytes;
    });
    std::vector<std::future<int64_t>> reading;
    for (Iterator& it : its) {
      reading.push_back(std::async(std::launch::async, [&it] {
        for (int64_t step = 0;; ++step) {
          EXPECT_TRUE(it.CheckStep(step).ok());
          const auto element = it.Next();
          EXPECT_TRUE(element.ok()) << element.status();
          if (!element.ok() || !element->has_value()) return step;
        }
      }));
    }
    for (auto& read : reading) EXPECT_EQ(read.get(), 8 * 41 / 2);
    EXPECT_GE(most.value(), 1);
    EXPECT_LE(most.value(), c.most) << c.requests << " requests, " << c.bytes << " bytes";
  }
}

}  // namespace
}  // namespace penstock
