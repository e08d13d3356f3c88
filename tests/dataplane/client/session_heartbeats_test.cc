// SPDX-License-Identifier: Apache-2.0
// Which links a session's heartbeats name, and when a session forgets a worker.
#include <cstddef>
#include <map>
#include <thread>

#include "gtest/gtest.h"
#include "tests/dataplane/client/session_fixture.h"
#include "tests/eventually.h"

namespace penstock::client {
namespace {

class SessionHeartbeatsTest : public SessionTest {
 protected:
  // Takes all heartbeats that have come since the last call, as the dispatcher does.
  void TakeHeartbeats() {
    for (; taken_ < dispatcher_.Count<control::ClientHeartbeat>(); ++taken_) {
      last_ = dispatcher_.Heard<control::ClientHeartbeat>(taken_);
      if (!last_.only_changed_links) {
        links_.clear();
        ++whole_;
      }
      for (const WorkerId gone : last_.gone_links) links_.erase(gone);
      for (const control::LinkCounts& link : last_.links) {
        links_[link.worker] = link;
        was_down_ |= link.down;
      }
    }
  }
  // Waits until the heartbeats make `condition` true.
  template <class Condition>
  bool Comes(Condition condition) {
    return Eventually([&] {
      TakeHeartbeats();
      return taken_ > 0 && condition();
    });
  }

  // Says that the partition waits for a worker under placement 2.
  void SayCollecting() {
    dispatcher_.Say(control::Membership{
        .version = 2, .partitions = {{kPartition, Placement(2), WorkerId()}}, .workers = {}});
  }
  // Breaks the link, and waits until the session has had the time to forget the worker.
  void BreakLink(transfer::WorkerEnd& link) {
    link.link().Close(absl::UnavailableError("broken on purpose"));
    EXPECT_TRUE(HeartbeatsGoOn());
  }

