// SPDX-License-Identifier: Apache-2.0
// How sessions end: their reports of delivered elements, and commits, also after the end.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/dataplane/client/session_fixture.h"
#include "tests/eventually.h"

namespace penstock::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(SessionTest, StoppingReportsOnlyDeliveredElements) {
  Begin();
  auto link = Link();
  for (Index i = 0; i < 4; ++i) ASSERT_TRUE(Send(link->link(), i).ok());
  EXPECT_EQ(NextValue(), 0);
  EXPECT_EQ(NextValue(), 1);
  stop_.request_stop();
  EXPECT_EQ(session_->Next().status().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(dispatcher_.Heard<control::Leave>().delivered,
              ElementsAre(control::PartitionIndices{kPartition, IndexSet::Of(0, 2)}));
}

TEST_F(SessionTest, DestructionReportsDeliveredElements) {
  ack_mode_ = AckMode::kOnCommit;
  Begin();
  auto link = Link();
  for (Index i = 0; i < 3; ++i) ASSERT_TRUE(Send(link->link(), i).ok());
  EXPECT_EQ(NextValue(), 0);
  session_->Leave(absl::Minutes(1));  // does not leave yet: it may still commit
  EXPECT_EQ(NextValue(), 1);
  auto destroyed = std::async(std::launch::async, [&] { session_.reset(); });
  EXPECT_THAT(dispatcher_.Heard<control::Leave>().delivered,
              ElementsAre(control::PartitionIndices{kPartition, IndexSet::Of(0, 2)}));
  dispatcher_.Say(control::Left{});
  destroyed.get();
}

// A session whose place another takes does not leave, so its links stay until its end.
TEST_F(SessionTest, DestructionEndsTheStreamBeforeTheLinks) {
  Begin();
  auto link = Link();
  bool listens = true;
  link->on_closed = [&] { listens = dispatcher_.has_stream(); };
  ASSERT_TRUE(Send(link->link(), 0).ok());
  EXPECT_EQ(NextValue(), 0);
  session_->Abandon();
  session_.reset();
  EXPECT_TRUE(link->AwaitClosed().ok());
  EXPECT_FALSE(listens);
}

TEST_F(SessionTest, ACommitIsRepeatedOnANewStream) {
  ack_mode_ = AckMode::kOnCommit;
  Begin();
  auto link = Link();
  ASSERT_TRUE(Send(link->link(), 0).ok());
  EXPECT_EQ(NextValue(), 0);
  const control::Commit commit{.number = 7,
                               .repetitions = {{0, {{kPartition, IndexSet::Of(0, 1)}}}}};
  auto committed = std::async(std::launch::async, [&] { return session_->Commit(commit); });
  EXPECT_EQ(dispatcher_.Heard<control::Commit>(), commit);
  dispatcher_.Break();
  dispatcher_.Heard<control::ClientHello>(1);
  dispatcher_.Say(Welcome());
  EXPECT_EQ(dispatcher_.Heard<control::Commit>(1), commit);
  dispatcher_.Say(control::Committed{7});
  const absl::StatusOr<bool> said = committed.get();
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_TRUE(*said);
}

TEST_F(SessionTest, AStopEndsACommit) {
  ack_mode_ = AckMode::kOnCommit;
  Begin();
  auto link = Link();
  ASSERT_TRUE(Send(link->link(), 0).ok());
  EXPECT_EQ(NextValue(), 0);
  auto committed = std::async(std::launch::async, [&] {
    return session_->Commit(
        {.number = 7, .repetitions = {{0, {{kPartition, IndexSet::Of(0, 1)}}}}});
  });
  dispatcher_.Heard<control::Commit>();
  stop_.request_stop();
  EXPECT_EQ(committed.get().status().code(), absl::StatusCode::kCancelled);
}

// The last repetition has ended without any element for this session. Elements of the one before
// are committed only when the dispatcher says so.
TEST_F(SessionTest, AfterLeavingAnotherRepetitionIsNotCommitted) {
  ack_mode_ = AckMode::kOnCommit;
  Begin();
  Link();
  dispatcher_.Say(control::End());
  absl::StatusOr<std::optional<Element>> end = session_->Next();
  ASSERT_TRUE(end.ok()) << end.status();
  dispatcher_.Heard<control::Leave>();
  const control::Commit commit{.number = 7,
                               .repetitions = {{0, {{kPartition, IndexSet::Of(0, 1)}}}, {1, {}}}};
  absl::StatusOr<bool> committed = session_->Commit(commit);
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_FALSE(*committed);
  EXPECT_EQ(dispatcher_.Count<control::Commit>(), 0u);
}

TEST_F(SessionTest, AfterItsEndTheDispatcherMayBeAwayBeyondTheTimeout) {
  ack_mode_ = AckMode::kOnCommit;
  Begin(std::nullopt, absl::Hours(1), /*timeout=*/kShortTimeout);
  auto link = Link();
  ASSERT_TRUE(Send(link->link(), 0).ok());
  EXPECT_EQ(NextValue(), 0);
  dispatcher_.Say(control::End());
  absl::StatusOr<std::optional<Element>> end = session_->Next();
  ASSERT_TRUE(end.ok()) << end.status();
  dispatcher_.Break();
  dispatcher_.Heard<control::ClientHello>(1);  // is not answered
  ASSERT_EQ(dispatcher_.Heard<control::ClientHello>(2).client, ClientId(3));
  dispatcher_.Say(Welcome());
  const control::Commit commit{.number = 7,
                               .repetitions = {{0, {{kPartition, IndexSet::Of(0, 1)}}}}};
  auto committed = std::async(std::launch::async, [&] { return session_->Commit(commit); });
  EXPECT_EQ(dispatcher_.Heard<control::Commit>(), commit);
  dispatcher_.Say(control::Committed{7});
  EXPECT_TRUE(committed.get().ok());
}

TEST_F(SessionTest, AfterItsEndARefusedCommitNamesReasonAndRemedy) {
  ack_mode_ = AckMode::kOnCommit;
  Begin();
  auto link = Link();
  ASSERT_TRUE(Send(link->link(), 0).ok());
  EXPECT_EQ(NextValue(), 0);
  dispatcher_.Say(control::End());
  absl::StatusOr<std::optional<Element>> end = session_->Next();
  ASSERT_TRUE(end.ok()) << end.status();
  dispatcher_.Break(absl::FailedPreconditionError("declared dead"));
  const control::Commit commit{.number = 7,
                               .repetitions = {{0, {{kPartition, IndexSet::Of(0, 1)}}}}};
  const absl::Status status = session_->Commit(commit).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              ::testing::AllOf(HasSubstr("declared dead"), HasSubstr("Restore() this state")));
}

