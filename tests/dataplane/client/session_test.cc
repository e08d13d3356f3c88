// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session/session.h"

#include <future>

#include "control/sync/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/dataplane/client/session_fixture.h"
#include "tests/dataplane/client/wall_clock.h"

namespace penstock::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(SessionTest, ReturnsWhatWorkersSendAndThenTheEnd) {
  Begin();
  auto link = Link();
  for (Index i = 0; i < 5; ++i) ASSERT_TRUE(Send(link->link(), i).ok());
  dispatcher_.Say(control::End());
  for (Index i = 0; i < 5; ++i) EXPECT_EQ(NextValue(), i);
  for (int again = 0; again < 2; ++again) {
    absl::StatusOr<std::optional<Element>> end = session_->Next();
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_FALSE(end->has_value());
  }
  EXPECT_THAT(dispatcher_.Heard<control::Leave>().delivered,
              ElementsAre(control::PartitionIndices{kPartition, IndexSet::Of(0, 5)}));
}

TEST_F(SessionTest, ElementsOfImpossiblePartitionsAreDropped) {
  Begin();
  auto link = Link();
  for (Index i = 0; i < 3; ++i) {
    Element element = *MakeElement(DefaultPool(), {Tensor(kInt64, {}, &i)}, Scalar(kInt64));
    Identity identity = IdentityOf(0);
    identity.partition = PartitionId(1'000'000 + i);
    element.set_identity(identity);
    ASSERT_TRUE(link->link().Send(std::move(element)).ok());
  }
  Index opened = 7;  // the dispatcher announces it later
  Element element = *MakeElement(DefaultPool(), {Tensor(kInt64, {}, &opened)}, Scalar(kInt64));
  Identity identity = IdentityOf(0);
  identity.partition = PartitionId(kPartition.value() + 1);
  element.set_identity(identity);
  ASSERT_TRUE(link->link().Send(std::move(element)).ok());
  EXPECT_EQ(NextValue(), 7);
}

TEST_F(SessionTest, TellsTheWorkerItsIdentity) {
  Begin();
  const transfer::Hello& hello = Link()->link().hello();
  EXPECT_EQ(hello.token, "sesame");
  EXPECT_EQ(hello.client, ClientId(3));
  EXPECT_EQ(hello.incarnation, Incarnation(4));
  EXPECT_EQ(hello.iteration, IterationId(6));
}

TEST_F(SessionTest, ALinkIsAnEventThatNamesItsProtocolAndWhy) {
  Begin();
  Link();
  const Event opened = events_->WaitFor("link_opened", absl::Minutes(1));
  EXPECT_EQ(opened.field("worker"), "w:1");
  EXPECT_EQ(opened.field("iteration"), "6");
  EXPECT_EQ(opened.field("protocol"), "local");
  EXPECT_EQ(opened.field("reason"), "local: the best available");
}

TEST_F(SessionTest, AFallbackIsAnEventOncePerWorker) {
  transport_preference_ = {"carrier_pigeon", {"local"}, "penstock.toml:2"};
  Begin();
  Link(0)->link().Close(absl::UnavailableError("broken"));
  Link(1);
  EXPECT_EQ(events_->WaitFor("fell_back", absl::Minutes(1)).field("worker"), "w:1");
  Link(1)->link().Close(absl::UnavailableError("broken"));
  Link(2);
  std::vector<Event> fell_back = events_->All();
  std::erase_if(fell_back, [](const Event& event) { return event.name != "fell_back"; });
  ASSERT_EQ(fell_back.size(), 1u);
  EXPECT_EQ(fell_back[0].field("from"), "carrier_pigeon");
  EXPECT_EQ(fell_back[0].field("to"), "local");
  EXPECT_THAT(fell_back[0].field("reason"),
              HasSubstr("carrier_pigeon (penstock.toml:2) cannot be used"));
}

TEST_F(SessionTest, HeldAndRequestedElementsFitItsWindow) {
  Begin();
  auto link = Link();
  Index sent = 0;
  while (Send(link->link(), sent).ok()) ++sent;
  EXPECT_LE(sent, 8);
  EXPECT_EQ(NextValue(), 0);
}

