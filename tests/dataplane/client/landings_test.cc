// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/landings.h"

#include <algorithm>
#include <deque>
#include <random>

#include "dataplane/client/window.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/stranger_limits.h"
#include "dataplane/transfer/ucx/wire.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using ::testing::IsEmpty;

constexpr PartitionId kLanding(1);
constexpr Placement kPlacement(1);

Identity Of(Index index, PartitionId partition = kLanding) {
  return {.partition = partition, .placement = kPlacement, .index = index};
}

void Land(Landings& landings, Index index, bool here = true) {
  landings.OnEvent();
  landings.OnLanded(Of(index), here);
}

IndexSet UntoldOf(const Landings& landings) {
  IndexSet all;
  for (const transfer::Holding& holding : landings.Untold()) all.Add(holding.indices);
  return all;
}

size_t HelloBytes(const Landings& landings) {
  transfer::Hello hello;
  hello.holdings = landings.Untold();
  return Encode(hello).size();
}

TEST(LandingsTest, TellsWhatLandedOnTheEarlierLink) {
  Landings landings;
  landings.OnDialled();
  landings.OnGranted(8);
  for (Index i : {4, 5, 9}) Land(landings, i);
  const std::vector<transfer::Holding> untold = landings.Untold();
  ASSERT_EQ(untold.size(), 1u);
  EXPECT_EQ(untold[0].partition, kLanding);
  EXPECT_EQ(untold[0].placement, kPlacement);
  EXPECT_EQ(untold[0].indices.ToString(), "[4,6) [9,10)");
}

TEST(LandingsTest, WhatIsNotHereIsNotTold) {
  Landings landings;
  landings.OnDialled();
  landings.OnGranted(8);
  Land(landings, 0);
  Land(landings, 1, /*here=*/false);
  Land(landings, 2);
  EXPECT_EQ(UntoldOf(landings).ToString(), "[0,1) [2,3)");
}

TEST(LandingsTest, AUsedCreditShowsThatTheWorkerKnowsWhatLandedBefore) {
  Landings landings;
  landings.OnDialled();
  landings.OnGranted(2);
  Land(landings, 0);
  Land(landings, 1);
  landings.OnGranted(2);  // element 1's event may not have returned
  EXPECT_EQ(UntoldOf(landings), IndexSet::Of(0, 2));
  Land(landings, 2);
  EXPECT_EQ(UntoldOf(landings), IndexSet::Of(1, 3));
}

TEST(LandingsTest, ACreditThatCameBackShowsItToo) {
  Landings landings;
  landings.OnDialled();
  landings.OnGranted(2);
  Land(landings, 0);
  landings.OnEvent();
  landings.OnGranted(2);
  landings.OnRecalled(3);
  EXPECT_THAT(landings.Untold(), IsEmpty());
}

TEST(LandingsTest, ALinkOnWhichNothingLandedForgetsNothing) {
  Landings landings;
  landings.OnDialled();
  landings.OnGranted(4);
  for (Index i = 0; i < 3; ++i) Land(landings, i);
  landings.OnDialled();
  landings.OnGranted(4);
  landings.OnRecalled(4);
  EXPECT_EQ(UntoldOf(landings), IndexSet::Of(0, 3));
  landings.OnDialled();
  landings.OnGranted(4);
  Land(landings, 7);
  EXPECT_EQ(UntoldOf(landings), IndexSet::Of(7, 8));
}

TEST(LandingsTest, AMillionElementsWithGapsMakeNoLongHello) {
  constexpr int64_t kWindow = 1000;
  Landings landings;
  landings.OnDialled();
  landings.OnGranted(kWindow);
  size_t longest = 0;
  for (int64_t i = 0; i < 1'000'000; ++i) {
    Land(landings, 2 * i);
    if (i % 100 == 99) landings.OnGranted(100);
    if (i % 10'000 == 9'999) longest = std::max(longest, HelloBytes(landings));
  }
  EXPECT_LE(longest, 16 * (kWindow + 100) + 200);
}

// A longer one is refused, each time that the link is dialled again.
TEST(LandingsTest, AllThatOneWorkerMayBeAskedForFitsIntoAHello) {
  Landings landings;
  landings.OnDialled();
  landings.OnGranted(Window::kMostAskedOfOne);
  for (int64_t i = 0; i < Window::kMostAskedOfOne; ++i) {
    landings.OnEvent();
    landings.OnLanded(Of(2 * i, PartitionId(static_cast<uint64_t>(i) + 1)), true);
  }
  EXPECT_LE(HelloBytes(landings), transfer::kMaxHelloBytes);
  EXPECT_LE(HelloBytes(landings), transfer::ucx::kMaxGreetingBytes);
}

// A worker and a client that talk in messages, and a link that breaks at any
// moment: whatever the worker holds for unconfirmed and the client has, must be
// in what is told.
TEST(LandingsTest, WhateverTheWorkerIsInDoubtOfAndIsHereIsTold) {
  struct Update {
    int64_t landed = 0;
    int64_t granted = 0;
    bool recall = false;
  };
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    auto one_in = [&](uint64_t n) { return random() % n == 0; };
    Landings landings;
    IndexSet has;
    Index next = 0;
    int64_t most = 0;  // outstanding at a time, on any of the links
    for (int link = 0; link < 4; ++link) {
      landings.OnDialled();
      std::deque<Update> to_worker;
      std::deque<Index> to_client;  // below 0: that many credits came back
      std::deque<Index> unconfirmed;
      int64_t credits = 0;
      int64_t outstanding = 0;
      int64_t landed = 0;  // in the event that runs, or not reported yet
      for (int step = 0; step < 400; ++step) {
        switch (random() % 5) {
          case 0: {  // one event: one to four elements
            landings.OnEvent();
            to_worker.push_back({.landed = std::exchange(landed, 0)});
            for (int i = 0; i < 4 && !to_client.empty() && to_client.front() >= 0; ++i) {
              const Index index = to_client.front();
              to_client.pop_front();
              const bool here = !one_in(10);
              if (here) has.Add(index);
              landings.OnLanded(Of(index, PartitionId(1 + index % 2)), here);
              ++landed;
              --outstanding;
            }
            if (to_client.empty() || to_client.front() >= 0) break;
            landings.OnRecalled(-to_client.front());
            outstanding += to_client.front();
            to_client.pop_front();
            break;
          }
          case 1: {
            const int64_t count = 1 + static_cast<int64_t>(random() % 8);
            if (outstanding + count > 40) break;
            outstanding += count;
            most = std::max(most, outstanding);
            landings.OnGranted(count);
            to_worker.push_back({.granted = count});
            break;
          }
          case 2:
            if (one_in(8)) to_worker.push_back({.recall = true});
            break;
          case 3:
            if (to_worker.empty()) break;
            for (int64_t i = 0; i < to_worker.front().landed; ++i) unconfirmed.pop_front();
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
        const IndexSet untold = UntoldOf(landings);
        if (!one_in(4)) continue;
        for (Index index : unconfirmed) {
          ASSERT_EQ(untold.Contains(index), has.Contains(index)) << "seed " << seed;
        }
        ASSERT_LE(untold.size(), most + 4) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace penstock::client
