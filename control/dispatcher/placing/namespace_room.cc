// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/placing/namespace_room.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "control/protocol/invariant.h"
#include "control/protocol/scoped_name.h"

namespace penstock::control {

void NamespaceRoom::Begin() {
  at_work_ = {};
  for (const auto& [id, iteration] : state_.iterations) at_work_.Count(state_, id, ContextOf(id));
}

void NamespaceRoom::Count(IterationId id) {
  if (quotas_.LimitPartitions()) at_work_.Count(state_, id, ContextOf(id));
}

void NamespaceRoom::Forget(IterationId id) {
  at_work_.Forget(id);
  waiting_.erase(id);
}

int64_t NamespaceRoom::For(const JobRecord& job) const {
  const std::string_view name_space = NamespaceOf(job.name);
  const std::optional<int64_t> most = quotas_.MostPartitions(name_space, permits_());
  if (!most) return std::numeric_limits<int64_t>::max();
  if (check_kept_ != nullptr && check_kept_()) PENSTOCK_INVARIANT(at_work_ == CountAll());
  return std::max<int64_t>(*most - at_work_.In(name_space), 0);
}

std::string NamespaceRoom::WhyFull(const JobRecord& job) const {
  if (For(job) > 0) return "";
  const std::string_view name_space = NamespaceOf(job.name);
  return absl::StrCat("another partition to end, because ",
                      quotas_.WhyPartitionsWait(name_space, at_work_.In(name_space), permits_()));
}

Claim NamespaceRoom::ClaimOf(const IterationState& iteration) const {
  Claim claim{iteration.id, state_.jobs.at(iteration.job).terms.share};
  for (const IterationId id : state_.IterationsOf(iteration.job))
    claim.partitions += at_work_.Of(id);
  return claim;
}

bool NamespaceRoom::CanBePlaced(IterationId id) const {
  const IterationState* iteration = state_.FindIteration(id);
  return iteration != nullptr && state_.GoesOn(*iteration) && !iteration->record.closed;
}

std::string_view NamespaceRoom::NamespaceOfIteration(IterationId id) const {
  return NamespaceOf(state_.jobs.at(state_.iterations.at(id).job).name);
}

std::set<Claim, NamespaceRoom::ClaimOrder> NamespaceRoom::Waiting() const {
  std::set<Claim, ClaimOrder> claims;
  for (const IterationId id : waiting_)
    if (CanBePlaced(id)) claims.insert(ClaimOf(state_.iterations.at(id)));
  return claims;
}

bool NamespaceRoom::OtherGoesFirst(const IterationState& iteration) const {
  if (waiting_.empty()) return false;
  const std::string_view name_space = NamespaceOfIteration(iteration.id);
  const Claim own = ClaimOf(iteration);
  return std::ranges::any_of(waiting_, [&](IterationId id) {
    return CanBePlaced(id) && NamespaceOfIteration(id) == name_space &&
           GoesBefore(ClaimOf(state_.iterations.at(id)), own);
  });
}

std::vector<PartitionKey> NamespaceRoom::ToGiveUp(absl::Time now) {
  std::vector<PartitionKey> found;
  for (const Claim& claim : Waiting()) {
    const std::string_view name_space = NamespaceOfIteration(claim.iteration);
    const auto tried = tried_.try_emplace(std::string(name_space), absl::InfinitePast()).first;
    if (now < tried->second + kBetweenMoves) continue;
    tried->second = now;
    const std::optional<PartitionKey> partition = FindToGiveUp(claim, name_space);
    if (partition) found.push_back(*partition);
  }
  return found;
}

std::optional<PartitionKey> NamespaceRoom::FindToGiveUp(const Claim& to,
                                                        std::string_view name_space) const {
  std::optional<PartitionKey> found;
  Claim from;
  for (const IterationId id : at_work_.IterationsIn(name_space)) {
    const IterationState& iteration = state_.iterations.at(id);
    const Claim claim = ClaimOf(iteration);
    const protocol::IterationContext* context = ContextOf(id);
    if (context == nullptr || !GivesUpFor(claim, to) || (found && GoesBefore(claim, from)))
      continue;
    const auto partition = PartitionToSpare(state_, iteration, *context);
    if (!partition) continue;
    found = PartitionKey{id, *partition};
    from = claim;
  }
  return found;
}

PartitionsAtWork NamespaceRoom::CountAll() const {
  PartitionsAtWork counted;
  for (const auto& [id, iteration] : state_.iterations) counted.Search(state_, id, ContextOf(id));
  return counted;
}

const protocol::IterationContext* NamespaceRoom::ContextOf(IterationId id) const {
  const auto context = contexts_.find(id);
  return context == contexts_.end() ? nullptr : &context->second;
}

}  // namespace penstock::control