TEST_F(SessionTest, ALinkThatBreaksIsCountedByProtocolAndCode) {
  const Counter& errors = ProcessMetrics().GetCounter(
      "penstock_client_link_errors_total", "", {{"protocol", "local"}, {"code", "DATA_LOSS"}});
  const int64_t before = errors.value();
  Begin();
  Link(0)->link().Close(absl::DataLossError("a frame that is none"));
  Link(1);
  EXPECT_EQ(errors.value() - before, 1);
}

TEST_F(SessionTest, AnErrorIsReturnedInItsPlace) {
  Begin();
  auto link = Link();
  ASSERT_TRUE(Send(link->link(), 0).ok());
  ASSERT_TRUE(link->link().Send({IdentityOf(1), absl::DataLossError("file at 7")}).ok());
  ASSERT_TRUE(Send(link->link(), 2).ok());
  EXPECT_EQ(NextValue(), 0);
  EXPECT_EQ(session_->Next().status(), absl::DataLossError("file at 7"));
  EXPECT_EQ(NextValue(), 2);
  EXPECT_EQ(session_->delivered().at(kPartition), IndexSet::Of(0, 3));
}

TEST_F(SessionTest, AFenceIsAnsweredAndOlderElementsAreDropped) {
  Begin();
  auto link = Link();
  for (Index i = 0; i < 3; ++i) ASSERT_TRUE(Send(link->link(), i).ok());
  EXPECT_EQ(NextValue(), 0);
  dispatcher_.Say(control::Fence{kPartition, Placement(2)});
  control::PartitionReport answer = dispatcher_.Heard<control::FenceAnswer>().report;
  EXPECT_EQ(answer.placement, Placement(2));
  ASSERT_TRUE(Send(link->link(), 3).ok());                // old placement: dropped
  ASSERT_TRUE(Send(link->link(), 4, Placement(2)).ok());  // new placement
  EXPECT_EQ(NextValue(), 1);
  EXPECT_EQ(NextValue(), 2);
  EXPECT_EQ(NextValue(), 4);
  IndexSet delivered = IndexSet::Of(0, 3);
  delivered.Add(4);
  EXPECT_EQ(session_->delivered().at(kPartition), delivered);
}

TEST_F(SessionTest, ARecallingFenceGetsHalfOfTheUndeliveredBack) {
  Begin();
  auto link = Link();
  for (Index i = 0; i < 5; ++i) ASSERT_TRUE(Send(link->link(), i).ok());
  EXPECT_EQ(NextValue(), 0);
  ASSERT_TRUE(link->AwaitReceived(5));
  dispatcher_.Say(control::Fence{kPartition, Placement(2), /*give_back=*/true});
  const control::PartitionReport answer = dispatcher_.Heard<control::FenceAnswer>().report;
  EXPECT_EQ(answer.returned, IndexSet::Of(3, 5));
  dispatcher_.Say(control::Fence{kPartition, Placement(2), /*give_back=*/true});
  EXPECT_TRUE(dispatcher_.Heard<control::FenceAnswer>(1).report.returned.empty()) << "said again";
  ASSERT_TRUE(Send(link->link(), 4, Placement(2)).ok());  // once more, as to any client
  EXPECT_EQ(NextValue(), 1);
  EXPECT_EQ(NextValue(), 2);
  EXPECT_EQ(NextValue(), 4);
}

TEST_F(SessionTest, AnIdleSessionGivesAllBackUntilTheNextCall) {
  Begin();
  auto link = Link();
  for (Index i = 0; i < 4; ++i) ASSERT_TRUE(Send(link->link(), i).ok());
  ASSERT_TRUE(link->AwaitReceived(4));
  dispatcher_.Say(control::Fence{kPartition, Placement(2), /*give_back=*/true});
  EXPECT_EQ(dispatcher_.Heard<control::FenceAnswer>().report.returned, IndexSet::Of(0, 4));
  auto next = std::async(std::launch::async, [&] { return NextValue(); });
  while (!Send(link->link(), 2, Placement(2)).ok()) ASSERT_TRUE(HeartbeatsGoOn());
  EXPECT_EQ(next.get(), 2);
}

