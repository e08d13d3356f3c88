// SPDX-License-Identifier: Apache-2.0
// Each rule, broken once: the exploration notices it.
#include <gtest/gtest.h>

#include <ostream>

#include "tests/control/protocol/explore_scenes.h"

namespace penstock::protocol {
namespace {

struct Mutation {
  const char* name;
  Broken broken;
  Scene scene;
  const char* fault;  // that must be found
};

void PrintTo(const Mutation& mutation, std::ostream* out) {
  *out << mutation.name;
}

class Breaking : public testing::TestWithParam<Mutation> {};

TEST_P(Breaking, IsNoticed) {
  Scene scene = GetParam().scene;
  scene.broken = GetParam().broken;
  const Explored explored = Explore(scene, kMostStates);
  EXPECT_EQ(explored.fault.substr(0, explored.fault.find(':')), GetParam().fault)
      << explored.fault << " after " << explored.states << " states";
}

INSTANTIATE_TEST_SUITE_P(
    Unit, Breaking,
    testing::Values(
        Mutation{"AssignWithoutFence",
                 Broken::kAssignWithoutFence,
                 {.budget = {.worker_stops = 1}},
                 "doubled"},
        Mutation{"SkipWithoutReceived",
                 Broken::kSkipWithoutReceived,
                 {.budget = {.worker_stops = 1}},
                 "doubled"},
        Mutation{"AcceptOldPlacements",
                 Broken::kAcceptOldPlacements,
                 {.budget = {.worker_stops = 1}},
                 "doubled"},
        Mutation{
            "NoRaiseOnDeath", Broken::kNoRaiseOnDeath, {.budget = {.client_deaths = 1}}, "stuck"},
        Mutation{"CloseOnReceivedByDead",
                 Broken::kCloseOnReceivedByDead,
                 {.budget = {.client_deaths = 1}},
                 "lost"},
        Mutation{
            "CloseOnReceived", Broken::kCloseOnReceived, {.budget = {.client_deaths = 1}}, "lost"},
        Mutation{"HandedIsCommitted",
                 Broken::kHandedIsCommitted,
                 {.workers = 1, .behind = Scene::kSomeNodes, .budget = {.leaves = 1}},
                 "lost"},
        Mutation{"HandedKeepsOpen",
                 Broken::kHandedKeepsOpen,
                 {.workers = 1, .behind = Scene::kUntilTheEnd},
                 "stuck"},
        Mutation{"GiveBackAndKeep",
                 Broken::kGiveBackAndKeep,
                 {.workers = 1, .budget = {.waits = 1}},
                 "doubled"},
        Mutation{"GiveBackTwice",
                 Broken::kGiveBackTwice,
                 {.workers = 1, .budget = {.waits = 1}},
                 "stuck"},
        Mutation{"ResendWithoutAsking",
                 Broken::kResendWithoutAsking,
                 {.budget = {.broken_links = 1}},
                 "doubled"},
        Mutation{
            "ForgetUnplaced",
            Broken::kForgetUnplaced,
            {.elements = 1, .workers = 1, .budget = {.broken_links = 1, .forgets = 1, .moves = 1}},
            "doubled"},
        Mutation{"NoRaiseOnRestart",
                 Broken::kNoRaiseOnRestart,
                 {.elements = 1, .states = true, .budget = {.client_deaths = 1}},
                 "stuck"},
        Mutation{"ClosedIsFinished",
                 Broken::kClosedIsFinished,
                 {.elements = 1, .states = true, .budget = {.client_deaths = 1}},
                 "lost"},
        Mutation{"NewerStateAfterDeath",
                 Broken::kNewerStateAfterDeath,
                 {.elements = 1, .states = true, .budget = {.client_deaths = 1}},
                 "doubled"},
        Mutation{
            "SendToTheDead", Broken::kSendToTheDead, {.budget = {.client_deaths = 1}}, "stuck"},
        Mutation{"NewestBookmark",
                 Broken::kNewestBookmark,
                 {.elements = 3, .bookmarks = true, .budget = {.worker_stops = 1}},
                 "stuck"},
        Mutation{"AssignAgainAtStart",
                 Broken::kAssignAgainAtStart,
                 {.elements = 1, .budget = {.worker_stops = 1, .old_copies = 1}},
                 "doubled"},
        Mutation{
            "AskOnlyServed",
            Broken::kAskOnlyServed,
            {.elements = 1, .audiences = true, .budget = {.dispatcher_restarts = 1, .moves = 2}},
            "doubled"},
        Mutation{"MoveOnlyServed",
                 Broken::kMoveOnlyServed,
                 {.audiences = true, .budget = {.client_deaths = 1, .moves = 1}},
                 "stuck"},
        Mutation{"ServeBeforeAnswer",
                 Broken::kServeBeforeAnswer,
                 {.elements = 1, .audiences = true, .budget = {.moves = 2}},
                 "stuck"},
        Mutation{"CompleteIsAnswer",
                 Broken::kCompleteIsAnswer,
                 {.elements = 1, .audiences = true, .report_all = 3, .budget = {.moves = 1}},
                 "doubled"},
        Mutation{"CompleteForgets",
                 Broken::kCompleteForgets,
                 {.elements = 1,
                  .audiences = true,
                  .report_all = 3,
                  .budget = {.dispatcher_restarts = 1, .moves = 1}},
                 "doubled"},
        Mutation{"HearAnyLife",
                 Broken::kHearAnyLife,
                 {.elements = 1,
                  .workers = 1,
                  .states = true,
                  .budget = {.client_deaths = 1, .old_copies = 1}},
                 "stuck"},
        Mutation{"HearOtherJournals",
                 Broken::kHearOtherJournals,
                 {.workers = 1, .clients = 1, .budget = {.client_joins = 1, .empty_starts = 1}},
                 "stuck"},
        Mutation{"AnyToken",
                 Broken::kAnyToken,
                 {.workers = 1, .clients = 1, .budget = {.client_joins = 1, .empty_starts = 1}},
                 "lost"},
        Mutation{"RetireBelowDelivered",
                 Broken::kRetireBelowDelivered,
                 {.elements = 3, .bookmarks = true, .budget = {.client_deaths = 1}},
                 "lost"}),
    [](const testing::TestParamInfo<Mutation>& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    UnitTwo, Breaking,
    testing::Values(Mutation{"HearNewerLife",
                             Broken::kHearNewerLife,
                             {.elements = 1,
                              .workers = 1,
                              .clients = 1,
                              .beside = Beside::kCopy,
                              .budget = {.second_lives = 1, .returns = 1}},
                             "old"},
                    Mutation{"HearAnyLifeBesideACopy",
                             Broken::kHearAnyLife,
                             {.elements = 1,
                              .workers = 1,
                              .clients = 1,
                              .beside = Beside::kCopy,
                              .budget = {.second_lives = 1}},
                             "stuck"},
                    Mutation{"RenewWithoutJournal",
                             Broken::kRenewWithoutJournal,
                             {.elements = 1,
                              .workers = 1,
                              .clients = 1,
                              .beside = Beside::kTakenOver,
                              .budget = {.second_lives = 1}},
                             "delivered"},
                    Mutation{"AnyTokenBesideAnEmptyOne",
                             Broken::kAnyToken,
                             {.elements = 1,
                              .workers = 1,
                              .clients = 1,
                              .beside = Beside::kEmpty,
                              .budget = {.client_joins = 1, .second_lives = 1}},
                             "lost"},
                    // Not a rule: none of these processes can notice it (docs/exactly_once.md,
                    // "Lives").
                    Mutation{"NothingWhereTwoFromCopiesDeclareDead",
                             Broken::kNone,
                             {.elements = 1,
                              .beside = Beside::kCopy,
                              .budget = {.second_lives = 1, .split_deaths = 1}},
                             "doubled"}),
    [](const testing::TestParamInfo<Mutation>& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    SlowTwo, Breaking,
    testing::Values(Mutation{"HearOtherJournalsBesideAnEmptyOne",
                             Broken::kHearOtherJournals,
                             {.elements = 1,
                              .workers = 1,
                              .clients = 1,
                              .beside = Beside::kEmpty,
                              .budget = {.client_joins = 1, .second_lives = 1}},
                             "stuck"}),
    [](const testing::TestParamInfo<Mutation>& info) { return info.param.name; });

}  // namespace
}  // namespace penstock::protocol
