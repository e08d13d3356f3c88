// SPDX-License-Identifier: Apache-2.0
// Consumers of coordinated reads that are no longer heard from: first suspected, then dead, until
// they return or nobody needs them. Not journaled: a restarted dispatcher suspects the consumers
// that stay silent. A value without a clock.
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
  // Why a consumer is suspected.
  struct Cause {
    std::string text;
    bool ended = false;  // its connection ended, which overrides silence as a cause
  };
  // `heard`: when it was last heard from. These three return false if they change nothing.
  bool Suspect(IterationId iteration, int64_t consumer, absl::Time heard, Cause cause);
  // The consumer need not be suspected yet.
  bool DeclareDead(IterationId iteration, int64_t consumer, absl::Time heard);
  bool Returns(IterationId iteration, int64_t consumer);
  void Forget(IterationId iteration) { of_.erase(iteration); }

  bool Knows(IterationId iteration, int64_t consumer) const;

  // Returns the iterations with at least one lost consumer.
  std::vector<IterationId> Iterations() const;
  // Returns the lost consumers by number, as the other consumers are told.
  ConsumersLost Of(IterationId iteration, absl::Time now) const;
  int64_t Count(bool dead) const;

 private:
  struct Lost {
    absl::Time heard;
    bool dead = false;
    Cause cause;
  };
  std::map<IterationId, std::map<int64_t, Lost>> of_;  // by consumer; none is empty
};

}  // namespace penstock::control