TEST_F(SessionTest, AClaimingSessionPresentsItsStateAndLeaves) {
  ack_mode_ = AckMode::kOnCommit;
  SessionOptions options;
  options.job.token = token_;
  options.distribute.timeout = absl::Minutes(1);
  options.spec = Scalar(kInt64);
  options.client = ClientId(3);
  options.incarnation = Incarnation(4);
  options.state = IndicesByPartition{{kPartition, IndexSet::Of(0, 4)}};
  options.claims_only = true;
  absl::StatusOr<std::unique_ptr<Session>> begun = Session::Begin(std::move(options), dispatcher_);
  ASSERT_TRUE(begun.ok()) << begun.status();
  session_ = *std::move(begun);
  EXPECT_TRUE(dispatcher_.Heard<control::ClientHello>().state.has_value());
  dispatcher_.Say(Welcome());
  dispatcher_.Say(Membership());
  EXPECT_THAT(dispatcher_.Heard<control::Leave>().delivered,
              ElementsAre(control::PartitionIndices{kPartition, IndexSet::Of(0, 4)}));
  EXPECT_TRUE(session_->ended());
  session_.reset();
}

TEST_F(SessionTest, ALeaveWithoutAStreamIsSentOnTheNext) {
  Begin();
  auto link = Link();
  ASSERT_TRUE(Send(link->link(), 0).ok());
  EXPECT_EQ(NextValue(), 0);
  dispatcher_.Break();
  dispatcher_.Heard<control::ClientHello>(1);
  auto left = std::async(std::launch::async, [&] { session_->Leave(absl::Minutes(1)); });
  while (session_->Next().status().code() != absl::StatusCode::kCancelled) {
    ASSERT_TRUE(Send(link->link(), 1).ok());
  }
  dispatcher_.Say(Welcome());
  EXPECT_FALSE(dispatcher_.Heard<control::Leave>().delivered.empty());
  left.get();
}

