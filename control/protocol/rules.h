// SPDX-License-Identifier: Apache-2.0
// Rules that a test breaks on purpose, one at a time, to check that the exploration
// (tests/control/protocol/explore.h) and the demo's count notice the broken rule. Only tests pass a
// value other than kNone.
#pragma once

#include <cstdint>

namespace penstock::protocol {

enum class Broken : uint8_t {
  kNone = 0,
  kAssignWithoutFence,     // rule 3: does not wait for the answers          → doubled
  kSkipWithoutReceived,    // rule 3: skips only what was delivered          → doubled
  kAcceptOldPlacements,    // rule 2: the client refuses nothing             → doubled
  kNoRaiseOnDeath,         // rule 1: a dead client moves nothing            → stuck
  kCloseOnReceivedByDead,  // rule 8: counts what a dead client received     → lost
  kCloseOnReceived,        // rule 8: counts what an active client received  → lost
  kHandedIsCommitted,      // rule 31: what nodes hold is committed          → lost
  kHandedKeepsOpen,        // rule 31: the end waits for what nodes hold     → stuck
  kGiveBackAndKeep,        // rule 25: what is given back is delivered too   → doubled
  kGiveBackTwice,          // rule 25: gives back after the answer           → stuck
  kResendWithoutAsking,    // rule 5: sends again what is in doubt           → doubled
  kForgetUnplaced,         // rule 5: forgets a worker without partitions    → doubled
  kNoRaiseOnRestart,       // rule 11: a restarted client moves nothing      → stuck
  kClosedIsFinished,       // rule 13: nothing is owed after closing         → lost
  kNewerStateAfterDeath,   // rule 11: accepts a state never committed       → doubled
  kSendToTheDead,          // rule 12: the worker serves every client        → stuck
  kNewestBookmark,         // rule 3: a bookmark above what must be sent     → stuck
  kRetireBelowDelivered,   // rule 14: retires bookmarks below delivered     → lost
  kAssignAgainAtStart,     // rule 9: a number that may have been assigned   → doubled
  kServeBeforeAnswer,      // rule 32: serves a new reader before its answer → stuck
  kAskOnlyServed,          // rule 32: a restart asks only who is served     → doubled
  kMoveOnlyServed,         // rule 32: a death moves only what it was served → stuck
  kCompleteIsAnswer,       // rule 33: the end of the reports answers fences → doubled
  kCompleteForgets,        // rule 33: forgets what the stream has reported  → doubled
  kHearAnyLife,            // rule 26: hears peers ahead of the journal      → stuck
  kHearNewerLife,          // rule 26: an old life hears a newer life's peer → old
  kHearOtherJournals,      // rule 26: hears reports about another journal   → stuck
  kAnyToken,               // rule 27: accepts readers of another job        → lost
  kRenewWithoutJournal,    // rule 29: renews leases without the journal     → delivered
  kAgreeOnSome,            // rule 19: agrees when only some have received   → torn
  kAgreeBeforeReports,     // rule 20: agrees before all have reported       → torn
  kReschedulePast,         // rule 20: changes rounds that a consumer knows  → torn
  kRejoinAnywhere,         // rule 21: a consumer returns at any round       → torn
};

}  // namespace penstock::protocol
