// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session_state/unacked_receives.h"

#include <algorithm>
#include <deque>
#include <random>

#include "dataplane/client/session_state/credit_manager.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/ucx/wire.h"
#include "dataplane/transfer/unauthenticated_limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using ::testing::IsEmpty;

constexpr PartitionId kPartition(1);
constexpr Placement kPlacement(1);

Identity Of(Index index, PartitionId partition = kPartition) {
  return {.partition = partition, .placement = kPlacement, .index = index};
}

void Receive(UnackedReceives& unacked_receives, Index index, bool here = true) {
  unacked_receives.OnEvent();
  unacked_receives.OnReceived(Of(index), here);
}

IndexSet UnreportedIn(const UnackedReceives& unacked_receives) {
  IndexSet all;
  for (const transfer::Holding& holding : unacked_receives.Unreported()) all.Add(holding.indices);
  return all;
}

size_t HelloBytes(const UnackedReceives& unacked_receives) {
  transfer::Hello hello;
  hello.holdings = unacked_receives.Unreported();
  return Encode(hello).size();
}

TEST(UnackedReceivesTest, ReportsReceivesOfTheEarlierLink) {
  UnackedReceives unacked_receives;
  unacked_receives.OnDialled();
  unacked_receives.OnGranted(8);
  for (Index i : {4, 5, 9}) Receive(unacked_receives, i);
  const std::vector<transfer::Holding> unreported = unacked_receives.Unreported();
  ASSERT_EQ(unreported.size(), 1u);
  EXPECT_EQ(unreported[0].partition, kPartition);
  EXPECT_EQ(unreported[0].placement, kPlacement);
  EXPECT_EQ(unreported[0].indices.ToString(), "[4,6) [9,10)");
}

TEST(UnackedReceivesTest, DroppedElementsAreNotReported) {
  UnackedReceives unacked_receives;
  unacked_receives.OnDialled();
  unacked_receives.OnGranted(8);
  Receive(unacked_receives, 0);
  Receive(unacked_receives, 1, /*here=*/false);
  Receive(unacked_receives, 2);
  EXPECT_EQ(UnreportedIn(unacked_receives).ToString(), "[0,1) [2,3)");
}

TEST(UnackedReceivesTest, AUsedCreditConfirmsEarlierReceives) {
  UnackedReceives unacked_receives;
  unacked_receives.OnDialled();
  unacked_receives.OnGranted(2);
  Receive(unacked_receives, 0);
  Receive(unacked_receives, 1);
  unacked_receives.OnGranted(2);  // element 1's event may not have returned
  EXPECT_EQ(UnreportedIn(unacked_receives), IndexSet::Of(0, 2));
  Receive(unacked_receives, 2);
  EXPECT_EQ(UnreportedIn(unacked_receives), IndexSet::Of(1, 3));
}

TEST(UnackedReceivesTest, ACreditThatCameBackShowsItToo) {
  UnackedReceives unacked_receives;
  unacked_receives.OnDialled();
  unacked_receives.OnGranted(2);
  Receive(unacked_receives, 0);
  unacked_receives.OnEvent();
  unacked_receives.OnGranted(2);
  unacked_receives.OnRecalled(3);
  EXPECT_THAT(unacked_receives.Unreported(), IsEmpty());
}

TEST(UnackedReceivesTest, ALinkOnWhichNothingWasReceivedForgetsNothing) {
  UnackedReceives unacked_receives;
  unacked_receives.OnDialled();
  unacked_receives.OnGranted(4);
  for (Index i = 0; i < 3; ++i) Receive(unacked_receives, i);
  unacked_receives.OnDialled();
  unacked_receives.OnGranted(4);
  unacked_receives.OnRecalled(4);
  EXPECT_EQ(UnreportedIn(unacked_receives), IndexSet::Of(0, 3));
  unacked_receives.OnDialled();
  unacked_receives.OnGranted(4);
  Receive(unacked_receives, 7);
  EXPECT_EQ(UnreportedIn(unacked_receives), IndexSet::Of(7, 8));
}

