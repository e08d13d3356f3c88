// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session_state/receive_ledger.h"

#include <cstdint>
#include <utility>
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

// --- Partial welcomes ---------------------------------------------------------------

class PartialWelcomeTest : public ReceiveLedgerTest {
 protected:
  // A new stream, whose Welcome names these partitions.
  void WelcomeTo(std::vector<control::Fence> placements) {
    ledger_.OnWelcome({.placements = std::move(placements), .partial = true});
  }
};

TEST_F(PartialWelcomeTest, TheFirstReportNamesWhatTheWelcomeNamesAndWhatIsHere) {
  Receive(1, 5);
  Receive(2, 6);
  Deliver(2, 6);
  Receive(3, 7);
  ledger_.OnHanded(PartitionId(3), 7);
  Report(News::kAll);
  WelcomeTo({{PartitionId(4), Placement(2)}});
  EXPECT_THAT(Report(News::kAll), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(last_[0].received, IndexSet::Of(5, 6));
  EXPECT_EQ(last_[1].delivered, IndexSet::Of(6, 7));
  EXPECT_EQ(last_[2].handed, IndexSet::Of(7, 8));
  EXPECT_EQ(last_[3].placement, Placement(2));
  for (const control::PartitionReport& of : last_) EXPECT_TRUE(of.whole);
  EXPECT_THAT(Report(News::kAll), IsEmpty());
}

TEST_F(PartialWelcomeTest, PartitionsOfWhichNothingIsHereAreNotReported) {
  Report(News::kAll);
  Receive(2, 6);
  ledger_.Of(PartitionId(2)).OnFence(Placement(4), IndexSet::Of(6, 7));
  WelcomeTo({{PartitionId(3), Placement(1)}});
  EXPECT_THAT(Report(News::kReceived), ElementsAre(3));
  WelcomeTo({});
  EXPECT_THAT(Report(News::kAll), IsEmpty());
}

TEST_F(PartialWelcomeTest, OneReportAfterEachSaysThatItIsComplete) {
  EXPECT_FALSE(ledger_.TakeCompletes()) << "a whole Welcome";
  WelcomeTo({});
  EXPECT_TRUE(ledger_.TakeCompletes());
  EXPECT_FALSE(ledger_.TakeCompletes());
  WelcomeTo({});
  Welcome();
  EXPECT_FALSE(ledger_.TakeCompletes());
}

// The dispatcher has named this process to the worker, and nothing has named the partition to this
// process. Its first report must not look like one after a lost fence.
TEST_F(PartialWelcomeTest, ElementsOfAPartitionThatWasNotNamedAreNews) {
  ReceiveLedger ledger(std::nullopt);
  ledger.OnWelcome({.placements = {}, .partial = true});
  ledger.OnNamed(PartitionId(900));  // the number of all partitions
  EXPECT_THAT(ledger.TakeNews(News::kAll), IsEmpty());
  ASSERT_TRUE(ledger.Known(PartitionId(800)));
  EXPECT_EQ(ledger.Of(PartitionId(800)).OnElement(Placement(7), 3),
            protocol::ReceiveResult::kAccepted);
  const std::vector<control::PartitionReport> reports = ledger.TakeNews(News::kReceived);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].received, IndexSet::Of(3, 4));
  EXPECT_FALSE(reports[0].whole);
}

// The dispatcher relies on the answers to its fences, also those of earlier streams.
TEST_F(PartialWelcomeTest, APartitionThatIsNotNamedStillRefusesEarlierPlacements) {
  ledger_.Of(PartitionId(2)).OnFence(Placement(4));
  WelcomeTo({});
  EXPECT_EQ(ledger_.Of(PartitionId(2)).OnElement(Placement(3), 0),
            protocol::ReceiveResult::kOldPlacement);
  EXPECT_EQ(ledger_.Of(PartitionId(2)).OnElement(Placement(5), 0),
            protocol::ReceiveResult::kAccepted);
}

// The answer is the first report of the partition on the stream, and follows the complete one.
TEST_F(PartialWelcomeTest, AFenceOfAPartitionThatWasNotNamedIsAnswered) {
  WelcomeTo({});
  Report(News::kAll);
  const protocol::Report answer = ledger_.Of(PartitionId(800)).OnFence(Placement(6));
  EXPECT_EQ(answer.placement, Placement(6));
  EXPECT_TRUE(answer.received.empty());
  EXPECT_THAT(Report(News::kAll), IsEmpty());
  WelcomeTo({});
  EXPECT_THAT(Report(News::kAll), IsEmpty());
}

TEST_F(PartialWelcomeTest, ElementsOfARestoredStateAreReportedAlsoIfNotNamed) {
  IndicesByPartition restored;
  restored[PartitionId(4)] = IndexSet::Of(0, 3);
  ReceiveLedger ledger(restored);
  ledger.OnWelcome({.placements = {{PartitionId(6), Placement(2)}}, .partial = true});
  const std::vector<control::PartitionReport> reports = ledger.TakeNews(News::kAll);
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].partition, PartitionId(4));
  EXPECT_EQ(reports[0].delivered, IndexSet::Of(0, 3));
  EXPECT_TRUE(reports[0].whole);
}

}  // namespace
}  // namespace penstock::client
