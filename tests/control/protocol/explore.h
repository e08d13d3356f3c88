// SPDX-License-Identifier: Apache-2.0
// Visits every state that a scene can reach, up to renaming, and checks in all of
// them:
//   safety    no element is in two histories; at closing none is in no history;
//   liveness  from every state the end is reached without further failures,
//             whatever comes first: no state is stuck, and no steps form a cycle.
// Steps other than failures and joins make progress that is never undone, so the
// graph of states has no cycle; the search proves it by finding none. Then every
// run without failures ends, in a state that has no next step, and all must be
// done in each such state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/control/protocol/world.h"

namespace penstock::protocol {

struct Explored {
  int64_t states = 0;
  int64_t steps = 0;
  bool complete = false;   // all states were visited
  std::string fault;       // in the first state where something does not hold; or empty
  std::vector<Step> path;  // to that state
  double seconds = 0;
};

// Explores until the first fault; incomplete if there are more than `max_states`. A state is kept
// as 127 bits of a hash: 16 bytes each.
Explored Explore(const Scene& scene, int64_t max_states);

// Describes the path step by step, to explain a fault.
std::string DescribePath(const Scene& scene, const std::vector<Step>& path);

}  // namespace penstock::protocol
