// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/monitoring/namespace_room.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "control/protocol/invariant.h"
#include "control/protocol/scoped_name.h"

namespace penstock::control {

void NamespaceRoom::Count(IterationId id) {
  if (quotas_.LimitPartitions()) at_work_.Count(state_, id, ContextOf(id));
}

void NamespaceRoom::Forget(IterationId id) {
  at_work_.Forget(id);
  waiting_.erase(id);
}

int64_t NamespaceRoom::For(const JobRecord& job) const {
  const std::string_view name_space = NamespaceOf(job.name);
  const std::optional<int64_t> most = quotas_.MostPartitions(name_space);
  if (!most) return std::numeric_limits<int64_t>::max();
  if (check_kept_) PENSTOCK_INVARIANT(at_work_ == CountAll());
  return std::max<int64_t>(*most - at_work_.In(name_space), 0);
}

std::string NamespaceRoom::WhyFull(const JobRecord& job) const {
  if (For(job) > 0) return "";
  const std::string_view name_space = NamespaceOf(job.name);
  return absl::StrCat("another partition to end, because ",
                      quotas_.WhyPartitionsWait(name_space, at_work_.In(name_space)));
}

PartitionsAtWork NamespaceRoom::CountAll() const {
  PartitionsAtWork counted;
  for (const auto& [id, iteration] : state_.iterations) counted.Count(state_, id, ContextOf(id));
  return counted;
}

const protocol::IterationContext* NamespaceRoom::ContextOf(IterationId id) const {
  const auto context = contexts_.find(id);
  return context == contexts_.end() ? nullptr : &context->second;
}

}  // namespace penstock::control
