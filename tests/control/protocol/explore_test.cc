// SPDX-License-Identifier: Apache-2.0
// All interleavings of small scenes (docs/exactly_once.md, "What was explored"). Each line printed
// is a row of the table there. PENSTOCK_STATES=N visits at most N states of each scene.
#include "tests/control/protocol/explore.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/control/protocol/explore_scenes.h"

namespace penstock::protocol {
namespace {

// Expects no fault, in all states unless PENSTOCK_STATES limits their number.
Explored ExpectNoFault(const Scene& scene) {
  const char* enough = std::getenv("PENSTOCK_STATES");
  Explored explored = Explore(scene, enough ? std::atoll(enough) : kMostStates);
  EXPECT_EQ(explored.fault, "") << DescribePath(scene, explored.path);
  EXPECT_TRUE(explored.complete || enough);
  return explored;
}

TEST_P(Exploring, NothingIsLostDoubledOrStuck) {
  const Explored explored = ExpectNoFault(GetParam().scene);
  std::printf("%-40s %10lld states %11lld steps %6.1f s  %s\n", GetParam().name,
              static_cast<long long>(explored.states), static_cast<long long>(explored.steps),
              explored.seconds, explored.fault.empty() ? "ok" : explored.fault.c_str());
}

class ExploringAtLeastOnce : public testing::TestWithParam<Named> {};

TEST_P(ExploringAtLeastOnce, NothingIsLostOrStuck) {
  Scene scene = GetParam().scene;
  scene.at_least_once = true;
  ExpectNoFault(scene);
}

INSTANTIATE_TEST_SUITE_P(
    Unit, ExploringAtLeastOnce,
    testing::Values(
        Named{"WorkerStops", {.budget = {.worker_stops = 1}}},
        Named{"WorkerStopsClientDiesLinkBreaks",
              {.budget = {.worker_stops = 1, .client_deaths = 1, .broken_links = 1}}},
        Named{"ClientDiesDispatcherRestarts",
              {.budget = {.client_deaths = 1, .dispatcher_restarts = 1}}},
        Named{"BookmarksWorkerStopsClientDies",
              {.bookmarks = true, .budget = {.worker_stops = 1, .client_deaths = 1}}},
        Named{"StatesClientDiesWorkerStops",
              {.elements = 1, .states = true, .budget = {.worker_stops = 1, .client_deaths = 1}}},
        Named{"MovedClientJoinsClientLeaves",
              {.clients = 1, .budget = {.moves = 1, .client_joins = 1, .leaves = 1}}},
        Named{"Waits", {.workers = 1, .budget = {.waits = 1}}}),
    NameOf);

// Without failures only the order of steps varies.
constexpr Budget kNothing = {};

INSTANTIATE_TEST_SUITE_P(
    Unit, Exploring,
    testing::Values(
        Named{"NoFailure", {.elements = 4, .budget = kNothing}},
        Named{"WorkerStops", {.elements = 3, .budget = {.worker_stops = 1}}},
        Named{"TwoWorkersStop", {.elements = 3, .workers = 3, .budget = {.worker_stops = 2}}},
        Named{"ClientDies", {.elements = 3, .budget = {.client_deaths = 1}}},
        Named{"TwoOfThreeClientsDie", {.clients = 3, .budget = {.client_deaths = 2}}},
        Named{"LinkBreaks", {.elements = 3, .budget = {.broken_links = 1}}},
        Named{"LinksBreakTwice", {.budget = {.broken_links = 2}}},
        Named{"ForgetsAWorkerMoved",
              {.workers = 1, .budget = {.broken_links = 1, .forgets = 1, .moves = 1}}},
        Named{
            "ForgetsAWorkerMovedTwice",
            {.elements = 1, .workers = 1, .budget = {.broken_links = 2, .forgets = 2, .moves = 2}}},
        Named{"ForgetsOneOfTwoWorkers",
              {.elements = 1, .budget = {.broken_links = 1, .forgets = 1, .moves = 2}}},
        Named{"ForgetsAWorkerWaits",
              {.workers = 1, .budget = {.broken_links = 1, .forgets = 1, .waits = 1}}},
        Named{"DispatcherRestarts", {.budget = {.dispatcher_restarts = 1}}},
        Named{"WorkerStopsLinkBreaks", {.budget = {.worker_stops = 1, .broken_links = 1}}},
        Named{"ClientDiesLinkBreaks",
              {.elements = 3, .budget = {.client_deaths = 1, .broken_links = 1}}},
        Named{"WorkerStopsClientDies",
              {.elements = 3, .budget = {.worker_stops = 1, .client_deaths = 1}}},
        Named{"WorkerStopsClientDiesLinkBreaks",
              {.budget = {.worker_stops = 1, .client_deaths = 1, .broken_links = 1}}},
        Named{"WorkerStopsDispatcherRestarts",
              {.budget = {.worker_stops = 1, .dispatcher_restarts = 1}}},
        Named{"ClientDiesDispatcherRestarts",
              {.budget = {.client_deaths = 1, .dispatcher_restarts = 1}}},
        Named{"PlannedMoves", {.elements = 3, .budget = {.moves = 2}}},
        Named{"PlannedMoveClientDies", {.budget = {.client_deaths = 1, .moves = 1}}},
        Named{"ClientJoins", {.clients = 1, .budget = {.worker_stops = 1, .client_joins = 1}}},
        Named{"ClientJoinsClientDies", {.budget = {.client_deaths = 1, .client_joins = 1}}},
        Named{"WorkerJoins", {.workers = 1, .budget = {.worker_stops = 1, .worker_joins = 1}}},
        Named{"ClientLeaves", {.budget = {.worker_stops = 1, .leaves = 1}}},
        Named{"BookmarksWorkerStops",
              {.elements = 4, .bookmarks = true, .budget = {.worker_stops = 1}}},
        Named{"BookmarksClientDies",
              {.elements = 3, .bookmarks = true, .budget = {.client_deaths = 1}}},
        Named{"BookmarksWorkerStopsClientDies",
              {.bookmarks = true, .budget = {.worker_stops = 1, .client_deaths = 1}}},
        Named{"TwoPartitionsWorkerStops",
              {.elements = 1, .partitions = 2, .budget = {.worker_stops = 1}}},
        Named{"TwoPartitionsClientDies",
              {.elements = 1, .partitions = 2, .budget = {.client_deaths = 1}}},
        Named{"StatesClientDies", {.states = true, .budget = {.client_deaths = 1}}},
        Named{"StatesClientsDieTwice",
              {.elements = 1, .states = true, .budget = {.client_deaths = 2}}},
        Named{"StatesClientDiesWorkerStops",
              {.elements = 1, .states = true, .budget = {.worker_stops = 1, .client_deaths = 1}}},
        Named{"StatesClientDiesDispatcherRestarts",
              {.elements = 1,
               .states = true,
               .budget = {.client_deaths = 1, .dispatcher_restarts = 1}}},
        Named{"StatesBookmarksClientDies",
              {.states = true, .bookmarks = true, .budget = {.client_deaths = 1}}},
        Named{"StatesMovedTwice", {.elements = 1, .states = true, .budget = {.moves = 2}}},
        Named{"StatesMovedClientDies",
              {.elements = 1, .states = true, .budget = {.client_deaths = 1, .moves = 1}}},
        Named{"StatesWorkerJoinsAndIsMovedTo",
              {.workers = 1, .states = true, .budget = {.moves = 1, .worker_joins = 1}}},
        Named{"StatesBookmarksMoved", {.states = true, .bookmarks = true, .budget = {.moves = 1}}},
        Named{"StatesMovedDispatcherRestarts",
              {.elements = 1, .states = true, .budget = {.dispatcher_restarts = 1, .moves = 1}}},
        Named{"StatesClientLeaves", {.states = true, .budget = {.leaves = 1}}},
        Named{"StatesMovedClientLeaves",
              {.elements = 1, .states = true, .budget = {.moves = 1, .leaves = 1}}},
        Named{"MovedClientJoinsClientLeaves",
              {.clients = 1, .budget = {.moves = 1, .client_joins = 1, .leaves = 1}}},
        Named{"Waits", {.elements = 3, .workers = 1, .budget = {.waits = 1}}},
        Named{"WaitsWorkerStops", {.budget = {.worker_stops = 1, .waits = 1}}},
        Named{"WaitsClientDies", {.budget = {.client_deaths = 1, .waits = 1}}},
        Named{"WaitsLinkBreaks", {.budget = {.broken_links = 1, .waits = 1}}},
        Named{"WaitsDispatcherRestarts",
              {.workers = 1, .budget = {.dispatcher_restarts = 1, .waits = 1}}},
        Named{"WaitsClientLeaves", {.budget = {.leaves = 1, .waits = 1}}},
        Named{"WaitsOfTwoPartitions",
              {.elements = 1, .partitions = 2, .workers = 1, .budget = {.waits = 2}}},
        Named{"NodesHold", {.workers = 1, .behind = Scene::kSomeNodes}},
        Named{"NodesHoldClientDies",
              {.workers = 1, .behind = Scene::kSomeNodes, .budget = {.client_deaths = 1}}},
        Named{"NodesHoldClientLeaves",
              {.workers = 1, .behind = Scene::kSomeNodes, .budget = {.leaves = 1}}},
        Named{"NodesHoldWaits",
              {.workers = 1, .behind = Scene::kSomeNodes, .budget = {.waits = 1}}},
        Named{"NodesHoldUntilTheEnd", {.elements = 3, .behind = Scene::kUntilTheEnd}},
        Named{"NodesHoldUntilTheEndWorkerStops",
              {.behind = Scene::kUntilTheEnd, .budget = {.worker_stops = 1}}},
        Named{"NodesHoldUntilTheEndClientDies",
              {.behind = Scene::kUntilTheEnd, .budget = {.client_deaths = 1}}},
        Named{"NodesHoldUntilTheEndClientLeaves",
              {.behind = Scene::kUntilTheEnd, .budget = {.leaves = 1}}},
        Named{"NodesHoldUntilTheEndClientDiesClientJoins",
              {.elements = 1,
               .workers = 1,
               .behind = Scene::kUntilTheEnd,
               .budget = {.client_deaths = 1, .client_joins = 1}}},
        Named{"NodesHoldUntilTheEndDispatcherRestarts",
              {.workers = 1, .behind = Scene::kUntilTheEnd, .budget = {.dispatcher_restarts = 1}}},
        Named{"WaitsForAnIdleOne", {.elements = 3, .idle = true}},
        Named{"StatesWaitsForAnIdleOne", {.workers = 1, .states = true, .idle = true}},
        Named{"StatesClientDiesClientJoins",
              {.elements = 1,
               .workers = 1,
               .clients = 1,
               .states = true,
               .budget = {.client_deaths = 1, .client_joins = 1}}},
        Named{"TwoPartitionsMovedWorkerJoins",
              {.elements = 1,
               .partitions = 2,
               .workers = 1,
               .budget = {.moves = 2, .worker_joins = 1}}},
        Named{"OldCopy", {.workers = 1, .budget = {.old_copies = 1}}},
        Named{"OldCopyWorkerStops",
              {.elements = 1, .budget = {.worker_stops = 1, .old_copies = 1}}},
        Named{"OldCopyClientDies",
              {.elements = 1, .workers = 1, .budget = {.client_deaths = 1, .old_copies = 1}}},
        Named{"StatesOldCopy",
              {.elements = 1, .workers = 1, .states = true, .budget = {.old_copies = 1}}},
        Named{"EmptyStart",
              {.workers = 1, .clients = 1, .budget = {.client_joins = 1, .empty_starts = 1}}},
        Named{"EmptyStartBookmarksWorkerStops",
              {.clients = 1,
               .bookmarks = true,
               .budget = {.worker_stops = 1, .client_joins = 1, .empty_starts = 1}}}),
    NameOf);

// Two dispatchers are alive. One that has taken over the other's folder, or has a copy of it,
// sooner or later hears from the processes that are with the other. Scenes without an expected
// error lose and duplicate nothing in the end.
INSTANTIATE_TEST_SUITE_P(UnitTwo, Exploring,
                         testing::Values(Named{"TakenOver",
                                               {.workers = 1,
                                                .clients = 1,
                                                .beside = Beside::kTakenOver,
                                                .budget = {.second_lives = 1}}},
                                         Named{"TakenOverTwoWorkers",
                                               {.elements = 1,
                                                .clients = 1,
                                                .beside = Beside::kTakenOver,
                                                .budget = {.second_lives = 1}}},
                                         Named{"StatesTakenOver",
                                               {.elements = 1,
                                                .workers = 1,
                                                .clients = 1,
                                                .states = true,
                                                .beside = Beside::kTakenOver,
                                                .budget = {.second_lives = 1}}},
                                         Named{"BesideACopy",
                                               {.elements = 1,
                                                .clients = 1,
                                                .beside = Beside::kCopy,
                                                .budget = {.second_lives = 1}}},
                                         Named{"StatesBesideACopy",
                                               {.elements = 1,
                                                .workers = 1,
                                                .clients = 1,
                                                .states = true,
                                                .beside = Beside::kCopy,
                                                .budget = {.second_lives = 1}}}),
                         NameOf);

INSTANTIATE_TEST_SUITE_P(SlowTwo, Exploring,
                         testing::Values(Named{"TakenOverTwoClients",
                                               {.elements = 1,
                                                .workers = 1,
                                                .beside = Beside::kTakenOver,
                                                .budget = {.second_lives = 1}}},
                                         Named{"TakenOverOneReturns",
                                               {.elements = 1,
                                                .clients = 1,
                                                .beside = Beside::kTakenOver,
                                                .budget = {.second_lives = 1, .returns = 1}}},
                                         Named{"BesideACopyTwoClients",
                                               {.elements = 1,
                                                .workers = 1,
                                                .beside = Beside::kCopy,
                                                .budget = {.second_lives = 1}}},
                                         Named{"BesideACopyOneReturns",
                                               {.elements = 1,
                                                .clients = 1,
                                                .beside = Beside::kCopy,
                                                .budget = {.second_lives = 1, .returns = 1}}},
                                         Named{"BesideAnEmptyOne",
                                               {.elements = 1,
                                                .workers = 1,
                                                .clients = 1,
                                                .beside = Beside::kEmpty,
                                                .budget = {.client_joins = 1, .second_lives = 1}}}),
                         NameOf);

// Consumers of order kDeterministic, with room for one element of each partition.
INSTANTIATE_TEST_SUITE_P(
    UnitOrder, Exploring,
    testing::Values(
        Named{"OrderNoFailure", {.elements = 4, .states = true, .order_consumers = true}},
        Named{
            "OrderTwoPartitions",
            {.elements = 2, .lacks = 1, .partitions = 2, .states = true, .order_consumers = true}},
        Named{"OrderWorkerStops",
              {.elements = 3,
               .states = true,
               .order_consumers = true,
               .budget = {.worker_stops = 1}}},
        Named{"OrderConsumerDies",
              {.elements = 2,
               .states = true,
               .order_consumers = true,
               .budget = {.client_deaths = 1}}},
        Named{"OrderConsumerDiesWithoutAState",
              {.elements = 3, .order_consumers = true, .budget = {.client_deaths = 1}}},
        Named{
            "OrderOfThreeInTwoPartitions",
            {.elements = 2, .partitions = 2, .workers = 1, .clients = 3, .order_consumers = true}},
        Named{"OrderDispatcherRestarts",
              {.elements = 2, .order_consumers = true, .budget = {.dispatcher_restarts = 1}}},
        Named{"OrderLinkBreaks",
              {.elements = 3, .order_consumers = true, .budget = {.broken_links = 1}}},
        Named{"OrderConsumerLeaves",
              {.elements = 3, .order_consumers = true, .budget = {.leaves = 1}}},
        Named{"OrderConsumerLeavesWithAState",
              {.elements = 2, .states = true, .order_consumers = true, .budget = {.leaves = 1}}}),
    NameOf);

}  // namespace
}  // namespace penstock::protocol
