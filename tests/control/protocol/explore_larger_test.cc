// SPDX-License-Identifier: Apache-2.0
// Scenes of the tiers `slow` and `long`, and those that are only explored by hand.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/control/protocol/explore_scenes.h"

namespace penstock::protocol {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Slow, Exploring,
    testing::Values(
        Named{"StatesClientLeavesDispatcherRestarts",
              {.elements = 1, .states = true, .budget = {.dispatcher_restarts = 1, .leaves = 1}}},
        Named{"ClientDiesDispatcherRestartsLinkBreaks",
              {.budget = {.client_deaths = 1, .dispatcher_restarts = 1, .broken_links = 1}}},
        Named{"WorkersStopClientDiesLinkBreaks",
              {.elements = 3,
               .workers = 3,
               .budget = {.worker_stops = 2, .client_deaths = 1, .broken_links = 1}}},
        Named{"TwoPartitionsWorkerStopsClientDiesLinkBreaks",
              {.elements = 1,
               .partitions = 2,
               .budget = {.worker_stops = 1, .client_deaths = 1, .broken_links = 1}}},
        Named{"ForgetsAWorkerMovedDispatcherRestarts",
              {.elements = 1,
               .workers = 1,
               .budget = {.dispatcher_restarts = 1, .broken_links = 1, .forgets = 1, .moves = 1}}},
        Named{"StatesClientsDieTwiceWorkerStops",
              {.elements = 1, .states = true, .budget = {.worker_stops = 1, .client_deaths = 2}}},
        Named{"StatesWorkerJoinsMovedClientDies",
              {.elements = 1,
               .workers = 1,
               .states = true,
               .budget = {.client_deaths = 1, .moves = 1, .worker_joins = 1}}},
        Named{"StatesOfTwoMovedClientDies",
              {.states = true, .budget = {.client_deaths = 1, .moves = 1}}},
        Named{"StatesTwoPartitionsMoved",
              {.elements = 1, .partitions = 2, .states = true, .budget = {.moves = 2}}},
        Named{"PartialTwoPartitionsDispatcherRestarts",
              {.elements = 1,
               .partitions = 2,
               .workers = 1,
               .audiences = true,
               .report_all = 1,
               .budget = {.dispatcher_restarts = 1}}},
        Named{"PartialStatesClientDiesDispatcherRestarts",
              {.elements = 1,
               .workers = 1,
               .states = true,
               .audiences = true,
               .report_all = 1,
               .budget = {.client_deaths = 1, .dispatcher_restarts = 1}}},
        Named{"AudienceTakenOver",
              {.elements = 1,
               .workers = 1,
               .clients = 2,
               .audiences = true,
               .beside = Beside::kTakenOver,
               .budget = {.second_lives = 1}}}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(Long, Exploring,
                         testing::Values(Named{"OrderTwoPartitionsConsumerDies",
                                               {.elements = 1,
                                                .partitions = 2,
                                                .workers = 1,
                                                .states = true,
                                                .order_consumers = true,
                                                .budget = {.client_deaths = 1}}},
                                         Named{"StatesTwoPartitionsClientDies",
                                               {.elements = 1,
                                                .partitions = 2,
                                                .states = true,
                                                .budget = {.client_deaths = 1}}}),
                         NameOf);

// Run by hand: --gtest_also_run_disabled_tests --gtest_filter='Hand/*'.
class ExploringByHand : public Exploring {};
TEST_P(ExploringByHand, DISABLED_NothingIsLostDoubledOrStuck) {
  const Explored explored = Explore(GetParam().scene, 20 * kMostStates);
  std::printf("%-40s %10lld states %11lld steps %6.1f s  %s\n", GetParam().name,
              static_cast<long long>(explored.states), static_cast<long long>(explored.steps),
              explored.seconds, explored.fault.empty() ? "ok" : explored.fault.c_str());
  EXPECT_EQ(explored.fault, "") << DescribePath(GetParam().scene, explored.path);
  EXPECT_TRUE(explored.complete);
}
INSTANTIATE_TEST_SUITE_P(
    Hand, ExploringByHand,
    testing::Values(
        Named{"TwoPartitionsOfTwoWorkerStops", {.partitions = 2, .budget = {.worker_stops = 1}}},
        Named{"StatesClientDiesDispatcherRestartsOfTwo",
              {.states = true, .budget = {.client_deaths = 1, .dispatcher_restarts = 1}}},
        Named{"StatesBookmarksOfThreeClientDies",
              {.elements = 3,
               .workers = 1,
               .states = true,
               .bookmarks = true,
               .budget = {.client_deaths = 1}}},
        Named{"StatesTakenOverTwoClients",
              {.elements = 1,
               .workers = 1,
               .states = true,
               .beside = Beside::kTakenOver,
               .budget = {.second_lives = 1}}},
        Named{"BesideAnEmptyOneOneReturns",
              {.elements = 1,
               .workers = 1,
               .clients = 1,
               .beside = Beside::kEmpty,
               .budget = {.client_joins = 1, .second_lives = 1, .returns = 1}}}),
    NameOf);

}  // namespace
}  // namespace penstock::protocol
