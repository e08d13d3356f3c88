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

std::vector<CreditManager::Link>::iterator CreditManager::PlaceOf(WorkerId worker) {
  return std::ranges::lower_bound(links_, worker, {}, &Link::worker);
}

CreditManager::Link* CreditManager::Find(WorkerId worker) {
  const auto place = PlaceOf(worker);
  return place != links_.end() && place->worker == worker ? &*place : nullptr;
}

int64_t CreditManager::asked(WorkerId worker) const {
  const auto place = std::ranges::lower_bound(links_, worker, {}, &Link::worker);
  return place != links_.end() && place->worker == worker ? place->asked : 0;
}

void CreditManager::AddLink(WorkerId worker) {
  if (Find(worker) == nullptr) {
    links_.insert(PlaceOf(worker), {.worker = worker});
    ++without_credits_;
  }
  OnChange();
}

void CreditManager::RemoveLink(WorkerId worker) {
  Link* const link = Find(worker);
  if (link == nullptr) return;
  SetCredits(*link, 0);
  SetGaveBack(*link, 0);
  --without_credits_;
  links_.erase(PlaceOf(worker));
  OnChange();
}

void CreditManager::OnReceived(WorkerId worker, int64_t bytes) {
  OnDropped(worker);
  if (Link* const link = Find(worker)) ++link->held;
  ++held_;
  held_bytes_ += bytes;
  mean_bytes_ = mean_bytes_ == 0 ? bytes : mean_bytes_ + (bytes - mean_bytes_) / 16;
  OnChange();
}

void CreditManager::OnDropped(WorkerId worker) {
  Link* const link = Find(worker);
  if (link == nullptr || link->asked == 0) return;  // sent without a credit
  SetCredits(*link, link->asked - 1);
  link->sent_since_recall = true;
  SetGaveBack(*link, 0);
  link->last_until = 0;
  OnChange();
}

void CreditManager::OnRecalled(WorkerId worker, int64_t count) {
  Link* const link = Find(worker);
  if (link == nullptr) return;
  count = std::min<int64_t>(count, link->asked);
  link->recalling = false;
  SetCredits(*link, link->asked - count);
  OnChange();
  if (count == 0 || link->sent_since_recall) return;
  SetGaveBack(*link, std::min(link->gave_back + 1, kMostGaveBack));
  link->last_until = grants_ + (int64_t{1} << link->gave_back);
}

void CreditManager::OnReleased(WorkerId worker, int64_t bytes) {
  PENSTOCK_CHECK(held_ > 0);
  Link* const link = Find(worker);
  if (link != nullptr && link->held > 0) --link->held;
  --held_;
  held_bytes_ -= bytes;
  OnChange();
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
  const auto order_of = [&](const Link& link) {
    const int64_t room = share_of(link) - link.asked;
    const bool has_room = link.asked == 0 || room >= std::max<int64_t>(1, portion_of(link));
    return Order(!has_room, link.asked, link.last_until > grants_, link.held, link.last_grant,
                 link.worker);
  };
  // Returns false if nothing is granted.
  const auto grant = [&](Link& link) {
    const int64_t count = std::min(share_of(link) - link.asked, free);
    const bool in_a_hurry = link.asked == 0 && held_ < limit() / 4;
    if (count <= 0 || (count < portion_of(link) && !in_a_hurry)) return false;
    if (link.asked == 0) link.seen_asked = false;
    SetCredits(link, link.asked + count);
    link.last_grant = ++grants_;
    free -= count;
    grants.push_back({link.worker, count});
    return true;
  };
  // Most of the time few credits are free, and one worker gets them all.
  if (!grant(*std::ranges::min_element(links_, {}, order_of)) || free == 0) return grants;
  candidates_.clear();
  for (Link& link : links_) candidates_.push_back({order_of(link), &link});
  std::ranges::make_heap(candidates_, std::greater<>());
  while (free > 0) {
    std::ranges::pop_heap(candidates_, std::greater<>());
    auto& [order, next] = candidates_.back();
    if (order_of(*next) == order && !grant(*next)) break;
    order = order_of(*next);  // it is no longer passed over, or has got credits
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
  link.asked = static_cast<int32_t>(credits);
}

void CreditManager::SetGaveBack(Link& link, int times) {
  gave_back_ += int{times > 0} - int{link.gave_back > 0};
  link.gave_back = times;
}

bool CreditManager::ComputeStarving() const {
  if (asked_ == 0 || Free() > 0) return false;
  return std::ranges::any_of(links_,
                             [](const Link& link) { return link.asked == 0 && link.held == 0; });
}

absl::InlinedVector<WorkerId, 4> CreditManager::TakeRecalls() {
  absl::InlinedVector<WorkerId, 4> idle;
  const bool starving = Starving();
  for (Link& link : links_) {
    if (starving && link.seen_asked && link.asked > 0 && !link.sent_since_recall &&
        !link.recalling) {
      link.recalling = true;
      idle.push_back(link.worker);
    }
    link.seen_asked = link.asked > 0;
    link.sent_since_recall = false;
  }
  return idle;
}

}  // namespace penstock::client
