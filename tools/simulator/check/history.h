// SPDX-License-Identifier: Apache-2.0
// The elements that the trainers of a simulated run got from Next().
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/time/time.h"
#include "penstock/ids.h"

namespace penstock::simulator {

// Identifies an element permanently.
struct ElementKey {
  IterationId iteration;
  PartitionId partition;
  Index index = 0;
  friend bool operator<(const ElementKey& a, const ElementKey& b) {
    return std::tie(a.iteration, a.partition, a.index) <
           std::tie(b.iteration, b.partition, b.index);
  }
  friend bool operator==(const ElementKey&, const ElementKey&) = default;
};

struct Got {
  ElementKey key;
  int64_t value = 0;
  absl::Duration when;  // since the start of the run
  uint64_t record = 0;  // the dispatcher's last durable record at that time
  Placement placement = {};
  // The element's place among all consumers (penstock/step_token.h); -1: there are no consumers.
  int64_t round = -1;
  int64_t consumer = -1;
  bool pad = false;
};

// The elements that one reader of the job returned, in order. A process that continues from a state
// continues the history of the process that saved it, without the elements after that state.
struct History {
  std::string name;                // "trainer1, life 2": the process that began it
  std::optional<ClientId> client;  // the reader; nullopt: no process of it has connected
  uint64_t connected = 0;          // the last durable record when it first connected
  std::vector<Got> got;
  std::vector<Got> undone;     // after the state from which a later process continued
  std::vector<Got> twice;      // of `undone`: elements that their process had already
  std::vector<size_t> states;  // sizes of the stored states that may be committed, ascending
  size_t committed = 0;        // size of the last state for which Commit() returned OK
  std::optional<absl::Duration> ended;  // Next() returned the end, and all is committed
  std::optional<absl::Duration> gone;   // the process died or left, and nobody continues from it
  size_t job = 0;                       // its number in the scenario, from 0

  // A new process continues from a state that contains the first `elements` elements.
  void ContinueFrom(size_t elements);
};

using Histories = std::deque<History>;  // references to members stay valid

}  // namespace penstock::simulator
