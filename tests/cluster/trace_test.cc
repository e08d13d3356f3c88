// SPDX-License-Identifier: Apache-2.0
// The output of `penstock trace` for servers in this process.
#include "control/stub/dispatcher_stub.h"
#include "tests/cluster/cluster.h"

namespace penstock {
namespace {

TEST(Trace, ShowsEachNodesWorkOnEachWorker) {
  Cluster cluster(2);
  const Dataset dataset = Dataset::Range(int64_t{1} << 40).Map([](Expr x) { return x * 2; });
  absl::StatusOr<Iterator> it =
      dataset.Distribute(cluster.Options(ShardingPolicy::kOff)).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  auto stub = control::DispatcherStub::Make(cluster.service());
  ASSERT_TRUE(stub.ok()) << stub.status();
  control::DispatcherStatus status;
  const auto seen = [&] {
    return status.work.size() == 2 &&
           std::all_of(status.work.begin(), status.work.end(), [](const auto& worker) {
             return worker.work.stats.nodes.size() == 2 && worker.work.stats.nodes[1].elements > 0;
           });
  };
  while (!seen()) {
    const absl::StatusOr<std::optional<Element>> element = it->Next();
    ASSERT_TRUE(element.ok()) << element.status();
    absl::StatusOr<control::DispatcherStatus> now =
        (*stub)->GetStatus({.timeout = absl::Minutes(1), .stop = {}});
    ASSERT_TRUE(now.ok()) << now.status();
    status = *std::move(now);
  }
  ASSERT_EQ(status.datasets.size(), 1u);
  for (const control::WorkStatus& worker : status.work) {
    EXPECT_EQ(worker.work.dataset_id, status.datasets[0].dataset_id);
    const NodeStats& range = worker.work.stats.nodes[0];
    const NodeStats& map = worker.work.stats.nodes[1];
    EXPECT_EQ(range.node, "Range#0");
    EXPECT_EQ(map.node, "Map#1");
    EXPECT_GE(range.elements + 32, map.elements);  // counts are a little late
    EXPECT_GT(map.busy, absl::ZeroDuration());
    EXPECT_GE(map.parallelism, 1);
  }
}

}  // namespace
}  // namespace penstock
