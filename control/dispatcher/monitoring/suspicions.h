// SPDX-License-Identifier: Apache-2.0
// The consumers of coordinated reads that are no longer heard from. Such a consumer is first
// suspected, then dead, until it returns or nobody needs it. Not journaled: a restarted dispatcher
// suspects the consumers that stay silent. A plain value that reads no clock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "control/protocol/client_messages.h"

namespace penstock::control {

// Not thread-safe.
class Suspicions {
 public:
  // The reason for which a consumer is suspected.
  struct Cause {
    std::string text;
    bool ended = false;  // its connection ended, which overrides silence as a cause
  };
  // `heard`: the time when the consumer was last heard from. Suspect(), DeclareDead() and Returns()
  // return false if they change nothing.
  bool Suspect(IterationId iteration, int64_t consumer, absl::Time heard, Cause cause);
  // The consumer need not have been suspected before.
  bool DeclareDead(IterationId iteration, int64_t consumer, absl::Time heard);
  bool Returns(IterationId iteration, int64_t consumer);
  void Forget(IterationId iteration) { of_.erase(iteration); }

  bool Knows(IterationId iteration, int64_t consumer) const;

  // Returns the iterations with at least one lost consumer.
  std::vector<IterationId> Iterations() const;
  // Returns the message that names the lost consumers to the other consumers, sorted by number.
  ConsumersLost Of(IterationId iteration, absl::Time now) const;
  int64_t Count(bool dead) const;

 private:
  struct Lost {
    absl::Time heard;
    bool dead = false;
    Cause cause;
  };
  std::map<IterationId, std::map<int64_t, Lost>> of_;  // by consumer; no inner map is empty
};

}  // namespace penstock::control