TEST_F(SessionTest, NearTheEndReportsSayThatACallWaits) {
  Begin();
  auto link = Link();
  dispatcher_.Say(control::ReportAtOnce());
  auto next = std::async(std::launch::async, [&] { return NextValue(); });
  for (size_t i = 0; !dispatcher_.Heard<control::Report>(i).waits; ++i) {
  }
  ASSERT_TRUE(Send(link->link(), 0).ok());
  EXPECT_EQ(next.get(), 0);
}

// From the first report after ReportAtOnce on, even if the call waited before: after 5 ms, 10, 20
// and so on.
TEST_F(SessionTest, ReportsThatACallWaitsBecomeRarer) {
  Begin();
  auto link = Link();
  auto next = std::async(std::launch::async, [&] { return NextValue(); });
  ASSERT_TRUE(HeartbeatsGoOnFor(absl::Milliseconds(20)));
  dispatcher_.Say(control::ReportAtOnce());
  absl::Time first = absl::InfiniteFuture();
  for (size_t i = 0, reported = 0; reported < 8; ++i) {
    if (!dispatcher_.Heard<control::Report>(i).waits) continue;
    first = std::min(first, absl::Now());
    ++reported;
  }
  EXPECT_GE(absl::Now() - first, absl::Milliseconds(100));
  ASSERT_TRUE(Send(link->link(), 0).ok());
  EXPECT_EQ(next.get(), 0);
}

TEST_F(SessionTest, AnIndexThatIsHereAlreadyIsDropped) {
  Begin();
  auto link = Link();
  ASSERT_TRUE(Send(link->link(), 0).ok());
  ASSERT_TRUE(Send(link->link(), 0).ok());
  ASSERT_TRUE(Send(link->link(), 1).ok());
  EXPECT_EQ(NextValue(), 0);
  EXPECT_EQ(NextValue(), 1);
}

TEST_F(SessionTest, ABrokenLinkIsDialledAgainWithItsHoldings) {
  Begin();
  auto link = Link(0);
  ASSERT_TRUE(Send(link->link(), 0).ok());
  ASSERT_TRUE(Send(link->link(), 1).ok());
  EXPECT_EQ(NextValue(), 0);
  link->link().Close(absl::UnavailableError("broken on purpose"));
  auto next = Link(1);
  ASSERT_EQ(next->link().hello().holdings.size(), 1u);
  EXPECT_EQ(next->link().hello().holdings[0].partition, kPartition);
  EXPECT_EQ(next->link().hello().holdings[0].indices, IndexSet::Of(0, 2));
  ASSERT_TRUE(Send(next->link(), 2).ok());
  EXPECT_EQ(NextValue(), 1);
  EXPECT_EQ(NextValue(), 2);
}

TEST_F(SessionTest, RepeatedExhaustionFallsBackToAnotherProtocol) {
  transfer::Worker other(**transfer::FindTransport("grpc"));
  transport_preference_ = {"local", {"grpc"}, "DistributeOptions"};
  Begin(std::nullopt, absl::Hours(1), absl::Minutes(1), /*served=*/false);
  control::Membership membership = Membership();
  // A worker for which this process has not logged the fallback yet.
  membership.partitions[0].worker = membership.workers[0].worker = WorkerId(10);
  const transfer::TransportOffer offer = other.offer("grpc");
  membership.workers[0].offers.push_back({offer.protocol, offer.address, offer.compatibility});
  dispatcher_.Say(membership);
  for (int i = 0; i < 3; ++i) Link(i)->link().Close(absl::ResourceExhaustedError("no memory left"));
  std::shared_ptr<transfer::WorkerEnd> link = other.Link(0);
  ASSERT_NE(link, nullptr);
  ASSERT_TRUE(link->AwaitGranted(1));
  EXPECT_THAT(events_->WaitFor("fell_back", absl::Minutes(1)).field("reason"),
              HasSubstr("no memory left"));
  ASSERT_TRUE(Send(link->link(), 0).ok());
  EXPECT_EQ(NextValue(), 0);
}

