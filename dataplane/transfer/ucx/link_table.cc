// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/link_table.h"

#include <utility>

namespace penstock::transfer::ucx {

void LinkTable::Add(const std::shared_ptr<Link>& link, Link::Key key, Worker::Peer peer) {
  link->dialler_ = key.first;
  link->number_ = key.second;
  link->peer_ = peer;
  links_.emplace(key, link);
}

std::shared_ptr<Link> LinkTable::Find(const Head& head) const {
  const auto found = links_.find({head.dialler, head.link});
  return found == links_.end() ? nullptr : found->second;
}

bool LinkTable::Uses(Worker::Peer peer) const {
  for (const auto& [key, link] : links_) {
    if (link->peer_ == peer) return true;
  }
  return false;
}

std::shared_ptr<Link> LinkTable::Remove(Link& link) {
  const uint64_t number = std::exchange(link.number_, 0);
  if (number == 0) return nullptr;
  link.waiting_ = {};
  link.deadline_ = Clock::time_point::max();
  const auto found = links_.find({link.dialler_, number});
  std::shared_ptr<Link> removed = std::move(found->second);
  links_.erase(found);
  return removed;
}

void LinkTable::Lose(Worker::Peer peer, const absl::Status& reason) {
  std::vector<std::shared_ptr<Link>> lost;
  for (const auto& [key, link] : links_) {
    if (link->peer_ == peer) lost.push_back(link);
  }
  for (const std::shared_ptr<Link>& link : lost) {
    if (link->number_ != 0) link->OnLost(reason);
  }
}

void LinkTable::SetDeadline(Link& link, Clock::time_point deadline) {
  link.deadline_ = deadline;
  active_.LookBy(deadline);
}

void LinkTable::CollectDue(Clock::time_point now) {
  for (const auto& [key, link] : links_) {
    if (link->deadline_ <= now) {
      link->deadline_ = Clock::time_point::max();
      due_.push_back(link);
    }
    active_.LookBy(link->deadline_);
  }
}

void LinkTable::CallDue() {
  for (const std::shared_ptr<Link>& link : due_) {
    if (link->number_ != 0) link->OnDeadline();
  }
  due_.clear();
}

}  // namespace penstock::transfer::ucx
