// SPDX-License-Identifier: Apache-2.0
// Whether the consumers of a coordinated read return elements of the same row in the
// same step: what their heartbeats say of some of their steps is compared.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "control/protocol/session_messages.h"

namespace penstock::control {

// Not thread-safe.
class StepAudit {
 public:
  // What `consumer` says it returned; steps from `remainders_begin` on are made of elements of
  // several rows, and not compared. In words, which consumers differ in which step, if
  // they do.
  std::optional<std::string> Hear(IterationId iteration, int64_t consumer,
                                  absl::Span<const StepMark> marks, int64_t remainders_begin);
  // What was heard: a process has begun anew, perhaps at an earlier step; or it is over.
  void Forget(IterationId iteration) { of_.erase(iteration); }

  // Those of which something was heard.
  std::vector<IterationId> Iterations() const;

  // Marks that were found equal to another consumer's, ever.
  int64_t compared() const { return compared_; }

 private:
  using Step = std::map<int64_t, protocol::PartitionRow>;  // by consumer
  std::map<IterationId, std::map<int64_t, Step>> of_;      // by step
  int64_t compared_ = 0;
};

}  // namespace penstock::control
