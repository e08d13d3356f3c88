// SPDX-License-Identifier: Apache-2.0
#include "control/observe/page_maker.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock {

PageMaker::~PageMaker() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

absl::Status PageMaker::Start(const std::string& path) {
  ASSIGN_OR_RETURN(thread_, StartThread(absl::StrCat("the page ", path), [this] { Run(); }));
  return absl::OkStatus();
}

void PageMaker::Request(std::string viewer, std::weak_ptr<const void> asker, Done done) {
  {
    MutexLock lock(mu_);
    std::erase_if(waiting_, [](const Waiter& waiter) { return waiter.asker.expired(); });
    waiting_.push_back({std::move(viewer), std::move(asker), std::move(done)});
  }
  changed_.NotifyAll();
}

void PageMaker::Run() {
  MutexLock lock(mu_);
  while (true) {
    changed_.Wait(lock, [this]() REQUIRES(mu_) { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const std::vector<Waiter> answered = TakeOldest();
    lock.unlock();
    const Text text = std::make_shared<const std::string>(page_(answered.front().viewer));
    for (const Waiter& waiter : answered) waiter.done(text);
    lock.lock();
  }
}

std::vector<PageMaker::Waiter> PageMaker::TakeOldest() {
  const std::string viewer = waiting_.front().viewer;
  const auto others = std::stable_partition(
      waiting_.begin(), waiting_.end(), [&](const Waiter& each) { return each.viewer == viewer; });
  std::vector<Waiter> taken(std::make_move_iterator(waiting_.begin()),
                            std::make_move_iterator(others));
  waiting_.erase(waiting_.begin(), others);
  return taken;
}

}  // namespace penstock
