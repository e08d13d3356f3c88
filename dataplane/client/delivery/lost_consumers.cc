// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/delivery/lost_consumers.h"

#include <deque>
#include <set>
#include <utility>

#include "control/sync/clock.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"

namespace penstock {

std::string_view LostConsumerStateName(LostConsumer::State state) {
  switch (state) {
    case LostConsumer::State::kSilent:
      return "silent";
    case LostConsumer::State::kEnded:
      return "ended";
    case LostConsumer::State::kDead:
      return "dead";
    case LostConsumer::State::kBack:
      return "back";
  }
  return "unknown";
}

// The changes that a watch has not returned yet.
class LostConsumerWatch::Changes {
 public:
  void Add(const LostConsumer& change) {
    MutexLock lock(mu_);
    waiting_.push_back(change);
    changed_.NotifyOne();
  }

  void Stop() {
    MutexLock lock(mu_);
    stopped_ = true;
    changed_.NotifyAll();
  }

  std::optional<LostConsumer> Next(absl::Time deadline) {
    MutexLock lock(mu_);
    const auto is_over = [this]() REQUIRES(mu_) { return stopped_ || !waiting_.empty(); };
    changed_.WaitUntil(lock, BootTimeAt(deadline), is_over);
    if (stopped_ || waiting_.empty()) return std::nullopt;
    LostConsumer change = std::move(waiting_.front());
    waiting_.pop_front();
    return change;
  }

 private:
  Mutex mu_;
  Condition changed_;
  std::deque<LostConsumer> waiting_ GUARDED_BY(mu_);
  bool stopped_ GUARDED_BY(mu_) = false;
};

namespace {

struct Watches {
  static Watches& OfProcess() {
    static Watches& watches = *new Watches;
    return watches;
  }
  Mutex mu;
  std::set<std::shared_ptr<LostConsumerWatch::Changes>> all GUARDED_BY(mu);
};

}  // namespace

void client::NotifyLostConsumer(const LostConsumer& change) {
  Watches& watches = Watches::OfProcess();
  MutexLock lock(watches.mu);
  for (const auto& watch : watches.all) watch->Add(change);
}

LostConsumerWatch::LostConsumerWatch() : changes_(std::make_shared<Changes>()) {
  Watches& watches = Watches::OfProcess();
  MutexLock lock(watches.mu);
  watches.all.insert(changes_);
}

LostConsumerWatch::~LostConsumerWatch() {
  Watches& watches = Watches::OfProcess();
  MutexLock lock(watches.mu);
  watches.all.erase(changes_);
}

std::optional<LostConsumer> LostConsumerWatch::Next(absl::Time deadline) {
  return changes_->Next(deadline);
}

void LostConsumerWatch::Stop() {
  changes_->Stop();
}

struct OnLostConsumer::Running {
  Thread thread;
};

absl::StatusOr<std::unique_ptr<OnLostConsumer>> OnLostConsumer::Start(
    std::function<void(const LostConsumer&)> call) {
  std::unique_ptr<OnLostConsumer> on_lost(new OnLostConsumer);
  on_lost->running_ = std::make_unique<Running>();
  ASSIGN_OR_RETURN(
      on_lost->running_->thread,
      StartThread("calls for lost consumers", [&watch = on_lost->watch_, call = std::move(call)] {
        while (const std::optional<LostConsumer> change = watch.Next()) call(*change);
      }));
  return on_lost;
}

OnLostConsumer::~OnLostConsumer() {
  watch_.Stop();
  if (running_->thread.joinable()) running_->thread.join();
}

}  // namespace penstock
