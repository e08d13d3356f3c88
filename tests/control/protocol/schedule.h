// SPDX-License-Identifier: Apache-2.0
// One long run of the protocol's machines under a seed: up to four partitions,
// workers and clients, some hundred elements in splits handed out on demand,
// bookmarks, commits, and whatever can fail, failing. Channels are FIFO, delay
// and repeat messages, and lose what is under way when they break; the
// dispatcher's messages leave when its journal is durable, and a restart loses
// what is not. Time is counted, not waited for.
#pragma once

#include <cstdint>
#include <string>

#include "control/protocol/rules.h"

namespace penstock::protocol {

struct Outcome {
  std::string fault;     // "lost …", "doubled …", "stuck …"; empty if all is well
  int64_t elements = 0;  // in all
  int64_t given_up = 0;  // owed after closing when nobody was left to read
  int failures = 0;      // deaths, breaks, restarts, moves, joins
  int64_t events = 0;
};

Outcome RunSchedule(uint64_t seed, Broken broken = Broken::kNone);

}  // namespace penstock::protocol
