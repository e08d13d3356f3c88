// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/engine/queues.h"

#include <algorithm>

namespace penstock::simulator {

Fiber& Fibers::New(std::string_view name, bool is_event, std::shared_ptr<Process> process,
                   absl::AnyInvocable<void() &&> run) {
  if (free_.empty()) free_.push_back(&records_.emplace_back());
  Fiber& fiber = *free_.back();
  free_.pop_back();
  fiber.number = ++last_number_;
  fiber.name = name;
  fiber.process = std::move(process);
  fiber.run = std::move(run);
  fiber.is_event = is_event;
  if (!is_event) by_number_.emplace(fiber.number, &fiber);
  return fiber;
}

void Fibers::End(Fiber& fiber) {
  if (!fiber.is_event) by_number_.erase(fiber.number);
  fiber.number = 0;
  fiber.process.reset();
  fiber.context = nullptr;
  free_.push_back(&fiber);
}

Fiber* Fibers::Find(uint64_t number) const {
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? nullptr : found->second;
}

std::vector<const Fiber*> Fibers::ByNumber() const {
  std::vector<const Fiber*> fibers;
  for (const Fiber& fiber : records_) {
    if (fiber.number != 0) fibers.push_back(&fiber);
  }
  std::sort(fibers.begin(), fibers.end(),
            [](const Fiber* a, const Fiber* b) { return a->number < b->number; });
  return fibers;
}

Fiber* RunQueue::Take() {
  if (fibers_.empty()) return nullptr;
  if (dice_.has_value()) {
    const int64_t last = static_cast<int64_t>(fibers_.size()) - 1;
    std::swap(fibers_.front(), fibers_[static_cast<size_t>(dice_->Between(0, last))]);
  }
  Fiber* const fiber = fibers_.front();
  fibers_.pop_front();
  return fiber;
}

void Waiters::Add(Fiber& fiber, const void* condition) {
  List& list = lists_[condition];
  fiber.condition = condition;
  fiber.before = list.last;
  (list.last == nullptr ? list.first : list.last->after) = &fiber;
  list.last = &fiber;
}

void Waiters::Remove(Fiber& fiber) {
  if (fiber.condition == nullptr) return;
  const auto found = lists_.find(fiber.condition);
  List& list = found->second;
  (fiber.before == nullptr ? list.first : fiber.before->after) = fiber.after;
  (fiber.after == nullptr ? list.last : fiber.after->before) = fiber.before;
  if (list.first == nullptr) lists_.erase(found);
  fiber.condition = nullptr;
  fiber.before = fiber.after = nullptr;
}

Fiber* Waiters::LongestWaiting(const void* condition) const {
  const auto found = lists_.find(condition);
  return found == lists_.end() ? nullptr : found->second.first;
}

void Timers::Set(Fiber& fiber, absl::Time when) {
  fiber.deadline = when;
  fiber.timer = ++last_timer_;
  timers_.emplace(std::pair(when, fiber.timer), &fiber);
}

void Timers::Cancel(Fiber& fiber) {
  if (fiber.timer == 0) return;
  timers_.erase(std::pair(fiber.deadline, fiber.timer));
  fiber.timer = 0;
}

}  // namespace penstock::simulator
