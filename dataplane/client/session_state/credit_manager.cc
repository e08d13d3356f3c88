// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session_state/credit_manager.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "penstock/check.h"

namespace penstock::client {
namespace {

constexpr int64_t kAutoBytes = 8 << 20;
constexpr int64_t kAutoFewest = 16;
// With two credits, a worker may send the next element while one is being received. With only one
// credit, each element would wait for a round trip between worker and client.
constexpr int64_t kAutoOfEach = 2;
constexpr int64_t kAutoMost = 16'384;
// The number of bytes of elements that one grant asks for, if the window allows this many. A
// message that asks for fewer bytes costs more than it gains.
constexpr int64_t kPortionBytes = 256 << 10;
// A worker that returns its credits unused is passed over for 2, 4, … 32 grants if another worker
// can be asked, and then gets only a half, a quarter, … of its share. Without the first, a credit
// would go to that worker and back for each element. Without the second, the shares of idle workers
// might leave nothing for some of them while many elements are held, and all these credits would go
// round and round.
constexpr int kMostGaveBack = 5;

}  // namespace

void CreditManager::AddLink(WorkerId worker) {
  if (links_.try_emplace(worker).second) ++without_credits_;
  OnChange();
}

void CreditManager::RemoveLink(WorkerId worker) {
  auto link = links_.find(worker);
  if (link == links_.end()) return;
  SetCredits(link->second, 0);
  SetGaveBack(link->second, 0);
  --without_credits_;
  links_.erase(link);
  OnChange();
}

void CreditManager::OnReceived(WorkerId worker, int64_t bytes) {
  OnDropped(worker);
  if (auto link = links_.find(worker); link != links_.end()) ++link->second.held;
  ++held_;
  held_bytes_ += bytes;
  mean_bytes_ = mean_bytes_ == 0 ? bytes : mean_bytes_ + (bytes - mean_bytes_) / 16;
  OnChange();
}

void CreditManager::OnDropped(WorkerId worker) {
  auto link = links_.find(worker);
  if (link == links_.end() || link->second.asked == 0) return;  // sent without a credit
  SetCredits(link->second, link->second.asked - 1);
  ++link->second.received_since_recall;
  SetGaveBack(link->second, 0);
  link->second.last_until = 0;
  OnChange();
}

void CreditManager::OnRecalled(WorkerId worker, int64_t count) {
  auto link = links_.find(worker);
  if (link == links_.end()) return;
  count = std::min(count, link->second.asked);
  link->second.recalling = false;
  SetCredits(link->second, link->second.asked - count);
  OnChange();
  if (count == 0 || link->second.received_since_recall > 0) return;
  SetGaveBack(link->second, std::min(link->second.gave_back + 1, kMostGaveBack));
  link->second.last_until = grants_ + (int64_t{1} << link->second.gave_back);
}

void CreditManager::OnReleased(WorkerId worker, int64_t bytes) {
  PENSTOCK_CHECK(held_ > 0);
  auto link = links_.find(worker);
  if (link != links_.end() && link->second.held > 0) --link->second.held;
  --held_;
  held_bytes_ -= bytes;
  OnChange();
}

int64_t CreditManager::asked(WorkerId worker) const {
  const auto link = links_.find(worker);
  return link == links_.end() ? 0 : link->second.asked;
}

int64_t CreditManager::Limit(int64_t max_elements, int64_t bytes, int64_t mean_bytes,
                             int64_t links) {
  const int64_t mean = std::max<int64_t>(mean_bytes, 1);
  int64_t most = max_elements;
  if (most == 0) {
    const int64_t fewest = std::clamp(kAutoOfEach * links, kAutoFewest, kAutoMost);
    most = mean_bytes == 0 ? kAutoFewest : std::clamp(kAutoBytes / mean, fewest, kAutoMost);
  }
  return std::max<int64_t>(1, std::min(most, bytes / mean));
}

int64_t CreditManager::FreeWithin(int64_t bytes) const {
  const int64_t used = asked_ + held_;
  const int64_t limit = LimitWithin(bytes);
  if (used == 0) return limit;
  // Held elements count with their actual size, requested elements with the mean size.
  const int64_t mean = std::max<int64_t>(mean_bytes_, 1);
  const int64_t by_bytes = (bytes - held_bytes_) / mean - asked_;
  return std::max<int64_t>(0, std::min(limit - used, by_bytes));
}

CreditManager::Grants CreditManager::TakeGrants() {
  Grants grants;
  if (!std::exchange(may_grant_, false)) return grants;
  starving_.reset();
  int64_t free = Free();
  const int64_t links = static_cast<int64_t>(links_.size());
  if (free == 0 && links > 0 && FreeWithin(max_bytes_) > 0) was_bound_ = true;
  if (free == 0 || links == 0) return grants;
  const int64_t share = std::clamp<int64_t>(limit() / links, 1, kMostAskedOfOne);
  const int64_t portion =
      std::clamp(kPortionBytes / std::max<int64_t>(mean_bytes_, 1), share / 4, share / 2);
  const bool hurries = without_credits_ > 0 && held_ < limit() / 4;
  if (free < portion && !hurries && gave_back_ == 0) return grants;  // too few for a portion
  const auto share_of = [share](const Link& link) {
    return std::max<int64_t>(1, share >> link.gave_back);
  };
  const auto portion_of = [&](const Link& link) { return std::min(portion, share_of(link)); };
  // The worker with the fewest credits comes first. Ties go, in this order, to a worker that is not
  // passed over, to the worker with the fewest held elements, and to the one with the oldest last
  // grant.
  const auto order_of = [&](WorkerId worker, const Link& link) {
    const int64_t room = share_of(link) - link.asked;
    const bool has_room = link.asked == 0 || room >= std::max<int64_t>(1, portion_of(link));
    return Order(!has_room, link.asked, link.last_until > grants_, link.held, link.last_grant,
                 worker);
  };
  candidates_.clear();
  for (auto& [worker, link] : links_) candidates_.push_back({order_of(worker, link), &link});
  std::ranges::make_heap(candidates_, std::greater<>());
  while (free > 0) {
    std::ranges::pop_heap(candidates_, std::greater<>());
    auto& [order, next] = candidates_.back();
    const WorkerId worker = std::get<WorkerId>(order);
    Link& link = *next;
    const Order now = order_of(worker, link);
    if (now == order) {
      const int64_t count = std::min(share_of(link) - link.asked, free);
      if (count <= 0) break;
      const bool in_a_hurry = link.asked == 0 && held_ < limit() / 4;
      if (count < portion_of(link) && !in_a_hurry) break;
      if (link.asked == 0) link.seen_asked = false;
      SetCredits(link, link.asked + count);
      link.last_grant = ++grants_;
      free -= count;
      grants.push_back({worker, count});
    }
    order = order_of(worker, link);  // it is no longer passed over, or has got credits
    std::ranges::push_heap(candidates_, std::greater<>());
  }
  return grants;
}

bool CreditManager::Starving() const {
  if (!starving_.has_value()) starving_ = ComputeStarving();
  return *starving_;
}

void CreditManager::SetCredits(Link& link, int64_t credits) {
  without_credits_ += int{credits == 0} - int{link.asked == 0};
  asked_ += credits - link.asked;
  link.asked = credits;
}

void CreditManager::SetGaveBack(Link& link, int times) {
  gave_back_ += int{times > 0} - int{link.gave_back > 0};
  link.gave_back = times;
}

bool CreditManager::ComputeStarving() const {
  if (asked_ == 0 || Free() > 0) return false;
  return std::any_of(links_.begin(), links_.end(), [](const auto& link) {
    return link.second.asked == 0 && link.second.held == 0;
  });
}

absl::InlinedVector<WorkerId, 4> CreditManager::TakeRecalls() {
  absl::InlinedVector<WorkerId, 4> idle;
  const bool starving = Starving();
  for (auto& [worker, link] : links_) {
    const bool sent = link.received_since_recall > 0;
    if (starving && link.seen_asked && link.asked > 0 && !sent && !link.recalling) {
      link.recalling = true;
      idle.push_back(worker);
    }
    link.seen_asked = link.asked > 0;
    link.received_since_recall = 0;
  }
  return idle;
}

}  // namespace penstock::client
