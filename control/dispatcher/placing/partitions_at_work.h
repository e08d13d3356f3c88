// SPDX-License-Identifier: Apache-2.0
// Counts the partitions at work, which have a worker and have not ended, by iteration and by
// namespace. Not journaled: which partitions have ended is known from their workers. A plain value
// that reads no clock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "control/protocol/coordinator/iteration_coordinator.h"
#include "control/state/state.h"

namespace penstock::control {

// Not thread-safe.
class PartitionsAtWork {
 public:
  // Counts the iteration again, in constant time. Call it after each event of the iteration.
  // `context`: null if there is none.
  void Count(const State& state, IterationId id, const protocol::IterationContext* context);
  // The same, by a look at each partition. For checks of Count().
  void Search(const State& state, IterationId id, const protocol::IterationContext* context);
  void Forget(IterationId id) { Set(id, {}); }

  int64_t Of(IterationId id) const;
  int64_t In(std::string_view name_space) const;
  std::vector<IterationId> IterationsIn(std::string_view name_space) const;

  // Compares the numbers.
  friend bool operator==(const PartitionsAtWork& a, const PartitionsAtWork& b) {
    return a.in_ == b.in_;
  }

 private:
  struct Counted {
    std::string name_space;
    int64_t count = 0;
  };
  // Notes the number, or none if the iteration has no elements to send.
  void Note(const State& state, IterationId id, int64_t count);
  void Set(IterationId id, Counted counted);

  absl::flat_hash_map<IterationId, Counted> of_;
  std::map<std::string, int64_t, std::less<>> in_;  // none is 0
};

}  // namespace penstock::control
