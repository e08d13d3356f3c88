// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/monitoring/suspicions.h"

#include <utility>

namespace penstock::control {

bool Suspicions::Suspect(IterationId iteration, int64_t consumer, absl::Time heard, Cause cause) {
  const bool ended = cause.ended;
  const auto [at, added] = of_[iteration].try_emplace(consumer, Lost{heard, false, cause});
  if (added) return true;
  Lost& lost = at->second;
  if (lost.dead || lost.cause.ended || !ended) return false;
  lost.cause = std::move(cause);
  return true;
}

bool Suspicions::DeclareDead(IterationId iteration, int64_t consumer, absl::Time heard) {
  Lost& lost = of_[iteration].try_emplace(consumer, Lost{heard, false, {"silent"}}).first->second;
  return !std::exchange(lost.dead, true);
}

bool Suspicions::Returns(IterationId iteration, int64_t consumer) {
  const auto found = of_.find(iteration);
  if (found == of_.end() || found->second.erase(consumer) == 0) return false;
  if (found->second.empty()) of_.erase(found);
  return true;
}

bool Suspicions::Knows(IterationId iteration, int64_t consumer) const {
  const auto found = of_.find(iteration);
  return found != of_.end() && found->second.contains(consumer);
}

std::vector<IterationId> Suspicions::Iterations() const {
  std::vector<IterationId> iterations;
  for (const auto& [iteration, lost] : of_) iterations.push_back(iteration);
  return iterations;
}

ConsumersLost Suspicions::Of(IterationId iteration, absl::Time now) const {
  ConsumersLost all;
  const auto found = of_.find(iteration);
  if (found == of_.end()) return all;
  for (const auto& [consumer, lost] : found->second) {
    all.consumers.push_back(
        {consumer, now - lost.heard, lost.dead, lost.cause.text, lost.cause.ended});
  }
  return all;
}

int64_t Suspicions::Count(bool dead) const {
  int64_t count = 0;
  for (const auto& [iteration, consumers] : of_) {
    for (const auto& [consumer, lost] : consumers) count += lost.dead == dead ? 1 : 0;
  }
  return count;
}

}  // namespace penstock::control
