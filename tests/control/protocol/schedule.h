// SPDX-License-Identifier: Apache-2.0
// One long run of the protocol's machines under a seed: up to four partitions, workers and clients,
// some hundred elements in splits given out on demand, bookmarks, commits, and every kind of
// failure. Channels are FIFO, delay and repeat messages, and lose those under way when they break.
// The dispatcher sends messages once its journal is durable; a restart loses the rest. Time is
// simulated.
#pragma once

#include <cstdint>
#include <string>

#include "control/protocol/rules.h"

namespace penstock::protocol {

// The failures in a schedule.
enum class Fault : uint8_t {
  kKillWorker,         // another is started
  kStopWorker,         // for less or more than its lease; it goes on with its state
  kKillClient,         // it comes back from a state, or another one joins
  kStopClient,         // for less or more than its lease
  kRestartDispatcher,  // restarts from its durable journal
  kBreakLink,          // between a worker and a client
  kBreakStream,        // of a client to the dispatcher
  kDrainOrMove,        // drains a worker and starts another, or moves a partition
  kJoinOrLeave,        // a client
  kAddOrRemoveWorker,  // drained, if another stays
};

struct Outcome {
  std::string fault;     // "lost …", "doubled …", "stuck …"; empty if all is well
  int64_t elements = 0;  // in all
  int64_t given_up = 0;  // undelivered after closing when no reader was left
  int failures = 0;      // deaths, breaks, restarts, moves, joins
  int64_t events = 0;
};

// Runs with random faults of all kinds but the last.
Outcome RunSchedule(uint64_t seed, Broken broken = Broken::kNone);
// Runs with `only` this fault, over and over; clients have states if it is kKillClient.
Outcome RunSchedule(uint64_t seed, Fault only);

}  // namespace penstock::protocol
