// SPDX-License-Identifier: Apache-2.0
// Knows how many further partitions a namespace may have on workers, and which iterations wait for
// such room. The limits are in control/policy/quotas.h. Not journaled.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "control/dispatcher/placing/partitions_at_work.h"
#include "control/policy/fair_shares.h"
#include "control/policy/quotas.h"
#include "control/protocol/coordinator/iteration_coordinator.h"
#include "control/state/state.h"

namespace penstock::control {

class NamespaceRoom {
 public:
  struct ClaimOrder {
    bool operator()(const Claim& a, const Claim& b) const { return GoesBefore(a, b); }
  };
  using Contexts = std::map<IterationId, protocol::IterationContext>;
  // The arguments must outlive it. `permits` returns the permits of all workers. `check_kept`: see
  // CoreOptions.
  NamespaceRoom(const Quotas& quotas, const State& state, const Contexts& contexts,
                std::function<int64_t()> permits, std::function<bool()> check_kept)
      : quotas_(quotas),
        state_(state),
        contexts_(contexts),
        permits_(std::move(permits)),
        check_kept_(std::move(check_kept)) {}

  // Called once, after the state was recovered.
  void Begin();
  // Called after each event that concerns the iteration.
  void Count(IterationId id);
  void Forget(IterationId id);

  // Returns how many further partitions of the job may be placed.
  int64_t For(const JobRecord& job) const;
  // Returns what keeps partitions of the job waiting, as text; empty if there is room for them.
  std::string WhyFull(const JobRecord& job) const;

  Claim ClaimOf(const IterationState& iteration) const;

  // --- The iterations that wait for room ---

  void Wait(IterationId id) { waiting_.insert(id); }
  void EndWait(IterationId id) { waiting_.erase(id); }
  bool Waits(IterationId id) const { return waiting_.contains(id); }
  // Returns the claims of those that can still be placed. The first gets room first.
  std::set<Claim, ClaimOrder> Waiting() const;
  // Returns whether another iteration of the namespace waits and gets room before this one.
  bool OtherGoesFirst(const IterationState& iteration) const;

  // Returns the partitions that are taken from workers now, for the first that waits in their
  // namespace: of each namespace at most one in kBetweenMoves.
  std::vector<PartitionKey> ToGiveUp(absl::Time now);

 private:
  // Each reader answers before a partition moves, and its worker repeats what no bookmark covers.
  static constexpr absl::Duration kBetweenMoves = absl::Seconds(1);

  bool CanBePlaced(IterationId id) const;
  std::string_view NamespaceOfIteration(IterationId id) const;
  // Returns the partition of the namespace that is given up for `to`; nullopt if there is none.
  std::optional<PartitionKey> FindToGiveUp(const Claim& to, std::string_view name_space) const;
  // Searches all partitions.
  PartitionsAtWork CountAll() const;
  const protocol::IterationContext* ContextOf(IterationId id) const;

  const Quotas& quotas_;
  const State& state_;
  const Contexts& contexts_;
  const std::function<int64_t()> permits_;
  const std::function<bool()> check_kept_;
  PartitionsAtWork at_work_;  // counted only if some namespace has a limit of partitions
  std::set<IterationId> waiting_;
  std::map<std::string, absl::Time> tried_;  // by namespace: when a move was last looked for
};

}  // namespace penstock::control