TEST_F(SessionTest, ExhaustionIsAnErrorWithoutAFallback) {
  transport_preference_ = {"local", {}, "DistributeOptions"};
  Begin();
  for (int i = 0; i < 3; ++i) Link(i)->link().Close(absl::ResourceExhaustedError("no memory left"));
  const absl::Status status = session_->Next().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(HasSubstr("Protocol 'local' is not available for worker 'w:1'"),
                             HasSubstr("no memory left")));
}

TEST_F(SessionTest, AProtocolThatHasCarriedElementsIsTriedAgain) {
  Begin();
  for (Index i = 0; i < 4; ++i) {
    auto link = Link(i);
    ASSERT_TRUE(Send(link->link(), i).ok());
    EXPECT_EQ(NextValue(), i);
    link->link().Close(absl::ResourceExhaustedError("no memory left"));
  }
  ASSERT_TRUE(Send(Link(4)->link(), 4).ok());
  EXPECT_EQ(NextValue(), 4);
}

TEST_F(SessionTest, AWorkerHearsOnlyOfElementsItSent) {
  Begin(IndicesByPartition{{kPartition, IndexSet::Of(0, 4)}, {PartitionId(2), IndexSet::Of(0, 9)}});
  EXPECT_TRUE(Link()->link().hello().holdings.empty());
}

class SessionOverGrpcTest : public SessionTest {
 protected:
  SessionOverGrpcTest() : SessionTest("grpc") {}
};

TEST_F(SessionOverGrpcTest, AMillionElementsWithGapsDoNotKeepALinkFromOpening) {
  IndexSet delivered;
  for (Index i = 0; i < 2'400'000; i += 2) delivered.Add(i);
  Begin(IndicesByPartition{{kPartition, delivered}});
  auto link = Link();
  ASSERT_TRUE(Send(link->link(), 1).ok());
  EXPECT_EQ(NextValue(), 1);
  link->link().Close(absl::UnavailableError("broken on purpose"));
  auto next = Link(1);
  ASSERT_TRUE(Send(next->link(), 3).ok());
  EXPECT_EQ(NextValue(), 3);
}

TEST_F(SessionTest, ANewStreamGetsEverythingAgain) {
  Begin();
  auto link = Link();
  ASSERT_TRUE(Send(link->link(), 0).ok());
  EXPECT_EQ(NextValue(), 0);
  dispatcher_.Break();
  control::ClientHello again = dispatcher_.Heard<control::ClientHello>(1);
  EXPECT_EQ(again.client, ClientId(3));
  EXPECT_EQ(again.incarnation, Incarnation(4));
  EXPECT_FALSE(again.state.has_value());
  dispatcher_.Say(Welcome());
  dispatcher_.Say(Membership());
  IndexSet reported;
  for (size_t i = 0; !reported.Contains(0) && i < 100; ++i) {
    for (const control::PartitionReport& report :
         dispatcher_.Heard<control::Report>(i).partitions) {
      reported.Add(report.delivered);
    }
  }
  EXPECT_TRUE(reported.Contains(0));
  ASSERT_TRUE(Send(link->link(), 1).ok());  // the links have stayed
  EXPECT_EQ(NextValue(), 1);
}

TEST_F(SessionTest, ARestoredSessionPresentsItsState) {
  Begin(IndicesByPartition{{kPartition, IndexSet::Of(0, 4)}});
  control::ClientHello hello = dispatcher_.Heard<control::ClientHello>();
  ASSERT_TRUE(hello.state.has_value());
  EXPECT_THAT(*hello.state, ElementsAre(control::PartitionIndices{kPartition, IndexSet::Of(0, 4)}));
  auto link = Link();
  ASSERT_TRUE(Send(link->link(), 3).ok());  // delivered already
  ASSERT_TRUE(Send(link->link(), 4).ok());
  EXPECT_EQ(NextValue(), 4);
}

