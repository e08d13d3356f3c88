// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/placing/partitions_at_work.h"

#include <utility>

#include "control/protocol/scoped_name.h"

namespace penstock::control {

void PartitionsAtWork::Count(const State& state, IterationId id,
                             const protocol::IterationContext* context) {
  const int64_t ended = context == nullptr ? 0 : static_cast<int64_t>(context->num_ended);
  Note(state, id, state.placed.CountOf(id) - ended);
}

void PartitionsAtWork::Search(const State& state, IterationId id,
                              const protocol::IterationContext* context) {
  const protocol::IterationRecord& record = state.iterations.at(id).record;
  int64_t count = 0;
  for (size_t p = 0; p < record.partitions.size(); ++p) {
    const bool ended = context != nullptr && context->partitions[p].ended.has_value();
    if (!record.partitions[p].collecting() && !ended) ++count;
  }
  Note(state, id, count);
}

void PartitionsAtWork::Note(const State& state, IterationId id, int64_t count) {
  const IterationState* iteration = state.FindIteration(id);
  if (iteration == nullptr || !state.GoesOn(*iteration) || iteration->record.closed)
    return Forget(id);
  const auto before = of_.find(id);
  if (before != of_.end() && before->second.count == count) return;
  Set(id, {std::string(NamespaceOf(state.jobs.at(iteration->job).name)), count});
}

int64_t PartitionsAtWork::Of(IterationId id) const {
  const auto found = of_.find(id);
  return found == of_.end() ? 0 : found->second.count;
}

int64_t PartitionsAtWork::In(std::string_view name_space) const {
  const auto found = in_.find(name_space);
  return found == in_.end() ? 0 : found->second;
}

std::vector<IterationId> PartitionsAtWork::IterationsIn(std::string_view name_space) const {
  std::vector<IterationId> found;
  for (const auto& [id, counted] : of_)
    if (counted.name_space == name_space && counted.count > 0) found.push_back(id);
  return found;
}

void PartitionsAtWork::Set(IterationId id, Counted counted) {
  const auto add = [&](const std::string& name_space, int64_t more) {
    const auto its = in_.try_emplace(name_space).first;
    its->second += more;
    if (its->second == 0) in_.erase(its);
  };
  const auto before = of_.find(id);
  if (before != of_.end()) {
    add(before->second.name_space, -before->second.count);
    of_.erase(before);
  }
  if (counted.name_space.empty()) return;
  add(counted.name_space, counted.count);
  of_.emplace(id, std::move(counted));
}

}  // namespace penstock::control
