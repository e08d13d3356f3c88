// SPDX-License-Identifier: Apache-2.0
// The engine's thread: its loop, its sleep and its end.
#include "dataplane/transfer/ucx/engine.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "control/sync/mutex.h"
#include "control/sync/random.h"
#include "control/sync/thread.h"
#include "dataplane/transfer/ucx/address.h"
#include "dataplane/transfer/ucx/engine_work.h"
#include "include/status_macros.h"

namespace penstock::transfer::ucx {
namespace {

constexpr int kProgressesPerTurn = 16;
// Sleeps are limited because UCX does not promise that its descriptor reports every event.
constexpr std::chrono::milliseconds kMaxSleep(1000);
constexpr std::chrono::milliseconds kMaxSleepWhileBusy(10);
// How long closing may take when the engine stops.
constexpr std::chrono::seconds kEngineStopTimeout(1);

// About as long as it takes to fall asleep and wake up.
constexpr std::chrono::microseconds kSpin(20);
constexpr int kMostWastedSpins = 8;

// Stops all engines at exit. UCX's libraries end with the program, before objects that are never
// destroyed; no engine may run then.
class Running {
 public:
  void Add(const std::shared_ptr<Engine>& engine) {
    MutexLock lock(mu_);
    if (!std::exchange(hooked_, true)) std::atexit([] { The().StopAll(); });
    std::erase_if(engines_, [](const std::weak_ptr<Engine>& one) { return one.expired(); });
    engines_.push_back(engine);
  }
  static Running& The() {
    static Running& running = *new Running;
    return running;
  }

 private:
  void StopAll() {
    MutexLock lock(mu_);
    const std::vector<std::weak_ptr<Engine>> engines = std::exchange(engines_, {});
    lock.unlock();
    for (const std::weak_ptr<Engine>& one : engines) {
      const std::shared_ptr<Engine> engine = one.lock();
      if (engine != nullptr && engine->runs()) engine->Stop();
    }
  }

  Mutex mu_;
  bool hooked_ GUARDED_BY(mu_) = false;
  std::vector<std::weak_ptr<Engine>> engines_ GUARDED_BY(mu_);
};

}  // namespace

Engine::Engine(Resources& resources, Lanes lanes, LinkFactory link_factory)
    : resources_(resources),
      lanes_(lanes),
      link_factory_(std::move(link_factory)),
      number_(RandomNumber()),
      ports_(lanes == Lanes::kTcp ? Ports({}) : Ports::OfThisMachine()) {}

Engine::~Engine() {
  Stop();
}

absl::StatusOr<std::shared_ptr<Engine>> Engine::Start(Resources& resources, Lanes lanes,
                                                      LinkFactory link_factory) {
  std::shared_ptr<Engine> engine(new Engine(resources, lanes, std::move(link_factory)));
  ASSIGN_OR_RETURN(engine->worker_, resources.fabric.MakeWorker(*engine));
  engine->address_ = EncodeAddress(engine->worker_->address());
  ASSIGN_OR_RETURN(engine->thread_,
                   StartThread("serving links over ucx", [self = engine.get()] { self->Run(); }));
  Running::The().Add(engine);
  return engine;
}

void Engine::Stop() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    if (std::exchange(asleep_, false)) worker_->Wake();
  }
  if (thread_.get_id() == CurrentThread()) return;  // an event ends the program
  MutexLock lock(stop_mu_);
  if (thread_.joinable()) thread_.join();
}

bool Engine::stopped() {
  MutexLock lock(mu_);
  return stopped_;
}

void Engine::Call(const std::shared_ptr<Link>& link) {
  MutexLock lock(mu_);
  if (stopped_ || std::exchange(link->called_, true)) return;
  calls_.Push(link);
  if (std::exchange(asleep_, false)) worker_->Wake();
}

void Engine::SetDeadline(Link& link, Clock::time_point deadline) {
  link.deadline_ = deadline;
  next_deadline_ = std::min(next_deadline_, deadline);
}

void Engine::Run() {
  while (true) {
    {
      MutexLock lock(mu_);
      if (stopping_) break;
    }
    const bool busy = Turn();
    const Clock::time_point now = Clock::now();
    RunDeadlines(now);
    LookAtPorts(now);
    if (busy) {
      busy_at_ = now;
    } else if (wasted_spins_ >= kMostWastedSpins || now - busy_at_ > kSpin) {
      Sleep();
    }
  }
  End();
}

bool Engine::Turn() {
  bool busy = false;
  for (int i = 0; i < kProgressesPerTurn && worker_->Progress(); ++i) busy = true;
  busy |= HandleArrived();
  return RunCalls() || busy;
}