TEST_F(SessionTest, WithoutALeaseNothingIsReturned) {
  dispatcher_.answer_heartbeats = false;
  Begin(std::nullopt, absl::ZeroDuration());
  auto link = Link();
  ASSERT_TRUE(Send(link->link(), 0).ok());
  ASSERT_TRUE(link->AwaitReceived(1));
  auto next = std::async(std::launch::async, [&] { return session_->Next(); });
  dispatcher_.Heard<control::ClientHeartbeat>(3);
  stop_.request_stop();
  EXPECT_EQ(next.get().status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(session_->delivered().empty());
}

// Nodes after Distribute hold the elements that they get.
class SessionBehindNodesTest : public SessionTest {
 protected:
  SessionBehindNodesTest() { delivers_later_ = true; }
  int64_t NodesPull() {
    const PendingDeliveries::Scope scope(&pending_);
    return NextValue();
  }
  bool NodesSeeTheEnd() {
    const PendingDeliveries::Scope scope(&pending_);
    const absl::StatusOr<std::optional<Element>> next = session_->Next();
    return next.ok() && !next->has_value();
  }

  PendingDeliveries pending_;
};

TEST_F(SessionBehindNodesTest, HeldElementsAreDeliveredOnceTheNodesGiveThem) {
  Begin();
  auto link = Link();
  for (Index i = 0; i < 3; ++i) ASSERT_TRUE(Send(link->link(), i).ok());
  for (Index i = 0; i < 3; ++i) EXPECT_EQ(NodesPull(), i);
  EXPECT_TRUE(session_->delivered().empty());
  EXPECT_TRUE(Reported(&control::PartitionReport::handed, IndexSet::Of(0, 3)));
  EXPECT_TRUE(pending_.Deliver().ok());
  EXPECT_EQ(session_->delivered().at(kPartition), IndexSet::Of(0, 3));
  EXPECT_TRUE(Reported(&control::PartitionReport::delivered, IndexSet::Of(0, 3)));
}

TEST_F(SessionBehindNodesTest, ALeavingSessionDoesNotClaimHeldElements) {
  Begin();
  auto link = Link();
  for (Index i = 0; i < 3; ++i) ASSERT_TRUE(Send(link->link(), i).ok());
  EXPECT_EQ(NodesPull(), 0);
  EXPECT_TRUE(pending_.Deliver().ok());
  for (Index i = 1; i < 3; ++i) EXPECT_EQ(NodesPull(), i);
  session_->Leave(absl::Milliseconds(1));
  EXPECT_THAT(dispatcher_.Heard<control::Leave>().delivered,
              ElementsAre(control::PartitionIndices{kPartition, IndexSet::Of(0, 1)}));
  EXPECT_TRUE(absl::IsCancelled(pending_.Deliver()));  // others get the elements
}

TEST_F(SessionBehindNodesTest, StaysUntilTheyHaveGivenAll) {
  Begin();
  auto link = Link();
  ASSERT_TRUE(Send(link->link(), 0).ok());
  EXPECT_EQ(NodesPull(), 0);
  dispatcher_.Say(control::End());
  EXPECT_TRUE(NodesSeeTheEnd());
  EXPECT_FALSE(session_->ended());
  EXPECT_TRUE(HeartbeatsGoOn());
  EXPECT_EQ(dispatcher_.Count<control::Leave>(), 0u);
  EXPECT_TRUE(pending_.Deliver().ok());
  EXPECT_THAT(dispatcher_.Heard<control::Leave>().delivered,
              ElementsAre(control::PartitionIndices{kPartition, IndexSet::Of(0, 1)}));
  EXPECT_TRUE(session_->AwaitEnd().ok());
  EXPECT_TRUE(session_->ended());
}

TEST_F(SessionBehindNodesTest, HeldElementsGoToOthersOnceTheSessionFails) {
  dispatcher_.answer_heartbeats = false;
  Begin();
  auto link = Link();
  ASSERT_TRUE(Send(link->link(), 0).ok());
  EXPECT_EQ(NodesPull(), 0);
  dispatcher_.Break();
  dispatcher_.Heard<control::ClientHello>(1);
  const size_t reports = dispatcher_.Count<control::Report>();
  dispatcher_.Say(Welcome(/*lease=*/absl::ZeroDuration()));
  dispatcher_.Heard<control::Report>(reports);  // after the welcome
  auto given = std::async(std::launch::async, [&] { return pending_.Deliver(); });
  dispatcher_.Say(control::SessionError{absl::FailedPreconditionError("declared dead")});
  EXPECT_EQ(given.get(), absl::FailedPreconditionError("declared dead"));
  EXPECT_TRUE(session_->delivered().empty());
}

TEST_F(SessionTest, AWallClockThatIsSetBackDoesNotStopTheHeartbeats) {
  Begin();
  auto link = Link();
  ASSERT_TRUE(HeartbeatsGoOn());
  const WallClockStep back(-absl::Hours(1));
  ASSERT_TRUE(HeartbeatsGoOn());
  link->link().Close(absl::UnavailableError("broken on purpose"));
  auto next = Link(1);
  ASSERT_TRUE(Send(next->link(), 0).ok());
  EXPECT_EQ(NextValue(), 0);
}

TEST_F(SessionTest, AWallClockThatIsSetForwardIsNoTimeThatWasWaited) {
  Begin(std::nullopt, absl::Hours(1), absl::Minutes(1), /*served=*/false);
  dispatcher_.Say(control::Membership{.version = 1});
  ASSERT_TRUE(HeartbeatsGoOn());
  const WallClockStep forward(absl::Hours(1));
  ASSERT_TRUE(HeartbeatsGoOn());
  dispatcher_.Say(Membership());
  ASSERT_TRUE(Send(Link()->link(), 0).ok());
  EXPECT_EQ(NextValue(), 0);
}

TEST_F(SessionTest, AChangeOfTheMembershipOpensALinkToTheNewWorker) {
  Begin();
  Link();
  control::Membership change = Membership(Placement(2));
  change.version = 2;
  change.since = 1;
  change.partitions[0].worker = change.workers[0].worker = WorkerId(10);
  dispatcher_.Say(change);
  ASSERT_TRUE(Send(Link(1)->link(), 0, Placement(2)).ok());
  EXPECT_EQ(NextValue(), 0);
}

TEST_F(SessionTest, AChangeOfAnotherMembershipEndsTheStreamAndTheNextBringsTheWhole) {
  Begin();
  auto link = Link();
  dispatcher_.Say(control::Membership{.version = 3, .since = 2});
  EXPECT_EQ(dispatcher_.Heard<control::ClientHello>(1).client, ClientId(3));
  dispatcher_.Say(Welcome());
  // The version before the break does not count.
  dispatcher_.Say(control::Membership{.version = 2, .since = 1});
  dispatcher_.Heard<control::ClientHello>(2);
  dispatcher_.Say(Welcome());
  dispatcher_.Say(Membership());
  ASSERT_TRUE(Send(link->link(), 0).ok());  // the link has stayed
  EXPECT_EQ(NextValue(), 0);
}

TEST_F(SessionTest, WithoutAnyWorkerTheCallSaysSoAfterTheTimeout) {
  Begin(std::nullopt, absl::Hours(1), kShortTimeout, false);
  dispatcher_.Say(control::Membership{.version = 1});
  for (int again = 0; again < 2; ++again) {
    absl::Status status = session_->Next().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("no worker has served"));
  }
  dispatcher_.Say(Membership());  // one came: reading goes on
  auto link = Link();
  ASSERT_TRUE(Send(link->link(), 0).ok());
  ASSERT_TRUE(link->AwaitReceived(1));
  EXPECT_EQ(NextValue(), 0);
}

