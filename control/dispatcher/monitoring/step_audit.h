// SPDX-License-Identifier: Apache-2.0
// Checks that the consumers of a coordinated read return elements of the same row in the same step.
// Consumers report some of their steps with their heartbeats, and these steps are compared.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "control/protocol/client_messages.h"

namespace penstock::control {

// Not thread-safe.
class StepAudit {
 public:
  // Takes the marks of the steps that `consumer` reports as returned. Steps from `remainders_begin`
  // on consist of elements of several rows and are not compared. If two consumers differ in a step,
  // returns a text that names the consumers and the step.
  std::optional<std::string> Hear(IterationId iteration, int64_t consumer,
                                  absl::Span<const StepMark> marks, int64_t remainders_begin);
  // Forgets the iteration's reports. Called when a consumer's process has restarted, perhaps at an
  // earlier step, or when the iteration is over.
  void Forget(IterationId iteration) { of_.erase(iteration); }

  // Returns the iterations whose consumers have sent marks.
  std::vector<IterationId> Iterations() const;

  // The number of marks so far that matched a mark of another consumer.
  int64_t compared() const { return compared_; }

 private:
  using Step = std::map<int64_t, protocol::PartitionRow>;  // by consumer
  std::map<IterationId, std::map<int64_t, Step>> of_;      // by step
  int64_t compared_ = 0;
};

}  // namespace penstock::control
