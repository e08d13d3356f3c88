// SPDX-License-Identifier: Apache-2.0
// The rules a test may break on purpose, one at a time, to see that the
// exploration (tests/control/protocol/explore.h) and the demo's count notice it.
// Nothing but tests passes anything other than kNone.
#pragma once

#include <cstdint>

namespace penstock::protocol {

enum class Broken : uint8_t {
  kNone = 0,
  kAssignWithoutFence,     // rule 3: do not wait for the answers          → doubled
  kSkipWithoutReceived,    // rule 3: skip only what was delivered         → doubled
  kAcceptOldPlacements,    // rule 2: the client refuses nothing           → doubled
  kNoRaiseOnDeath,         // rule 1: a dead client moves nothing          → stuck
  kCloseOnReceivedByDead,  // rule 8: what a dead client received counts   → lost
  kCloseOnReceived,        // rule 8: what an active client received counts   → lost
  kHandedIsCommitted,      // rule 31: what nodes hold is committed        → lost
  kHandedKeepsOpen,        // rule 31: the end waits for what nodes hold   → stuck
  kGiveBackAndKeep,        // rule 25: what is given back is delivered too → doubled
  kGiveBackTwice,          // rule 25: given back after the answer         → stuck
  kResendWithoutAsking,    // rule 5: what is in doubt is sent again       → doubled
  kNoRaiseOnRestart,       // rule 11: a restarted client moves nothing    → stuck
  kClosedIsFinished,       // rule 13: nothing is owed after closing       → lost
  kNewerStateAfterDeath,   // rule 11: a state that was never committed    → doubled
  kSendToTheDead,          // rule 12: the worker serves every client      → stuck
  kNewestBookmark,         // rule 3: a bookmark above what must be sent   → stuck
  kRetireBelowDelivered,   // bookmarks: retired below what is delivered   → stuck
  kAssignAgainAtStart,     // rule 9: a number that may have been assigned → doubled
  kHearAnyLife,            // rule 26: whoever is ahead of the journal     → stuck
  kHearNewerLife,          // rule 26: who heard a newer life, by the old one → old
  kHearOtherJournals,      // rule 26: what was said of another's          → stuck
  kAnyToken,               // rule 27: readers of another job              → lost
  kRenewWithoutJournal,    // rule 29: leases of a dispatcher without journal → delivered
  kAgreeOnSome,            // rule 19: a round that some have received     → torn
  kAgreeBeforeReports,     // rule 20: agreed before all have spoken       → torn
  kReschedulePast,         // rule 20: rounds altered that somebody knows  → torn
  kRejoinAnywhere,         // rule 21: a consumer comes back at any round  → torn
};

}  // namespace penstock::protocol