// An evaluation between two steps would see it like this.
TEST_F(SessionTest, AWantOfWorkersThatIsOverBeforeTheNextCallIsNotReturned) {
  Begin(std::nullopt, absl::Hours(1), kShortTimeout, /*served=*/false);
  dispatcher_.Say(control::Membership{.version = 1});
  ASSERT_TRUE(HeartbeatsGoOnFor(kShortTimeout));
  dispatcher_.Say(Membership());
  auto link = Link();
  ASSERT_TRUE(Send(link->link(), 0).ok());
  EXPECT_EQ(NextValue(), 0);
  auto next = std::async(std::launch::async, [&] { return NextValue(); });
  ASSERT_TRUE(HeartbeatsGoOn());
  ASSERT_TRUE(Send(link->link(), 1).ok());
  EXPECT_EQ(next.get(), 1);
}

TEST_F(SessionTest, AWorkerThatIsWantedAgainIsWaitedForAsLongAsANewOne) {
  token_ = "not known there";
  Begin(std::nullopt, absl::Hours(1), kShortTimeout, /*served=*/false);
  dispatcher_.Say(Welcome());
  dispatcher_.Say(Membership());
  ASSERT_TRUE(HeartbeatsGoOn());
  control::Membership without = Membership();
  without.partitions[0].worker = WorkerId(10);  // nothing else is known of that worker
  dispatcher_.Say(without);
  ASSERT_TRUE(HeartbeatsGoOnFor(kShortTimeout));
  const absl::Time wanted = BootTime();
  dispatcher_.Say(Membership());
  const absl::Status status = session_->Next().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_GE(BootTime() - wanted, kShortTimeout);
}

