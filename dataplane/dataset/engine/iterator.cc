// SPDX-License-Identifier: Apache-2.0
// Reading in this process: Dataset::MakeIterator and the range over elements.
#include "penstock/iterator.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "control/sync/random.h"
#include "dataplane/dataset/engine/background_task.h"
#include "dataplane/dataset/engine/epochs.h"
#include "dataplane/dataset/engine/interruptible.h"
#include "dataplane/dataset/engine/iterator_output.h"
#include "dataplane/dataset/engine/kept_across_passes.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "dataplane/dataset/engine/pending_deliveries.h"
#include "dataplane/dataset/engine/profile.h"
#include "dataplane/dataset/engine/state_head.h"
#include "dataplane/dataset/engine/state_sections.h"
#include "dataplane/dataset/engine/states_of_ranks.h"
#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/graph/registry.h"
#include "dataplane/dataset/graph/state_bytes.h"
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

bool IsElsewhere(const Dataset::Node& node) {
  const NodeKind* kind = FindNodeKind(node.op);
  return kind != nullptr && kind->elsewhere;
}

bool WaitsForOthers(const Dataset::Node& root) {
  bool waits = false;
  VisitNodes(root, [&](const Dataset::Node& node, int) { waits |= IsElsewhere(node); });
  return waits;
}

class LocalIterator final : public InterruptibleIterator {
 public:
  LocalIterator(Dataset dataset, uint64_t seed, std::optional<int64_t> epoch, Pool* output)
      : dataset_(std::move(dataset)),
        counts_epochs_(!epoch.has_value()),
        profile_(NodeOf(dataset_)),
        waits_for_others_(WaitsForOthers(*NodeOf(dataset_))),
        counts_deliveries_(waits_for_others_ && !IsElsewhere(*NodeOf(dataset_))) {
    context_.profile = &profile_;
    context_.seed = seed;
    context_.repetition = counts_epochs_ ? BeginEpoch(dataset_) : *epoch;
    context_.of_dataset = true;
    context_.output = output;
    context_.output_ahead = true;
    context_.stop = stop_.get_token();
    context_.commits = &commits_;
    context_.kept = &kept_by_nodes_;
    context_.states = states_;
  }

  ~LocalIterator() override { stop_.request_stop(); }

  absl::Status Start() { return Build(); }

  NextResult Next(absl::Time deadline) override {
    if (deadline == absl::InfiniteFuture() && !background_.under_way()) {
      std::lock_guard lock(mu_);
      return Deliver(Produce());
    }
    std::optional<NextResult> next = NextInBackground(deadline);
    if (!next.has_value()) return absl::DeadlineExceededError("the next element is not ready yet");
    return *std::move(next);
  }

  absl::Status CheckStep(int64_t step) const override {
    const int64_t next = step_;
    if (step == next) return absl::OkStatus();
    return absl::OutOfRangeError(
        absl::StrCat("step ", step, " was requested, but step ", next, " is next"));
  }

  std::optional<NextResult> NextBy(absl::Time until) override {
    if (background_.under_way() || !IsSoonMade()) return NextInBackground(until);
    std::lock_guard lock(mu_);
    return Deliver(ProduceTimed());
  }

  // Waits only while another thread is in Next() without a deadline. While an element is made under
  // a deadline, Save() uses the position that was kept before that element.
  absl::StatusOr<State> Save() override {
    MutexLock finish_lock(finish_mu_);
    ASSIGN_OR_RETURN(const Unfinished unfinished, SaveUnfinished());
    return Finish(unfinished);
  }

  // Waits only for the element that is being made; Stop() ends that wait.
  absl::Status Restore(const State& state) override {
    if (IsOfAllRanks(state)) return RestoreAll(state);
    StateReader reader(AfterMagic(state));
    ASSIGN_OR_RETURN(const StateHead head, ReadStateHead(reader, state));
    ASSIGN_OR_RETURN(StateSections sections, ReadStateSections(reader));
    StateExchange::TakenUp taken_up;
    taken_up.of.push_back(std::move(sections));
    return TakeUp(head, reader.rest(), std::move(taken_up), {});
  }

  absl::Status Commit(const State& state) override {
    StateReader reader(AfterMagic(state));
    ASSIGN_OR_RETURN(const StateHead head, ReadStateHead(reader, state));
    {
      MutexLock lock(origin_mu_);
      if (head.origin != origin_ && restored_ != std::pair(head.origin, head.save)) {
        return absl::FailedPreconditionError(
            "the state does not belong to this iterator: it was saved by a different iterator, or "
            "by this one before its last Restore(); commit it on the iterator that saved it, "
            "or Restore() it first");
      }
    }
    return commits_.Commit(head.save);
  }

  absl::Status Stop(absl::Duration bound) override {
    stop_.request_stop();
    const absl::Time deadline = BootTime() + bound;
    commits_.Stop(bound);
    if (!mu_.TryLockFor(deadline - BootTime()))
      return absl::DeadlineExceededError("an element is still being produced");
    mu_.unlock();
    return absl::OkStatus();
  }

