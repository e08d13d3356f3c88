// SPDX-License-Identifier: Apache-2.0
// Which reader owns an element at which time, according to the durable records. A reader owns an
// element from when its trainer got it until it loses all that it has not committed: it leaves, is
// declared dead, or a new process continues from a state. It owns what it has committed for ever.
#pragma once

#include <string>
#include <vector>

#include "tools/simulator/check/history.h"
#include "tools/simulator/check/shadow.h"

namespace penstock::simulator {

// A trainer got an element.
struct Returned {
  const History* history;
  const Got* got;
};

// Checks all returns of the element `key` in the order of time, into which it sorts them. Returns
// what is wrong: a trainer got the element while another reader owned it, or while it was no
// reader; empty: nothing.
//
// The order of records and returns is that in which they happened: a process learns of a record
// after it has become durable.
std::string WrongOwner(const CommittedIteration& iteration, const ElementKey& key,
                       std::vector<Returned>& returned);

// Returns whether an element that nobody has committed may be owed to a next reader at the end of a
// run (docs/exactly_once.md, "The iteration"). It may if
// - only states are committed, and the iteration was closed and is not finished,
// - a trainer that is gone got it, and owned it when or after the iteration was first closed, and
// - no reader was told the end after that trainer had lost it, and none came to read after that.
bool MayBeGivenUp(const Histories& histories, const CommittedIteration& iteration,
                  const std::vector<Returned>& returned);

}  // namespace penstock::simulator