void Engine::Sleep() {
  const Clock::time_point now = Clock::now();
  const auto until_deadline =
      next_deadline_ == Clock::time_point::max()
          ? kMaxSleep
          : std::chrono::ceil<std::chrono::milliseconds>(next_deadline_ - now);
  const auto most = under_way_ > 0 ? kMaxSleepWhileBusy : kMaxSleep;
  {
    MutexLock lock(mu_);
    if (!calls_.empty() || stopping_) return;
    asleep_ = true;
  }
  worker_->Sleep(
      static_cast<int>(std::clamp(until_deadline, std::chrono::milliseconds(0), most).count()));
  {
    MutexLock lock(mu_);
    asleep_ = false;
  }
  const Clock::time_point woken = Clock::now();
  // Spinning would have found the event, so it is worth another try.
  wasted_spins_ = woken - now < 2 * kSpin ? 0 : wasted_spins_ + 1;
  busy_at_ = woken;
}

bool Engine::RunCalls() {
  MutexLock lock(mu_);
  const size_t count = calls_.size();
  for (size_t i = 0; i < count; ++i) {
    const std::shared_ptr<Link> link = calls_.Pop();
    link->called_ = false;
    lock.unlock();
    link->OnCall();
    lock.lock();
  }
  return count > 0;
}

void Engine::RunDeadlines(Clock::time_point now) {
  if (now < next_deadline_) return;
  next_deadline_ = Clock::time_point::max();
  for (const auto& [key, link] : links_) {
    if (link->deadline_ <= now) {
      link->deadline_ = Clock::time_point::max();
      due_.push_back(link);
    }
    next_deadline_ = std::min(next_deadline_, link->deadline_);
  }
  for (const std::unique_ptr<Fetching>& fetching : fetchings_) {
    if (!fetching->active) continue;
    if (fetching->deadline <= now) {
      fetching->deadline = Clock::time_point::max();
      unusable_ = true;
      Fail(fetching->peer, absl::DeadlineExceededError("an element did not arrive in time"));
    }
    next_deadline_ = std::min(next_deadline_, fetching->deadline);
  }
  FailUnanswered(now);
  std::erase_if(held_, [&](const Held& held) { return held.until <= now; });
  for (const Held& held : held_) next_deadline_ = std::min(next_deadline_, held.until);
  for (const std::shared_ptr<Link>& link : due_) {
    if (link->number_ != 0) link->OnDeadline();
  }
  due_.clear();
}

bool Engine::ClosePeers() {
  size_t closing = 0;
  for (const auto& [number, peer] : peers_) {
    Close(*peer);
    closing += MayClose(*peer);
  }
  if (!ProgressUntil([&] { return closed_.size() == closing; }) || closing < peers_.size()) {
    return false;
  }
  struct Flushing final : Work {
    void OnDone(const absl::Status&) override { done = true; }
    bool done = false;
  };
  // UCX may still use it if the flush is not done.
  auto flushing = std::make_unique<Flushing>();
  const bool flushed = worker_->Flush(*flushing) || ProgressUntil([&] { return flushing->done; });
  if (!flushed) [[maybe_unused]]
    const Flushing* kept = flushing.release();
  return flushed;
}

template <class Condition>
bool Engine::ProgressUntil(Condition condition) {
  const Clock::time_point until = Clock::now() + kEngineStopTimeout;
  while (!condition()) {
    if (Clock::now() > until) return false;
    if (!worker_->Progress()) worker_->Sleep(1);
  }
  return true;
}

void Engine::End() {
  const bool clean = ClosePeers();
  while (!inbox_.empty()) {
    const Incoming incoming = inbox_.Pop();
    if (incoming.offered != nullptr) worker_->Release(incoming.offered);
  }
  Fifo<std::shared_ptr<Link>> calls;
  {
    MutexLock lock(mu_);
    stopped_ = true;
    std::swap(calls, calls_);
  }
  links_.clear();
  if (!clean) {
    // UCX 1.13 aborts if a worker object is destroyed while a peer connects to it
    // (openucx/ucx#8175). The slots of pending work are then never returned.
    worker_.release();
    for (std::unique_ptr<Sending>& sending : sendings_) sending.release();
    for (std::unique_ptr<Fetching>& fetching : fetchings_) fetching.release();
  }
  worker_.reset();
  // Only now can UCX no longer touch the memory of unfinished work.
  peers_.clear();
  fetched_ = {};
  sendings_.clear();
  fetchings_.clear();
  held_.clear();
}

}  // namespace penstock::transfer::ucx
