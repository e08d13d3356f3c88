// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/engine.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "control/sync/mutex.h"
#include "control/sync/random.h"
#include "control/sync/thread.h"
#include "dataplane/transfer/ucx/address.h"
#include "include/status_macros.h"

namespace penstock::transfer::ucx {
namespace {

constexpr int kProgressesPerTurn = 16;
// Sleeps are limited because UCX does not promise that its descriptor reports every event.
constexpr std::chrono::milliseconds kMaxSleep(1000);
constexpr std::chrono::milliseconds kMaxSleepWhileBusy(10);
// How long closing may take when the engine stops.
constexpr std::chrono::seconds kEngineStopTimeout(1);

// How long the thread spins before it sleeps: about as long as falling asleep and waking up take.
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
    : link_factory_(std::move(link_factory)),
      number_(RandomNumber()),
      active_{.resources = resources},
      calls_(active_),
      links_(active_),
      peers_(active_, lanes, links_),
      outbox_(active_, peers_),
      inbox_(active_, links_, peers_) {}

Engine::~Engine() {
  Stop();
}

absl::StatusOr<std::shared_ptr<Engine>> Engine::Start(Resources& resources, Lanes lanes,
                                                      LinkFactory link_factory) {
  std::shared_ptr<Engine> engine(new Engine(resources, lanes, std::move(link_factory)));
  ASSIGN_OR_RETURN(engine->active_.worker, resources.fabric.MakeWorker(*engine));
  engine->address_ = EncodeAddress(engine->active_.worker->address());
  ASSIGN_OR_RETURN(engine->thread_,
                   StartThread("serving links over ucx", [self = engine.get()] { self->Run(); }));
  Running::The().Add(engine);
  return engine;
}

void Engine::Stop() {
  calls_.RequestStop();
  if (thread_.get_id() == CurrentThread()) return;  // an event ends the program
  MutexLock lock(stop_mu_);
  if (thread_.joinable()) thread_.join();
}

// --- Links -------------------------------------------------------------------------

absl::Status Engine::Dial(const std::shared_ptr<Link>& link, std::string_view address,
                          std::string_view hello, uint32_t greeting_flags) {
  ASSIGN_OR_RETURN(const std::string bytes, DecodeAddress(address));
  ASSIGN_OR_RETURN(const Worker::Peer peer, peers_.At(std::string(address), bytes));
  links_.Add(link, {number_, ++last_link_}, peer);
  outbox_.Greet(*link,
                {.connection = peers_.ConnectionOf(peer), .address = address_, .hello = hello},
                greeting_flags);
  return absl::OkStatus();
}

void Engine::Send(Link& link, std::string_view text) {
  if (link.number_ != 0) outbox_.Send(link, text);
}

void Engine::Send(Link& link, MessageType type, absl::Span<const std::byte> block, Loan loan) {
  if (link.number_ != 0) outbox_.Send(link, type, block, std::move(loan));
}

void Engine::SendBroken(Link& link) {
  if (link.number_ != 0) outbox_.SendBroken(link);
}

void Engine::Remove(Link& link) {
  const std::shared_ptr<Link> removed = links_.Remove(link);
  if (removed != nullptr && !links_.Uses(link.peer_)) inbox_.ShortenFetches(link.peer_);
}

// --- The thread's rounds -----------------------------------------------------------

void Engine::Run() {
  while (!calls_.stop_requested()) {
    const bool busy = Turn();
    const Clock::time_point now = Clock::now();
    RunDeadlines(now);
    peers_.LookAtPorts(now);
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
  for (int i = 0; i < kProgressesPerTurn && active_.worker->Progress(); ++i) busy = true;
  busy |= HandleArrived();
  return calls_.RunCalls() || busy;
}

void Engine::OnMessage(std::string_view head, absl::Span<const std::byte> data) {
  inbox_.OnMessage(head, data);
}

bool Engine::OnOffered(std::string_view head, size_t bytes, Offered offered) {
  return inbox_.OnOffered(head, bytes, offered);
}

void Engine::OnFailed(Worker::Peer peer, const absl::Status& status) {
  peers_.FailLater(peer, status);
}

bool Engine::HandleArrived() {
  bool found = false;
  for (; !inbox_.empty(); found = true) {
    Incoming incoming = inbox_.Pop();
    if (incoming.head.kind == Head::kGreeting) {
      HandleGreeting(incoming);
    } else {
      inbox_.Sort(std::move(incoming));
    }
  }
  found |= inbox_.HandleFetched();
  return peers_.HandleEnded() || found;
}

void Engine::HandleGreeting(const Incoming& incoming) {
  const std::optional<Greeting> greeting = DecodeGreeting(incoming.text());
  const Link::Key key(incoming.head.dialler, incoming.head.link);
  if (!greeting.has_value() || link_factory_ == nullptr || key.second == 0 || links_.Has(key))
    return;
  const absl::StatusOr<Worker::Peer> peer = peers_.Accept(key.first, *greeting);
  if (!peer.ok()) return;
  const std::shared_ptr<Link> link = link_factory_();
  if (link == nullptr) return;
  links_.Add(link, key, *peer);
  link->arrived_ = 1;
  link->two_pieces_ = (incoming.greeting_flags & kWantsTwoPieces) != 0;
  Incoming hello;
  hello.state = Incoming::kReady;
  hello.long_text = std::string(greeting->hello);
  link->OnIncoming(std::move(hello));
}

void Engine::RunDeadlines(Clock::time_point now) {
  if (now < active_.next_deadline) return;
  active_.next_deadline = Clock::time_point::max();
  links_.CollectDue(now);
  inbox_.FailLateFetches(now);
  peers_.FailUnanswered(now);
  outbox_.ReleaseHeld(now);
  links_.CallDue();
}

void Engine::Sleep() {
  const Clock::time_point now = Clock::now();
  const auto until_deadline =
      active_.next_deadline == Clock::time_point::max()
          ? kMaxSleep
          : std::chrono::ceil<std::chrono::milliseconds>(active_.next_deadline - now);
  const auto most = active_.under_way > 0 ? kMaxSleepWhileBusy : kMaxSleep;
  if (!calls_.Sleep(std::clamp(until_deadline, std::chrono::milliseconds(0), most))) return;
  const Clock::time_point woken = Clock::now();
  // Spinning would have found the event, so spinning is worth another try.
  wasted_spins_ = woken - now < 2 * kSpin ? 0 : wasted_spins_ + 1;
  busy_at_ = woken;
}

// --- The end -----------------------------------------------------------------------

bool Engine::ClosePeers() {
  const size_t closing = peers_.BeginClosingAll();
  if (!ProgressUntil([&] { return peers_.closed() == closing; }) || closing < peers_.size()) {
    return false;
  }
  struct Flushing final : Work {
    void OnDone(const absl::Status&) override { done = true; }
    bool done = false;
  };
  // If the flush is not done, UCX may still use the worker object.
  auto flushing = std::make_unique<Flushing>();
  const bool flushed =
      active_.worker->Flush(*flushing) || ProgressUntil([&] { return flushing->done; });
  if (!flushed) [[maybe_unused]]
    const Flushing* kept = flushing.release();
  return flushed;
}

template <class Condition>
bool Engine::ProgressUntil(Condition condition) {
  const Clock::time_point until = Clock::now() + kEngineStopTimeout;
  while (!condition()) {
    if (Clock::now() > until) return false;
    if (!active_.worker->Progress()) active_.worker->Sleep(1);
  }
  return true;
}

void Engine::End() {
  const bool clean = ClosePeers();
  inbox_.ReleaseOffered();
  const Fifo<std::shared_ptr<Link>> calls = calls_.End();
  links_.Clear();
  if (!clean) {
    // UCX 1.13 aborts if a worker object is destroyed while a peer connects to it
    // (openucx/ucx#8175). The slots of pending work are then never returned.
    [[maybe_unused]] const Worker* abandoned = active_.worker.release();
    outbox_.Abandon();
    inbox_.Abandon();
  }
  active_.worker.reset();
  // From here on, UCX no longer touches the memory of unfinished work.
  peers_.Clear();
  outbox_.Clear();
  inbox_.Clear();
}

}  // namespace penstock::transfer::ucx
