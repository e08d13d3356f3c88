// SPDX-License-Identifier: Apache-2.0
// A session's first report after a Welcome, in particular after a partial one.
#include "gtest/gtest.h"
#include "tests/dataplane/client/session_fixture.h"

namespace penstock::client {
namespace {

class SessionWelcomeTest : public SessionTest {
 protected:
  // Waits for the next report that is complete.
  control::Report NextComplete() {
    for (; !HasFailure(); ++taken_) {
      const auto report = dispatcher_.Heard<control::Report>(taken_);
      if (!report.complete) continue;
      ++taken_;
      return report;
    }
    return {};
  }
  void Reconnect() {
    dispatcher_.Break();
    dispatcher_.Heard<control::ClientHello>(++hellos_);
    dispatcher_.Say(Welcome());
    dispatcher_.Say(Membership());
  }

  size_t taken_ = 0;   // reports
  size_t hellos_ = 0;  // after the first one
};

TEST_F(SessionWelcomeTest, AWholeOneIsAnsweredForAllPartitions) {
  Begin();
  const auto report = dispatcher_.Heard<control::Report>();
  EXPECT_FALSE(report.complete);
  ASSERT_EQ(report.partitions.size(), 1u);
  EXPECT_TRUE(report.partitions[0].whole);
}

TEST_F(SessionWelcomeTest, AReportSaysThatItIsCompleteEvenIfItNamesNoPartition) {
  placements_.clear();
  partial_ = true;
  Begin();
  EXPECT_TRUE(dispatcher_.Heard<control::Report>().complete);
  EXPECT_TRUE(dispatcher_.Heard<control::Report>().partitions.empty());
}

TEST_F(SessionWelcomeTest, ElementsOfAPartitionThatWasNotNamedAreReportedAgainOnANewStream) {
  placements_.clear();
  partial_ = true;
  Begin();
  EXPECT_TRUE(NextComplete().partitions.empty());
  ASSERT_TRUE(Send(Link()->link(), 0).ok());
  EXPECT_EQ(NextValue(), 0);
  EXPECT_TRUE(Reported(&control::PartitionReport::delivered, IndexSet::Of(0, 1)));
  Reconnect();
  const control::Report report = NextComplete();
  ASSERT_EQ(report.partitions.size(), 1u);
  EXPECT_EQ(report.partitions[0].partition, kPartition);
  EXPECT_EQ(report.partitions[0].delivered, IndexSet::Of(0, 1));
  EXPECT_TRUE(report.partitions[0].whole);
}

TEST_F(SessionWelcomeTest, AWholeOneAfterAPartialOneHasNoCompleteReport) {
  placements_.clear();
  partial_ = true;
  Begin();
  NextComplete();
  placements_ = {{kPartition, Placement(2)}};
  partial_ = false;
  Reconnect();
  const auto report = dispatcher_.Heard<control::Report>(taken_);
  EXPECT_FALSE(report.complete);
  ASSERT_EQ(report.partitions.size(), 1u);
  EXPECT_EQ(report.partitions[0].placement, Placement(2));
}

}  // namespace
}  // namespace penstock::client
