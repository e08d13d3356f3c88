// SPDX-License-Identifier: Apache-2.0
// Every order of events of a small coordinated read: no round is torn, and every waiting consumer
// gets to the end, which all reach at the same step.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <unordered_set>

#include "gtest/gtest.h"
#include "tests/control/protocol/rounds_world.h"

namespace penstock::protocol {
namespace {

struct RoundsExplored {
  std::string fault;
  std::vector<RoundsStep> path;
  size_t states = 0;
  bool complete = false;
};

RoundsExplored Explore(const RoundsScene& scene, size_t most = 3'000'000) {
  struct Frame {
    RoundsWorld world;
    std::vector<RoundsStep> steps;
    size_t next = 0;
  };
  RoundsExplored explored;
  std::unordered_set<size_t> visited;
  std::vector<Frame> stack;
  const std::hash<std::string> hash;
  const auto enter = [&](RoundsWorld world) {
    std::vector<RoundsStep> steps = world.Next();
    explored.fault = world.fault();
    bool normal = false;
    for (const RoundsStep& step : steps) normal |= !step.failure();
    if (explored.fault.empty() && !normal && !world.Done() && !world.WaitsForStates())
      explored.fault = "stuck";
    stack.push_back({std::move(world), std::move(steps), 0});
  };
  RoundsWorld first(scene);
  visited.insert(hash(first.Describe()));
  enter(std::move(first));
  while (!stack.empty() && explored.fault.empty() && visited.size() < most) {
    Frame& frame = stack.back();
    if (frame.next == frame.steps.size()) {
      stack.pop_back();
      continue;
    }
    RoundsWorld next = frame.world;
    next.Take(frame.steps[frame.next++]);
    if (visited.insert(hash(next.Describe())).second) enter(std::move(next));
  }
  for (const Frame& frame : stack)
    if (frame.next > 0) explored.path.push_back(frame.steps[frame.next - 1]);
  explored.complete = stack.empty();
  explored.states = visited.size();
  return explored;
}

std::string DescribePath(const RoundsScene& scene, const RoundsExplored& explored) {
  std::string text = explored.fault + "\n";
  RoundsWorld world(scene);
  for (const RoundsStep& step : explored.path) {
    world.Take(step);
    text += ToString(step) + "\n";
  }
  return text + world.Describe();
}

void Holds(const RoundsScene& scene) {
  const RoundsExplored explored = Explore(scene);
  EXPECT_EQ(explored.fault, "") << DescribePath(scene, explored);
  EXPECT_TRUE(explored.complete || !explored.fault.empty()) << explored.states << " states";
  std::printf("[  states  ] %zu\n", explored.states);
}

// Takes random steps from `seed`. Failures are as frequent as other steps or, for every other seed,
// rare, so that they also happen in the middle of a reading.
RoundsExplored Walk(const RoundsScene& scene, uint64_t seed) {
  RoundsExplored explored;
  std::mt19937_64 random(seed);
  RoundsWorld world(scene);
  while (world.fault().empty() && explored.path.size() < 10'000) {
    std::vector<RoundsStep> steps = world.Next();
    if (steps.empty()) break;
    const auto failures = std::stable_partition(
        steps.begin(), steps.end(), [](const RoundsStep& step) { return !step.failure(); });
    if (seed % 2 == 1 && failures != steps.begin() && random() % 16 > 0) {
      steps.erase(failures, steps.end());
    }
    explored.path.push_back(steps[random() % steps.size()]);
    world.Take(explored.path.back());
  }
  explored.fault = world.fault();
  if (explored.fault.empty() && !world.Done() && !world.WaitsForStates()) explored.fault = "stuck";
  return explored;
}

// More of them by hand: PENSTOCK_WALKS=100000 protocol_rounds_test --gtest_filter=RoundsWalks.*
void WalksHold(const RoundsScene& scene) {
  const char* asked = std::getenv("PENSTOCK_WALKS");
  const uint64_t walks = asked ? std::strtoull(asked, nullptr, 10) : 3000;
  for (uint64_t seed = 0; seed < walks; ++seed) {
    const RoundsExplored explored = Walk(scene, seed);
    ASSERT_EQ(explored.fault, "") << "seed " << seed << "\n" << DescribePath(scene, explored);
  }
}

bool WalksNotice(RoundsScene scene, Broken broken) {
  scene.broken = broken;
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    if (!Walk(scene, seed).fault.empty()) return true;
  }
  return false;
}

TEST(RoundsWalks, WithoutFailures) {
  WalksHold({.ends = {2, 2}});
  WalksHold({.ends = {9, 4}});
  WalksHold({.ends = {7, 8, 5}, .consumers = 3});
  WalksHold({.ends = {1, 1, 1}});
  WalksHold({.ends = {0, 3}});
}
// Partition 2 joins, and none of it is received until 5 rounds were delivered.
TEST(RoundsWalks, ALatePartitionIsSkipped) {
  const RoundsScene scene{.ends = {16, 6}};
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    RoundsWorld world(scene);
    int received = 0;
    while (!world.Done()) {
      std::vector<RoundsStep> steps = world.Next();
      std::erase_if(steps, [&](const RoundsStep& step) {
        const bool late = received >= 2 && world.delivered(0) < 5;
        return step.kind == RoundsStep::Kind::kReceive && step.b == 1 && late;
      });
      ASSERT_FALSE(steps.empty()) << world.Describe();
      const RoundsStep step = steps[random() % steps.size()];
      received += step.kind == RoundsStep::Kind::kReceive && step.b == 1 ? 1 : 0;
      world.Take(step);
      ASSERT_EQ(world.fault(), "");
    }
  }
}
TEST(RoundsWalks, RemaindersByPolicy) {
  for (const RemainderPolicy policy :
       {RemainderPolicy::kPad, RemainderPolicy::kDrop, RemainderPolicy::kError}) {
    WalksHold({.ends = {11, 11}, .consumers = 4, .remainder_policy = policy});
    WalksHold({.ends = {3, 2, 4}, .consumers = 4, .remainder_policy = policy});
  }
}
TEST(RoundsWalks, WorkersDie) {
  WalksHold({.ends = {9, 4}, .worker_deaths = 3});
  WalksHold({.ends = {11, 11}, .consumers = 4, .worker_deaths = 4});
  WalksHold({.ends = {11, 11},
             .consumers = 4,
             .remainder_policy = RemainderPolicy::kDrop,
             .worker_deaths = 4});
}
TEST(RoundsWalks, TheDispatcherRestarts) {
  WalksHold({.ends = {9, 4}, .dispatcher_restarts = 3});
  WalksHold({.ends = {9, 4}, .dispatcher_restarts = 1, .broken_streams = 4});
  WalksHold({.ends = {12, 5}, .consumers = 3, .worker_deaths = 2, .dispatcher_restarts = 2});
}
TEST(RoundsWalks, ConsumersGoBack) {
  WalksHold({.ends = {2, 2}, .consumer_deaths = 1, .receive_budget = 1, .state_every = 1});
  WalksHold({.ends = {9, 4}, .consumer_deaths = 2, .state_every = 2});
  WalksHold({.ends = {9, 4},
             .worker_deaths = 1,
             .dispatcher_restarts = 1,
             .consumer_deaths = 2,
             .state_every = 1});
}
// Rounds that were delivered but not committed go to nobody else: the consumers go on from there.
TEST(RoundsWalks, LeasesRunOut) {
  WalksHold({.ends = {9, 4}, .consumer_deaths = 2, .leases_run_out = 2, .state_every = 2});
  WalksHold({.ends = {9, 4},
             .worker_deaths = 1,
             .dispatcher_restarts = 1,
             .consumer_deaths = 2,
             .leases_run_out = 2,
             .receive_budget = 3,
             .state_every = 1});
  WalksHold({.ends = {7, 8, 5},
             .consumers = 3,
             .consumer_deaths = 3,
             .leases_run_out = 3,
             .state_every = 3});
}
TEST(RoundsWalks, WithSmallReceiveBudgets) {
  for (const int64_t receive_budget : {1, 2, 3, 5}) {
    WalksHold({.ends = {9, 4}, .receive_budget = receive_budget});
    WalksHold({.ends = {7, 8, 0, 1, 5}, .consumers = 3, .receive_budget = receive_budget});
    WalksHold({.ends = {9, 4, 4}, .late = 2, .receive_budget = receive_budget});
    WalksHold({.ends = {9, 4},
               .worker_deaths = 2,
               .dispatcher_restarts = 1,
               .receive_budget = receive_budget});
    WalksHold(
        {.ends = {9, 4}, .consumer_deaths = 2, .receive_budget = receive_budget, .state_every = 2});
  }
}
TEST(RoundsWalks, AllAtOnce) {
  WalksHold({.ends = {9, 4, 5},
             .late = 1,
             .worker_deaths = 2,
             .dispatcher_restarts = 1,
             .consumer_deaths = 1,
             .broken_streams = 1,
             .state_every = 1});
}
TEST(RoundsWalks, BrokenRulesAreNoticed) {
  EXPECT_TRUE(WalksNotice({.ends = {4, 4}}, Broken::kAgreeOnSome));
  EXPECT_TRUE(WalksNotice({.ends = {8, 8}, .dispatcher_restarts = 2}, Broken::kAgreeBeforeReports));
  EXPECT_TRUE(WalksNotice({.ends = {8, 8}, .dispatcher_restarts = 2}, Broken::kReschedulePast));
}
TEST(RoundsExplore, OnePartition) {
  Holds({.ends = {2}});
  Holds({.ends = {3}});
  Holds({.ends = {4}});
}
TEST(RoundsExplore, OnePartitionWithFailures) {
  Holds({.ends = {2}, .worker_deaths = 1});
  Holds({.ends = {2}, .dispatcher_restarts = 1});
}
TEST(RoundsExplore, TwoPartitions) {
  Holds({.ends = {2, 2}, .receive_budget = 1});
  Holds({.ends = {2, 2}, .late = 1, .receive_budget = 1});
  Holds({.ends = {2, 2}, .receive_budget = 2});
}
TEST(RoundsExplore, TwoPartitionsAndAWorkerThatDies) {
  Holds({.ends = {2, 2}, .worker_deaths = 1, .receive_budget = 1});
}
// Takes half a minute, so it is in the slow tier.
TEST(SlowRoundsExplore, TwoPartitionsAndARestart) {
  Holds({.ends = {2, 2}, .dispatcher_restarts = 1, .receive_budget = 1});
}
TEST(SlowRoundsExplore, TwoPartitionsAndASkip) {
  Holds({.ends = {4, 2}, .receive_budget = 3});
}

}  // namespace
}  // namespace penstock::protocol