  IteratorStats Stats() const override { return profile_.Stats(); }

 private:
  // Restores the states of all ranks (penstock/states_of_ranks.h).
  absl::Status RestoreAll(const State& all) {
    ASSIGN_OR_RETURN(const StatesOfRanks ranks, ReadStatesOfRanks(all));
    StateExchange::TakenUp taken_up{
        .all_ranks = true, .name = ranks.name, .run_id = ranks.options.run_id};
    // Nodes after Distribute get the positions of the rank that had read the least.
    std::optional<int64_t> least;
    StateHead head;
    std::string_view position;
    for (const State& state : ranks.states) {
      StateReader reader(AfterMagic(state));
      ASSIGN_OR_RETURN(const StateHead of, ReadStateHead(reader, state));
      ASSIGN_OR_RETURN(StateSections sections, ReadStateSections(reader));
      if (sections.empty() && ranks.states.size() > 1) {
        return absl::InvalidArgumentError(
            "one of the states has no position of a Distribute, or nodes after Distribute read "
            "ahead when it was saved: it cannot be merged with the other states");
      }
      int64_t far = 0;
      for (const auto& [node, section] : sections) far += section.at;
      if (!least.has_value() || far < *least) {
        least = far;
        head = of;
        position = reader.rest();
      }
      taken_up.of.push_back(std::move(sections));
    }
    return TakeUp(head, position, std::move(taken_up), ranks.options);
  }

  static absl::Status Stopped() { return absl::CancelledError("the iterator was stopped"); }

  absl::Status Build() {  // REQUIRES: mu_ held, or no other thread uses this
    ready_ = nullptr;
    ASSIGN_OR_RETURN(nodes_, BuildIterator(dataset_, context_));
    ready_ = dynamic_cast<ReadyHint*>(nodes_.get());
    return absl::OkStatus();
  }

  bool IsSoonMade() {  // REQUIRES: background_ is not under way
    if (quick_ >= kManyQuick) return true;
    std::lock_guard lock(mu_);
    return ready_ != nullptr && ready_->Ready();
  }

  NextResult ProduceTimed() {  // REQUIRES: mu_ held
    const auto begin = SteadyClock::now();
    NextResult next = Produce();
    const bool quick = !waits_for_others_ && SteadyClock::now() - begin < kQuick;
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
    // If Save() did not return the kept state, the next state reuses its number. The kept state
    // then takes no place among the states that can be committed.
    if (!kept_given_) --saves_;
    kept_state_.reset();
    return Deliver(std::move(next));
  }

  NextResult Produce() {  // REQUIRES: mu_ held
    if (stop_.stop_requested()) return Stopped();
    // If Distribute is the last node, Distribute itself counts its elements as delivered.
    const PendingDeliveries::Scope scope(counts_deliveries_ ? &pending_ : nullptr);
    RETURN_IF_ERROR(EnsureRestored());
    return nodes_->Next();
  }

  // Called before every read and save. Returns the error of a failed Restore(), or applies
  // RestoreOptions::skip_steps.
  absl::Status EnsureRestored() {  // REQUIRES: mu_ held
    RETURN_IF_ERROR(restore_failed_);
    if (skip_steps_ == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const int64_t passed, nodes_->Skip(skip_steps_));
    step_ += passed;
    skip_steps_ = 0;
    return absl::OkStatus();
  }

  absl::Status TakeUp(const StateHead& head, std::string_view position,
                      StateExchange::TakenUp taken_up, const RestoreOptions& options) {
    background_.Await(absl::InfiniteDuration());
    MutexLock finish_lock(finish_mu_);  // its nodes are about to be destroyed
    MutexLock kept_lock(kept_mu_);
    std::lock_guard lock(mu_);
    if (stop_.stop_requested()) return Stopped();
    const bool all_ranks = taken_up.all_ranks;
    GiveUp();
    states_->TakeUp(std::move(taken_up));
    if (absl::Status status = RestoreNodes(head, position, options); !status.ok()) {
      GiveUp();  // some nodes may already be at the state's position
      restore_failed_ = absl::FailedPreconditionError(absl::StrCat(
          "the last Restore() failed, so the iterator has no position to read from; restore "
          "again, or create a new iterator; it failed with ",
          status.ToString()));
      return status;
    }
    restore_failed_ = absl::OkStatus();
    step_ = head.step;
    skip_steps_ = options.skip_steps;
    saves_ = std::max(saves_, head.save);
    MutexLock origin_lock(origin_mu_);
    if (!all_ranks) restored_ = {head.origin, head.save};
    return absl::OkStatus();
  }

  // Drops the nodes, their elements and their saved positions.
  void GiveUp() REQUIRES(kept_mu_) {  // REQUIRES: mu_ held
    kept_state_.reset();
    ready_ = nullptr;
    nodes_.reset();
    pending_.clear();
    MutexLock origin_lock(origin_mu_);
    origin_ = RandomNumber();
    restored_.reset();
  }

