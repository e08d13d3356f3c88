// SPDX-License-Identifier: Apache-2.0
// Checks that the consumers of a coordinated read return elements of the same row in the same step.
// It compares some of their steps, which they report with their heartbeats.
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
  // on consist of elements of several rows and are not compared. Returns, as text, which consumers
  // differ in which step, if any do.
  std::optional<std::string> Hear(IterationId iteration, int64_t consumer,
                                  absl::Span<const StepMark> marks, int64_t remainders_begin);
  // Forgets the reports: a process has restarted, perhaps at an earlier step, or the iteration is
  // over.
  void Forget(IterationId iteration) { of_.erase(iteration); }

  // The iterations whose consumers have sent marks.
  std::vector<IterationId> Iterations() const;

  // How many marks have matched another consumer's so far.
  int64_t compared() const { return compared_; }

 private:
  using Step = std::map<int64_t, protocol::PartitionRow>;  // by consumer
  std::map<IterationId, std::map<int64_t, Step>> of_;      // by step
  int64_t compared_ = 0;
};

}  // namespace penstock::control
