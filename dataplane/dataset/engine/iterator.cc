// SPDX-License-Identifier: Apache-2.0
// Reading in this process: Dataset::MakeIterator and the range over elements.
#include "penstock/iterator.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "control/sync/random.h"
#include "dataplane/dataset/engine/background_task.h"
#include "dataplane/dataset/engine/interruptible.h"
#include "dataplane/dataset/engine/iterator_output.h"
#include "dataplane/dataset/engine/running_dataset.h"
#include "dataplane/dataset/engine/states_of_ranks.h"
#include "dataplane/memory/catch_exhausted.h"
#include "include/status_macros.h"
#include "penstock/dataset.h"

namespace penstock {
namespace {

using NextResult = absl::StatusOr<std::optional<Element>>;

// After this many elements in a row that took less than kQuick each, the calling thread makes the
// next element itself: handing the work to another thread would take as long as making several
// elements. This does not apply to a dataset that waits for a service, since the service may fail
// to answer at any element.
constexpr int kManyQuick = 64;
constexpr auto kQuick = std::chrono::microseconds(20);

// Decides when an element is made, and on which thread. The elements and states come from a
// RunningDataset.
class LocalIterator final : public InterruptibleIterator {
 public:
  LocalIterator(Dataset dataset, uint64_t seed, std::optional<int64_t> epoch, Pool* output)
      : running_(std::move(dataset), seed, epoch, output, stop_.get_token()) {}

  ~LocalIterator() override { stop_.request_stop(); }

  absl::Status Start() { return running_.Start(); }

  NextResult Next(absl::Time deadline) override {
    if (deadline == absl::InfiniteFuture() && !background_.under_way()) {
      std::lock_guard lock(mu_);
      return running_.Deliver(Produce());
    }
    std::optional<NextResult> next = NextInBackground(deadline);
    if (!next.has_value()) return absl::DeadlineExceededError("the next element is not ready yet");
    return *std::move(next);
  }

  absl::Status CheckStep(int64_t step) const override {
    const int64_t next = running_.step();
    if (step == next) return absl::OkStatus();
    return absl::OutOfRangeError(
        absl::StrCat("step ", step, " was requested, but step ", next, " is next"));
  }

  std::optional<NextResult> NextBy(absl::Time until) override {
    if (background_.under_way() || !IsSoonMade()) return NextInBackground(until);
    std::lock_guard lock(mu_);
    return running_.Deliver(ProduceTimed());
  }

  // Waits only while another thread is in Next() without a deadline. While an element is made under
  // a deadline, Save() uses the position that was kept before that element.
  absl::StatusOr<State> Save() override {
    MutexLock finish_lock(finish_mu_);
    ASSIGN_OR_RETURN(const UnfinishedState unfinished, SaveUnfinished());
    return unfinished.Finish();
  }

  // Waits only for the element that is being made; Stop() ends that wait.
  absl::Status Restore(const State& state) override {
    ASSIGN_OR_RETURN(StateToRestore read, ReadStateToRestore(state));
    background_.Await(absl::InfiniteDuration());
    MutexLock finish_lock(finish_mu_);  // its nodes are about to be destroyed
    MutexLock kept_lock(kept_mu_);
    std::lock_guard lock(mu_);
    if (stop_.stop_requested()) return Stopped();
    kept_state_.reset();
    return running_.Restore(std::move(read));
  }

  absl::Status Commit(const State& state) override { return running_.Commit(state); }

  absl::Status Stop(absl::Duration bound) override {
    stop_.request_stop();
    const absl::Time deadline = BootTime() + bound;
    running_.Stop(bound);
    if (!mu_.TryLockFor(deadline - BootTime()))
      return absl::DeadlineExceededError("an element is still being produced");
    mu_.unlock();
    return absl::OkStatus();
  }

  IteratorStats Stats() const override { return running_.Stats(); }

 private:
  static absl::Status Stopped() { return absl::CancelledError("the iterator was stopped"); }

  bool IsSoonMade() {  // REQUIRES: background_ is not under way
    if (quick_ >= kManyQuick) return true;
    std::lock_guard lock(mu_);
    return running_.Ready();
  }

  NextResult ProduceTimed() {  // REQUIRES: mu_ held
    const auto begin = SteadyClock::now();
    NextResult next = Produce();
    const bool quick = !running_.waits_for_others() && SteadyClock::now() - begin < kQuick;
    quick_ = quick ? quick_ + 1 : 0;
    return next;
  }

