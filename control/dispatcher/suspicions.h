// SPDX-License-Identifier: Apache-2.0
// Consumers of coordinated reads that are heard no more: suspected, then dead, until
// one is back or nobody needs them. Not journaled: a dispatcher that starts anew
// suspects whom it does not hear. A value without a clock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "control/protocol/session_messages.h"

namespace penstock::control {

// Not thread-safe.
class Suspicions {
 public:
  // Why a consumer is suspected.
  struct Cause {
    std::string text;
    bool ended = false;  // its connection, which counts for more than silence
  };
  // Heard last at `heard`. Each is false where that is known already.
  bool Suspect(IterationId iteration, int64_t consumer, absl::Time heard, Cause cause);
  // Suspected until now, or not.
  bool DeclareDead(IterationId iteration, int64_t consumer, absl::Time heard);
  bool Returns(IterationId iteration, int64_t consumer);
  void Forget(IterationId iteration) { of_.erase(iteration); }

  bool Knows(IterationId iteration, int64_t consumer) const;

  // Those of which one is lost at least.
  std::vector<IterationId> Iterations() const;
  // By number; what the other consumers are told.
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