  size_t taken_ = 0;
  size_t whole_ = 0;               // heartbeats that named all links
  bool was_down_ = false;          // some link, in some heartbeat
  control::ClientHeartbeat last_;  // the last one taken
  std::map<WorkerId, control::LinkCounts> links_;
};

TEST_F(SessionHeartbeatsTest, NameALinkOnlyAfterAChange) {
  Begin();
  const auto link = Link();
  EXPECT_TRUE(Comes([&] { return links_[kWorker].open && links_[kWorker].credits > 0; }));
  EXPECT_TRUE(Comes([&] { return last_.links.empty(); })) << "nothing happens any more";
  ASSERT_TRUE(Send(link->link(), 0).ok());
  EXPECT_EQ(NextValue(), 0);
  EXPECT_TRUE(Comes([&] { return links_[kWorker].elements == 1; }));
  EXPECT_TRUE(Comes([&] { return last_.links.empty(); }));
  EXPECT_EQ(whole_, 1u);
  EXPECT_TRUE(links_[kWorker].open);
}

TEST_F(SessionHeartbeatsTest, NameAllLinksOnANewStream) {
  Begin();
  const auto link = Link();
  ASSERT_TRUE(Send(link->link(), 0).ok());
  EXPECT_EQ(NextValue(), 0);
  EXPECT_TRUE(Comes([&] { return links_[kWorker].elements == 1 && last_.links.empty(); }));
  dispatcher_.Break();
  dispatcher_.Heard<control::ClientHello>(1);
  dispatcher_.Say(Welcome());
  dispatcher_.Say(Membership());
  EXPECT_TRUE(Comes([&] { return whole_ == 2; }));
  EXPECT_EQ(links_[kWorker].elements, 1);
  EXPECT_TRUE(Comes([&] { return last_.links.empty(); }));
  EXPECT_EQ(whole_, 2u);
}

TEST_F(SessionHeartbeatsTest, NameAllLinksToADispatcherOfAnEarlierVersion) {
  version_ = control::kFirstWithChangedLinks - 1;
  Begin();
  Link();
  EXPECT_TRUE(Comes([&] { return whole_ > 3 && links_[kWorker].open; }));
  EXPECT_EQ(whole_, taken_);
}

// Each pause before the next dial is twice as long, and longer than between two heartbeats.
TEST_F(SessionHeartbeatsTest, NameALinkThatBreaksAndOneThatOpensAgain) {
  Begin();
  for (size_t i = 0; i < 6; ++i) {
    Link(i)->link().Close(absl::UnavailableError("broken on purpose"));
    TakeHeartbeats();
  }
  Link(6);
  EXPECT_TRUE(Comes([&] { return links_[kWorker].open; }));
  EXPECT_TRUE(was_down_);
  EXPECT_FALSE(links_[kWorker].down);
  EXPECT_EQ(whole_, 1u);
}

TEST_F(SessionHeartbeatsTest, AmountToTheWhole) {
  Begin();
  const auto link = Link();
  std::thread next([&] { EXPECT_EQ(NextValue(), 0); });
  ASSERT_TRUE(Send(link->link(), 0).ok());
  next.join();
  EXPECT_TRUE(HeartbeatsGoOn()) << "earlier ones may not know yet that Next() waited";
  EXPECT_TRUE(Comes([&] { return links_[kWorker].elements == 1 && last_.links.empty(); }));
  const int64_t waits = links_[kWorker].waits;
  dispatcher_.Break();
  dispatcher_.Heard<control::ClientHello>(1);
  dispatcher_.Say(Welcome());
  EXPECT_TRUE(Comes([&] { return whole_ == 2; }));
  EXPECT_EQ(links_[kWorker].waits, waits);
}

// One worker may be killed and started again and again.
TEST_F(SessionHeartbeatsTest, ForgetWorkersThatAreGone) {
  Begin();
  Link();
  for (uint64_t life = 100; life < 1100; ++life) {
    control::Membership membership = Membership();
    membership.partitions[0].worker = membership.workers[0].worker = WorkerId(life);
    dispatcher_.Say(membership);
  }
  EXPECT_TRUE(Comes([&] { return links_.contains(WorkerId(1099)); }));
  EXPECT_TRUE(Comes([&] { return links_.size() <= 2; }));
  EXPECT_TRUE(links_.contains(WorkerId(1099)));
}

// The dispatcher assigns the partition to its worker again. The worker hears of this first, and
// sends an element. It would send this element to another reader too, if the next link did not
// report it (docs/exactly_once.md, rule 5).
TEST_F(SessionHeartbeatsTest, AWorkerThatSeemsToHaveNoPartitionIsToldWhatWasReceived) {
  Begin();
  const auto link = Link();
  dispatcher_.Say(control::Fence{kPartition, Placement(2)});
  dispatcher_.Heard<control::FenceAnswer>();
  SayCollecting();
  ASSERT_TRUE(Send(link->link(), 0, Placement(2)).ok());
  EXPECT_EQ(NextValue(), 0);
  BreakLink(*link);

  dispatcher_.Say(Membership(Placement(2)));
  const std::vector<transfer::Holding> holdings = Link(1)->link().hello().holdings;
  ASSERT_EQ(holdings.size(), 1u);
  EXPECT_EQ(holdings[0].partition, kPartition);
  EXPECT_EQ(holdings[0].placement, Placement(2));
  EXPECT_EQ(holdings[0].indices, IndexSet::Of(0, 1));
}

TEST_F(SessionHeartbeatsTest, ForgetAWorkerOnceItsPartitionIsAssignedAgain) {
  Begin();
  const auto link = Link();
  ASSERT_TRUE(Send(link->link(), 0).ok());
  EXPECT_EQ(NextValue(), 0);
  SayCollecting();
  BreakLink(*link);
  TakeHeartbeats();
  EXPECT_TRUE(links_.contains(kWorker)) << "the worker may not know yet that it lost the partition";

  control::Membership membership = Membership(Placement(2));
  membership.partitions[0].worker = membership.workers[0].worker = WorkerId(100);
  dispatcher_.Say(membership);
  EXPECT_TRUE(Comes([&] { return !links_.contains(kWorker) && links_.contains(WorkerId(100)); }));
}

}  // namespace
}  // namespace penstock::client