TEST_F(SessionTest, TheEndIsFinal) {
  Begin();
  Link();
  dispatcher_.Say(control::End());
  absl::StatusOr<std::optional<Element>> end = session_->Next();
  ASSERT_TRUE(end.ok()) << end.status();
  dispatcher_.Heard<control::Leave>();
  dispatcher_.Say(control::SessionError{absl::FailedPreconditionError("not known")});
  dispatcher_.Break();
  ASSERT_TRUE(
      Eventually([&] { return !dispatcher_.has_stream(); }));  // the error was received before
  end = session_->Next();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_FALSE(end->has_value());
}

// Neither its end nor that of others has to wait until the received elements are delivered.
TEST_F(SessionTest, WithAnEarlyEndItGivesNothingBack) {
  early_end_ = true;
  Begin();
  auto link = Link();
  for (Index i = 0; i < 3; ++i) ASSERT_TRUE(Send(link->link(), i).ok());
  EXPECT_TRUE(Reported(&control::PartitionReport::handed, IndexSet::Of(0, 3)));
  EXPECT_EQ(NextValue(), 0);
  dispatcher_.Say(control::Fence{kPartition, Placement(2), /*give_back=*/true});
  EXPECT_TRUE(dispatcher_.Heard<control::FenceAnswer>().report.returned.empty());
  dispatcher_.Say(control::End());
  EXPECT_EQ(NextValue(), 1);
  EXPECT_FALSE(session_->ended());
  EXPECT_EQ(NextValue(), 2);
  EXPECT_EQ(session_->delivered().at(kPartition), IndexSet::Of(0, 3));
}

// A consumer of a fixed order, to which the dispatcher sends the end once everything is received.
class OrderEndTest : public SessionTest {
 protected:
  OrderEndTest() {
    consumers_ = 1;
    order_ = MergeOrder::kDeterministic;
    dispatcher_.answer_leaves = false;
  }
  // Reads all elements. The end has come before the last of them is returned.
  void ReadAll(absl::Duration timeout = absl::Minutes(1)) {
    Begin(std::nullopt, absl::Hours(1), timeout);
    auto link = Link();
    for (Index i = 0; i < 2; ++i) ASSERT_TRUE(Send(link->link(), i).ok());
    EXPECT_EQ(NextValue(), 0);
    dispatcher_.Say(control::End());
    EXPECT_EQ(NextValue(), 1);
  }
  std::future<absl::StatusOr<std::optional<Element>>> NextInBackground() {
    return std::async(std::launch::async, [this] { return session_->Next(); });
  }
  static bool IsEnd(const absl::StatusOr<std::optional<Element>>& next) {
    return next.ok() && !next->has_value();
  }
};

TEST_F(OrderEndTest, ReturnsTheEndOnceAllDeliveriesAreDurable) {
  ReadAll();
  auto end = NextInBackground();
  const control::PartitionIndices all{kPartition, IndexSet::Of(0, 2)};
  EXPECT_THAT(dispatcher_.Heard<control::Leave>().delivered, ElementsAre(all));
  EXPECT_FALSE(session_->Ready());
  EXPECT_FALSE(session_->ended());
  dispatcher_.Break();
  dispatcher_.Heard<control::ClientHello>(1);
  dispatcher_.Say(Welcome());
  EXPECT_THAT(dispatcher_.Heard<control::Leave>(1).delivered, ElementsAre(all));
  EXPECT_FALSE(session_->Ready());
  dispatcher_.Say(control::Left());
  EXPECT_TRUE(IsEnd(end.get()));
  EXPECT_TRUE(session_->ended());
  EXPECT_TRUE(IsEnd(session_->Next()));
}

