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

// What may fail in a schedule.
enum class Fault : uint8_t {
  kKillWorker,         // another is started
  kStopWorker,         // for less or more than its lease; it goes on with what it had
  kKillClient,         // it comes back from a state, or another one joins
  kStopClient,         // for less or more than its lease
  kRestartDispatcher,  // from what its journal had made durable
  kBreakLink,          // between a worker and a client
  kBreakStream,        // of a client to the dispatcher
  kDrainOrMove,        // a worker, another is started; or one partition
  kJoinOrLeave,        // a client
  kAddOrRemoveWorker,  // drained, where another stays
};

struct Outcome {
  std::string fault;     // "lost …", "doubled …", "stuck …"; empty if all is well
  int64_t elements = 0;  // in all
  int64_t given_up = 0;  // owed after closing when nobody was left to read
  int failures = 0;      // deaths, breaks, restarts, moves, joins
  int64_t events = 0;
};

// All of these but the last, by chance.
Outcome RunSchedule(uint64_t seed, Broken broken = Broken::kNone);
// `only` this, over and over; clients have states if it is kKillClient.
Outcome RunSchedule(uint64_t seed, Fault only);

}  // namespace penstock::protocol