TEST_F(SessionTest, WorkersThatStayOutOfReachAreAnErrorOnceInEachTimeout) {
  token_ = "not known there";
  Begin(std::nullopt, absl::Hours(1), kShortTimeout, /*served=*/false);
  control::Membership membership = Membership();
  membership.workers.push_back(membership.workers[0]);
  membership.workers[1].worker = WorkerId(10);
  membership.partitions.push_back({PartitionId(2), Placement(1), WorkerId(10)});
  const absl::Time wanted = BootTime();
  dispatcher_.Say(membership);
  for (int failures = 1; failures <= 2; ++failures) {
    const absl::Status status = session_->Next().status();
    EXPECT_GE(BootTime() - wanted, failures * kShortTimeout);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("was out of reach for 400ms"));
    EXPECT_TRUE(HeartbeatsGoOn());
  }
}

TEST_F(SessionTest, JoiningWithoutAnyWorkerIsAnErrorAfterTheTimeout) {
  Begin(std::nullopt, absl::Hours(1), kShortTimeout, false);
  dispatcher_.Say(
      control::Membership{.version = 1, .partitions = {{kPartition, Placement(3), WorkerId()}}});
  absl::Status status = session_->Next().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no worker has served"));
}

TEST_F(SessionTest, AClosedIterationNeedsNoWorker) {
  Begin(std::nullopt, absl::Hours(1), kShortTimeout, false);
  dispatcher_.Say(control::Membership{
      .version = 1, .partitions = {{kPartition, Placement(3), WorkerId()}}, .closed = true});
  auto next = std::async(std::launch::async, [&] { return session_->Next(); });
  dispatcher_.Heard<control::ClientHeartbeat>(100);  // longer than the timeout
  dispatcher_.Say(control::End());
  absl::StatusOr<std::optional<Element>> end = next.get();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_FALSE(end->has_value());
}

TEST_F(SessionTest, TheDispatchersRefusalIsFinal) {
  Begin();
  Link();
  dispatcher_.Say(control::SessionError{absl::FailedPreconditionError("declared dead")});
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(session_->Next().status(), absl::FailedPreconditionError("declared dead"));
  }
}

TEST_F(SessionTest, AProtocolThatAWorkerLacksIsAnErrorThatNamesBoth) {
  SessionOptions options;
  options.job.token = token_;
  options.transport_preference.protocol = "grpc";
  options.distribute.timeout = absl::Minutes(1);
  options.spec = Scalar(kInt64);
  options.client = ClientId(3);
  options.incarnation = Incarnation(4);
  options.stop = stop_.get_token();
  absl::StatusOr<std::unique_ptr<Session>> begun = Session::Begin(std::move(options), dispatcher_);
  ASSERT_TRUE(begun.ok()) << begun.status();
  session_ = *std::move(begun);
  dispatcher_.Heard<control::ClientHello>();
  dispatcher_.Say(Welcome());
  dispatcher_.Say(Membership());
  absl::Status status = session_->Next().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("Protocol 'grpc' is not available for worker 'w:1'"));
}

}  // namespace
}  // namespace penstock::client
