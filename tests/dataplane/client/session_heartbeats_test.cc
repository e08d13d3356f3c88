// SPDX-License-Identifier: Apache-2.0
// Which links a session's heartbeats name.
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

}  // namespace
}  // namespace penstock::client
