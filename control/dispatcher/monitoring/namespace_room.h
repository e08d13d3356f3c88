// SPDX-License-Identifier: Apache-2.0
// Knows how many further partitions a namespace may have on workers, and which iterations wait for
// such room. The limits are in control/policy/quotas.h. Not journaled.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "control/dispatcher/monitoring/partitions_at_work.h"
#include "control/policy/quotas.h"
#include "control/protocol/coordinator/iteration_coordinator.h"
#include "control/state/state.h"

namespace penstock::control {

class NamespaceRoom {
 public:
  using Contexts = std::map<IterationId, protocol::IterationContext>;
  // The arguments must outlive it. `check_kept`: see CoreOptions.
  NamespaceRoom(const Quotas& quotas, const State& state, const Contexts& contexts, bool check_kept)
      : quotas_(quotas), state_(state), contexts_(contexts), check_kept_(check_kept) {}

  // Called once, after the state was recovered.
  void Begin() { at_work_ = CountAll(); }
  // Called after each event that concerns the iteration.
  void Count(IterationId id);
  void Forget(IterationId id);

  // Returns how many further partitions of the job may be placed.
  int64_t For(const JobRecord& job) const;
  // Returns what keeps partitions of the job waiting, as text; empty if there is room for them.
  std::string WhyFull(const JobRecord& job) const;

  // --- The iterations that wait for room ---

  void Wait(IterationId id) { waiting_.insert(id); }
  bool Waits(IterationId id) const { return waiting_.contains(id); }
  std::set<IterationId> TakeWaiting() { return std::exchange(waiting_, {}); }

 private:
  PartitionsAtWork CountAll() const;
  const protocol::IterationContext* ContextOf(IterationId id) const;

  const Quotas& quotas_;
  const State& state_;
  const Contexts& contexts_;
  const bool check_kept_;
  PartitionsAtWork at_work_;  // counted only if some namespace has a limit of partitions
  std::set<IterationId> waiting_;
};

}  // namespace penstock::control
