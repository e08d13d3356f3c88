// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session_state/receive_ledger.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ReceiveLedgerTest : public testing::Test {
 protected:
  ReceiveLedgerTest() { Welcome(); }

  void Welcome() {
    ledger_.OnWelcome({.placements = {{PartitionId(1), Placement(1)},
                                      {PartitionId(2), Placement(1)},
                                      {PartitionId(3), Placement(1)}}});
  }
  void Receive(uint64_t partition, Index index) {
    ledger_.Of(PartitionId(partition)).OnElement(Placement(1), index);
  }
  void Deliver(uint64_t partition, Index index) {
    ledger_.Of(PartitionId(partition)).OnDelivered(index);
  }
  // Returns the numbers of the partitions in a report.
  std::vector<uint64_t> Report(News news) {
    last_ = ledger_.TakeNews(news);
    std::vector<uint64_t> named;
    for (const control::PartitionReport& of : last_) named.push_back(of.partition.value());
    return named;
  }

  ReceiveLedger ledger_{std::nullopt};
  std::vector<control::PartitionReport> last_;
};

TEST_F(ReceiveLedgerTest, TheFirstReportOnAStreamNamesAllPartitions) {
  EXPECT_THAT(Report(News::kAll), ElementsAre(1, 2, 3));
  EXPECT_THAT(Report(News::kAll), IsEmpty());
  Receive(2, 5);
  EXPECT_THAT(Report(News::kAll), ElementsAre(2));
  Welcome();
  EXPECT_THAT(Report(News::kReceived), ElementsAre(1, 2, 3));
  EXPECT_EQ(last_[1].received, IndexSet::Of(5, 6));
}

TEST_F(ReceiveLedgerTest, DeliveriesWaitForAReportOfAllNews) {
  Report(News::kAll);
  Receive(1, 7);
  Receive(3, 8);
  EXPECT_THAT(Report(News::kReceived), ElementsAre(1, 3));
  Deliver(3, 8);
  EXPECT_THAT(Report(News::kReceived), IsEmpty());
  Receive(2, 9);
  EXPECT_THAT(Report(News::kReceived), ElementsAre(2));
  EXPECT_THAT(Report(News::kAll), ElementsAre(3));
  EXPECT_EQ(last_[0].delivered, IndexSet::Of(8, 9));
  EXPECT_THAT(Report(News::kAll), IsEmpty());
}

TEST_F(ReceiveLedgerTest, ElementsOfARestoredStateAreReportedWhenWelcome) {
  IndicesByPartition restored;
  restored[PartitionId(4)] = IndexSet::Of(0, 3);
  ReceiveLedger ledger(restored);
  ledger.OnWelcome({.placements = {{PartitionId(4), Placement(2)}}});
  const std::vector<control::PartitionReport> reports = ledger.TakeNews(News::kAll);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].delivered, IndexSet::Of(0, 3));
}

}  // namespace
}  // namespace penstock::client
