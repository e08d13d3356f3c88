// SPDX-License-Identifier: Apache-2.0
// The output of `penstock links` for servers in this process.
#include <functional>

#include "control/stub/dispatcher_stub.h"
#include "tests/cluster/cluster.h"

namespace penstock {
namespace {

using ::testing::UnorderedElementsAre;

class LinksTest : public testing::Test {
 protected:
  // Asks the dispatcher until its links satisfy `holds`.
  std::vector<control::LinkStatus> ReadUntil(
      Iterator& it, const std::function<bool(const std::vector<control::LinkStatus>&)>& holds) {
    auto stub = control::DispatcherStub::Make(cluster_.service());
    EXPECT_TRUE(stub.ok()) << stub.status();
    while (stub.ok()) {
      absl::StatusOr<std::optional<Element>> element = it.Next();
      EXPECT_TRUE(element.ok()) << element.status();
      absl::StatusOr<control::DispatcherStatus> status =
          (*stub)->GetStatus({.timeout = absl::Minutes(1), .stop = {}});
      EXPECT_TRUE(status.ok()) << status.status();
      if (!element.ok() || !status.ok()) break;
      if (holds(status->links)) return status->links;
    }
    return {};
  }

  Cluster cluster_{2};
};

TEST_F(LinksTest, ShowProtocolReasonCountsAndRatesOfEachWorker) {
  DistributeOptions options = cluster_.Options(ShardingPolicy::kOff, "digits");
  options.data_transfer_protocol = "tcp";
  options.max_outstanding_requests = 8;
  absl::StatusOr<Iterator> it = Dataset::Range(int64_t{1} << 40).Distribute(options).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  const std::vector<control::LinkStatus> links = ReadUntil(*it, [](const auto& now) {
    return now.size() == 2 && std::all_of(now.begin(), now.end(), [](const auto& link) {
             return link.counts.open && link.counts.elements > 0 && link.elements_per_s > 0;
           });
  });
  ASSERT_EQ(links.size(), 2u);
  std::vector<std::string> workers;
  for (const control::LinkStatus& link : links) {
    EXPECT_EQ(link.job, "digits");
    EXPECT_TRUE(link.client);
    EXPECT_EQ(link.counts.protocol, "tcp");
    EXPECT_EQ(link.counts.reason, "tcp: DistributeOptions");
    EXPECT_GE(link.counts.bytes, link.counts.elements * 8);
    EXPECT_GT(link.bytes_per_s, 0);
    EXPECT_GE(link.counts.credits, 0);
    EXPECT_LE(link.counts.credits, 8);
    workers.push_back(link.worker);
  }
  EXPECT_THAT(workers,
              UnorderedElementsAre(cluster_.worker(0).address(), cluster_.worker(1).address()));
}

TEST_F(LinksTest, AreGoneWithTheirClient) {
  auto stub = control::DispatcherStub::Make(cluster_.service());
  ASSERT_TRUE(stub.ok()) << stub.status();
  {
    absl::StatusOr<Iterator> it = Dataset::Range(int64_t{1} << 40)
                                      .Distribute(cluster_.Options(ShardingPolicy::kOff))
                                      .MakeIterator();
    ASSERT_TRUE(it.ok()) << it.status();
    ReadUntil(*it, [](const auto& now) { return !now.empty(); });
  }
  absl::StatusOr<control::DispatcherStatus> status =
      (*stub)->GetStatus({.timeout = absl::Minutes(1), .stop = {}});
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_THAT(status->links, testing::IsEmpty());
}

}  // namespace
}  // namespace penstock