  absl::Status RestoreNodes(const StateHead& head, std::string_view position,
                            const RestoreOptions& options) {  // REQUIRES: mu_ held
    context_.seed = head.seed;
    if (counts_epochs_) GoOnInEpoch(dataset_, context_.repetition, head.epoch);
    context_.repetition = head.epoch;
    RETURN_IF_ERROR(Build());
    return RestoreEdited(*nodes_, dataset_, position, options.allow);
  }

  NextResult Deliver(NextResult next) {  // REQUIRES: mu_ held
    if (absl::IsCancelled(next.status()) || IsExhausted(next.status())) return next;
    RETURN_IF_ERROR(pending_.Deliver());
    // An error takes the place of an element, so it counts as a step too.
    const bool end = next.ok() && !next->has_value();
    if (!end && restore_failed_.ok()) ++step_;
    return next;
  }

  // Makes an element that Next() may stop waiting for. First keeps the current state, for Save().
  void ProduceInBackground() {
    {
      MutexLock kept_lock(kept_mu_);
      std::lock_guard lock(mu_);
      kept_state_ = SaveLocked();
      kept_given_ = false;
    }
    std::lock_guard lock(mu_);
    made_in_background_ = ProduceTimed();
  }

  // A state without its sections. To fill in the sections, the nodes may have to send requests.
  struct Unfinished {
    StateHead head;
    std::vector<StateExchange::Unfinished> sections;
    std::string position;
  };

  absl::StatusOr<Unfinished> SaveUnfinished() REQUIRES(finish_mu_) {
    MutexLock kept_lock(kept_mu_);
    if (stop_.stop_requested()) return Stopped();
    if (kept_state_.has_value()) {
      kept_given_ = true;
      return *kept_state_;
    }
    std::lock_guard lock(mu_);
    if (stop_.stop_requested()) return Stopped();
    return SaveLocked();
  }

  absl::StatusOr<Unfinished> SaveLocked() {  // REQUIRES: mu_ held
    RETURN_IF_ERROR(EnsureRestored());
    const uint64_t save = ++saves_;
    StateHead head = {
        .save = save, .seed = context_.seed, .epoch = context_.repetition, .step = step_};
    {
      MutexLock lock(origin_mu_);
      head.origin = origin_;
    }
    states_->TakeUnfinished();  // drop the sections of a Save() that failed
    ASSIGN_OR_RETURN(std::string position, SaveIterator(*nodes_, dataset_, save));
    return Unfinished{head, states_->TakeUnfinished(), std::move(position)};
  }

  static absl::StatusOr<State> Finish(const Unfinished& unfinished) {
    StateSections sections;
    for (const StateExchange::Unfinished& its : unfinished.sections) {
      ASSIGN_OR_RETURN(sections[its.node].bytes, its.finish());
      sections[its.node].at = its.at;
    }
    StateWriter writer;
    Write(sections, writer);
    return State{
        absl::StrCat(EncodeStateHead(unfinished.head), writer.bytes(), unfinished.position)};
  }

  const Dataset dataset_;
  const bool counts_epochs_;  // false: the caller gave the epoch
  Profile profile_;
  std::stop_source stop_;
  CommitListeners commits_;
  KeptAcrossPasses kept_by_nodes_;
  // Used while mu_ is held.
  const std::shared_ptr<StateExchange> states_ = std::make_shared<StateExchange>();
  Mutex origin_mu_;  // acquired after all other locks
  uint64_t origin_ GUARDED_BY(origin_mu_) = RandomNumber();
  // Origin and number of the restored state.
  std::optional<std::pair<uint64_t, uint64_t>> restored_ GUARDED_BY(origin_mu_);
  // Held while a state's sections are requested. Next() need not wait for the sections. Acquired
  // before all other locks.
  Mutex finish_mu_;
  Mutex kept_mu_;  // taken before mu_
  std::optional<absl::StatusOr<Unfinished>> kept_state_ GUARDED_BY(kept_mu_);
  bool kept_given_ GUARDED_BY(kept_mu_) = false;  // Save() returned kept_state_
  TimedMutex mu_;                                 // held while an element is made
  RunContext context_;                            // guarded by mu_, as are the members up to saves_
  std::unique_ptr<NodeIterator> nodes_;           // reads context_
  absl::Status restore_failed_;                   // then there are no nodes_
  std::atomic<int64_t> step_ = 0;                 // written while mu_ is held
  int64_t skip_steps_ = 0;
  uint64_t saves_ = 0;
  ReadyHint* ready_ = nullptr;  // nodes_, if it is a ReadyHint; guarded by mu_
  const bool waits_for_others_;
  const bool counts_deliveries_;  // of elements from Distribute
  PendingDeliveries pending_;     // since the last Deliver(); guarded by mu_
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