  // background_ makes the element, on another thread, so that the deadline holds. nullopt if the
  // element is not ready in time: the next call gets that element.
  std::optional<NextResult> NextInBackground(absl::Time deadline) {
    if (!background_.under_way()) {
      if (absl::Status begun = background_.Begin(); !begun.ok()) return begun;
    }
    if (!background_.Await(deadline - WallTime())) return std::nullopt;
    NextResult next = std::move(made_in_background_);
    MutexLock kept_lock(kept_mu_);
    std::lock_guard lock(mu_);
    const bool saved = kept_state_.has_value() && kept_state_->ok();
    if (saved && !kept_given_) running_.DropLastSave();
    kept_state_.reset();
    return running_.Deliver(std::move(next));
  }

  NextResult Produce() {  // REQUIRES: mu_ held
    if (stop_.stop_requested()) return Stopped();
    return running_.Next();
  }

  // Makes an element that Next() may stop waiting for. First keeps the current state, for Save().
  void ProduceInBackground() {
    {
      MutexLock kept_lock(kept_mu_);
      std::lock_guard lock(mu_);
      kept_state_ = running_.Save();
      kept_given_ = false;
    }
    std::lock_guard lock(mu_);
    made_in_background_ = ProduceTimed();
  }

  absl::StatusOr<UnfinishedState> SaveUnfinished() REQUIRES(finish_mu_) {
    MutexLock kept_lock(kept_mu_);
    if (stop_.stop_requested()) return Stopped();
    if (kept_state_.has_value()) {
      kept_given_ = true;
      return *kept_state_;
    }
    std::lock_guard lock(mu_);
    if (stop_.stop_requested()) return Stopped();
    return running_.Save();
  }

  std::stop_source stop_;
  // Held while a state's sections are requested. Next() need not wait for the sections. Acquired
  // before all other locks.
  Mutex finish_mu_;
  Mutex kept_mu_;  // taken before mu_
  std::optional<absl::StatusOr<UnfinishedState>> kept_state_ GUARDED_BY(kept_mu_);
  bool kept_given_ GUARDED_BY(kept_mu_) = false;  // Save() returned kept_state_
  TimedMutex mu_;                                 // held while an element is made
  RunningDataset running_;  // used while mu_ is held, except for what any thread may call
  int64_t quick_ = 0;  // quick elements in a row; used with mu_ held or while no run is under way
  NextResult made_in_background_;  // by background_; used by the thread that calls Next()
  // The last member, because it uses the members above.
  BackgroundTask background_{[this] { ProduceInBackground(); }};
};

absl::StatusOr<std::unique_ptr<LocalIterator>> Started(const Dataset& dataset,
                                                       std::optional<uint64_t> seed,
                                                       std::optional<int64_t> epoch, Pool* output) {
  auto made =
      std::make_unique<LocalIterator>(dataset, seed.value_or(RandomNumber()), epoch, output);
  RETURN_IF_ERROR(made->Start());
  return made;
}

}  // namespace

absl::StatusOr<std::unique_ptr<InterruptibleIterator>> MakeInterruptible(
    const Dataset& dataset, IteratorOptions options, std::optional<int64_t> epoch, Pool* output) {
  return Started(dataset, options.seed, epoch, output);
}

absl::StatusOr<Iterator> MakeIteratorInto(Pool& output, const Dataset& dataset, uint64_t seed,
                                          int64_t epoch) {
  ASSIGN_OR_RETURN(std::unique_ptr<IteratorImpl> made, Started(dataset, seed, epoch, &output));
  return Iterator(std::move(made));
}

absl::StatusOr<Iterator> Dataset::MakeIterator(IteratorOptions options) const {
  // Equal seeds produce equal orders.
  const auto epoch = options.seed.has_value() ? std::optional<int64_t>(0) : std::nullopt;
  ASSIGN_OR_RETURN(std::unique_ptr<IteratorImpl> made, MakeInterruptible(*this, options, epoch));
  return Iterator(std::move(made));
}

ElementRange Dataset::Elements(IteratorOptions options) const {
  return ElementRange(MakeIterator(options));
}

void ElementRange::Advance() {
  current_.reset();
  if (over_) return;
  if (!iterator_.ok()) {
    over_ = true;
    current_.emplace(iterator_.status());
    return;
  }
  NextResult next = iterator_->Next();
  if (!next.ok()) {
    over_ = absl::IsCancelled(next.status()) || absl::IsFailedPrecondition(next.status()) ||
            IsExhausted(next.status());
    current_.emplace(next.status());
  } else if (next->has_value()) {
    current_.emplace(**std::move(next));
  } else {
    over_ = true;
  }
}

}  // namespace penstock