TEST(UnackedReceivesTest, AMillionElementsWithGapsMakeNoLongHello) {
  constexpr int64_t kWindow = 1000;
  UnackedReceives unacked_receives;
  unacked_receives.OnDialled();
  unacked_receives.OnGranted(kWindow);
  size_t longest = 0;
  for (int64_t i = 0; i < 1'000'000; ++i) {
    Receive(unacked_receives, 2 * i);
    if (i % 100 == 99) unacked_receives.OnGranted(100);
    if (i % 10'000 == 9'999) longest = std::max(longest, HelloBytes(unacked_receives));
  }
  EXPECT_LE(longest, 16 * (kWindow + 100) + 200);
}

// A longer hello would be refused, each time that the link is dialled again.
TEST(UnackedReceivesTest, TheLargestReportFitsIntoAHello) {
  UnackedReceives unacked_receives;
  unacked_receives.OnDialled();
  unacked_receives.OnGranted(CreditManager::kMostAskedOfOne);
  for (int64_t i = 0; i < CreditManager::kMostAskedOfOne; ++i) {
    unacked_receives.OnEvent();
    unacked_receives.OnReceived(Of(2 * i, PartitionId(static_cast<uint64_t>(i) + 1)), true);
  }
  EXPECT_LE(HelloBytes(unacked_receives), transfer::kMaxHelloBytes);
  EXPECT_LE(HelloBytes(unacked_receives), transfer::ucx::kMaxGreetingBytes);
}

// A worker and a client exchange messages over a link that breaks at any moment. Whatever the
// worker has unconfirmed and the client has received must be reported.
TEST(UnackedReceivesTest, EachUnconfirmedElementThatIsHereIsReported) {
  struct Update {
    int64_t received = 0;
    int64_t granted = 0;
    bool recall = false;
  };
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    auto one_in = [&](uint64_t n) { return random() % n == 0; };
    UnackedReceives unacked_receives;
    IndexSet has;
    Index next = 0;
    int64_t most = 0;  // outstanding at a time, on any link
    for (int link = 0; link < 4; ++link) {
      unacked_receives.OnDialled();
      std::deque<Update> to_worker;
      std::deque<Index> to_client;  // a negative value returns that many credits
      std::deque<Index> unconfirmed;
      int64_t credits = 0;
      int64_t outstanding = 0;
      int64_t received = 0;  // in the current event, or not reported yet
      for (int step = 0; step < 400; ++step) {
        switch (random() % 5) {
          case 0: {  // one event: one to four elements
            unacked_receives.OnEvent();
            to_worker.push_back({.received = std::exchange(received, 0)});
            for (int i = 0; i < 4 && !to_client.empty() && to_client.front() >= 0; ++i) {
              const Index index = to_client.front();
              to_client.pop_front();
              const bool here = !one_in(10);
              if (here) has.Add(index);
              unacked_receives.OnReceived(Of(index, PartitionId(1 + index % 2)), here);
              ++received;
              --outstanding;
            }
            if (to_client.empty() || to_client.front() >= 0) break;
            unacked_receives.OnRecalled(-to_client.front());
            outstanding += to_client.front();
            to_client.pop_front();
            break;
          }
          case 1: {
            const int64_t count = 1 + static_cast<int64_t>(random() % 8);
            if (outstanding + count > 40) break;
            outstanding += count;
            most = std::max(most, outstanding);
            unacked_receives.OnGranted(count);
            to_worker.push_back({.granted = count});
            break;
          }
          case 2:
            if (one_in(8)) to_worker.push_back({.recall = true});
            break;
          case 3:
            if (to_worker.empty()) break;
            for (int64_t i = 0; i < to_worker.front().received; ++i) unconfirmed.pop_front();
            credits += to_worker.front().granted;
            if (to_worker.front().recall && credits > 0) {
              to_client.push_back(-std::exchange(credits, 0));
            }
            to_worker.pop_front();
            break;
          case 4:
            if (credits == 0) break;
            --credits;
            next += one_in(3) ? 2 : 1;
            to_client.push_back(next);
            unconfirmed.push_back(next);
            break;
        }
        const IndexSet unreported = UnreportedIn(unacked_receives);
        if (!one_in(4)) continue;
        for (Index index : unconfirmed) {
          ASSERT_EQ(unreported.Contains(index), has.Contains(index)) << "seed " << seed;
        }
        ASSERT_LE(unreported.size(), most + 4) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace penstock::client
