// SPDX-License-Identifier: Apache-2.0
// Visits every state that a scene can come to, up to renaming, and says whether
// what must hold holds in all of them:
//   safety    no element in two histories; none in no history at closing;
//   liveness  from every state, without further failures, the end is reached,
//             whatever comes first: no state is stuck, and no steps go round.
// Steps other than failures and joins make progress that is never undone, so
// the graph of states has no cycle; the search proves it by finding none, and
// then every run without failures ends, in a state that has no next step; each
// such state must be one where all is done.
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
  std::string fault;       // of the first state where something does not hold; or empty
  std::vector<Step> path;  // to that state
  double seconds = 0;
};

// Stops at the first fault, or incomplete after `max_states`. States are kept as
// 127 bits of a hash: 16 bytes each.
Explored Explore(const Scene& scene, int64_t max_states);

// The path told step by step, for a fault to be understood.
std::string DescribePath(const Scene& scene, const std::vector<Step>& path);

}  // namespace penstock::protocol