TEST_F(OrderEndTest, IsAnErrorWhileTheDispatcherStaysAway) {
  ReadAll(kShortTimeout);
  dispatcher_.Break();
  dispatcher_.Heard<control::ClientHello>(1);  // is not answered
  const absl::Status unknown = session_->Next().status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(unknown.message()),
              ::testing::AllOf(HasSubstr("the dispatcher at fake:1 did not confirm within 400ms"),
                               HasSubstr("call Next() again")));
  dispatcher_.Heard<control::ClientHello>(2);
  dispatcher_.Say(Welcome());
  dispatcher_.Heard<control::Leave>();
  dispatcher_.Say(control::Left());
  EXPECT_TRUE(IsEnd(session_->Next()));
}

TEST_F(OrderEndTest, IsRefusedToAConsumerThatWasDeclaredDead) {
  ReadAll();
  auto end = NextInBackground();
  dispatcher_.Heard<control::Leave>();
  dispatcher_.Break(absl::FailedPreconditionError("declared dead"));
  EXPECT_EQ(end.get().status(), absl::FailedPreconditionError("declared dead"));
}

TEST_F(OrderEndTest, AStopEndsTheWait) {
  ReadAll();
  auto end = NextInBackground();
  dispatcher_.Heard<control::Leave>();
  stop_.request_stop();
  EXPECT_EQ(end.get().status().code(), absl::StatusCode::kCancelled);
  dispatcher_.Say(control::Left());
}

TEST_F(OrderEndTest, DoesNotWaitIfOnlyStatesAreCommitted) {
  ack_mode_ = AckMode::kOnCommit;
  dispatcher_.answer_leaves = true;
  ReadAll();
  EXPECT_TRUE(IsEnd(session_->Next()));
}

// The nodes that hold the last elements need the end to pass them on.
TEST_F(SessionTest, TheEndAfterNodesWaitsUntilTheirDeliveriesAreDurable) {
  delivers_later_ = true;
  dispatcher_.answer_leaves = false;
  Begin();
  auto link = Link();
  ASSERT_TRUE(Send(link->link(), 0).ok());
  PendingDeliveries pending;
  {
    const PendingDeliveries::Scope scope(&pending);
    EXPECT_EQ(NextValue(), 0);
    EXPECT_TRUE(Reported(&control::PartitionReport::handed, IndexSet::Of(0, 1)));
    dispatcher_.Say(control::End());
    const absl::StatusOr<std::optional<Element>> end = session_->Next();
    EXPECT_TRUE(end.ok() && !end->has_value());
  }
  EXPECT_TRUE(session_->AwaitEnd().ok()) << "not delivered yet";
  EXPECT_TRUE(pending.Deliver().ok());
  auto ended = std::async(std::launch::async, [&] { return session_->AwaitEnd(); });
  dispatcher_.Heard<control::Leave>();
  EXPECT_FALSE(session_->ended());
  dispatcher_.Say(control::Left());
  EXPECT_TRUE(ended.get().ok());
  EXPECT_TRUE(session_->ended());
}

// The elements that the nodes hold can no longer be delivered.
TEST_F(SessionTest, ReturnsNoEndOnceItHasFailed) {
  delivers_later_ = true;
  Begin();
  auto link = Link();
  ASSERT_TRUE(Send(link->link(), 0).ok());
  PendingDeliveries pending;
  const PendingDeliveries::Scope scope(&pending);
  EXPECT_EQ(NextValue(), 0);
  EXPECT_TRUE(Reported(&control::PartitionReport::handed, IndexSet::Of(0, 1)));
  dispatcher_.Say(control::End());
  const absl::StatusOr<std::optional<Element>> end = session_->Next();
  EXPECT_TRUE(end.ok() && !end->has_value());
  const absl::Status dead = absl::FailedPreconditionError("declared dead");
  dispatcher_.Break(dead);
  EXPECT_TRUE(Eventually([&] { return session_->Next().status() == dead; }));
  EXPECT_EQ(session_->Next().status(), dead);
  EXPECT_EQ(session_->AwaitEnd(), dead);
}

}  // namespace
}  // namespace penstock::client
