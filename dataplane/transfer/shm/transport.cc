// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/shm/transport.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "control/observe/connection_pace.h"
#include "control/observe/event_log.h"
#include "control/observe/refused.h"
#include "control/sync/clock.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/random.h"
#include "dataplane/transfer/shm/host.h"
#include "dataplane/transfer/shm/loop.h"
#include "dataplane/transfer/shm/receive_end.h"
#include "dataplane/transfer/shm/send_end.h"
#include "dataplane/transfer/shm/socket.h"
#include "dataplane/transfer/unauthenticated_limits.h"
#include "include/status_macros.h"

namespace penstock::transfer::shm {
namespace {

constexpr char kScheme[] = "shm:";
// The pause after an attempt to accept a connection failed for lack of a descriptor.
constexpr Loop::Nanoseconds kAcceptPause = 100'000'000;
// How many connections are accepted before the links are served.
constexpr int kAcceptsPerTurn = 256;

// The part of a listener that the loop serves.
class ShmAcceptor : public Loop::Member, public std::enable_shared_from_this<ShmAcceptor> {
 public:
  ShmAcceptor(Loop& loop, Descriptor socket, Listener::Accept accept)
      : loop_(loop), socket_(std::move(socket)), accept_(std::move(accept)) {}

  void Open() { loop_.Add(shared_from_this(), socket_.get(), -1, Loop::Trigger::kEdge); }

  // Stops accepting, and returns when all links have ended.
  void Close() {
    if (!in_creator_) return;
    closing_ = true;
    loop_.Wake();
    MutexLock lock(mu_);
    changed_.Wait(lock, [&]() REQUIRES(mu_) { return closed_; });
    const std::vector<std::shared_ptr<SendEnd>> ends = ends_;
    lock.unlock();
    for (const std::shared_ptr<SendEnd>& end : ends) {
      end->Close(absl::UnavailableError("the worker has stopped"));
    }
    lock.lock();
    const auto none = [this]() REQUIRES(mu_) { return ends_.empty(); };
    if (changed_.WaitFor(lock, absl::FromChrono(Listener::kStopTimeout), none)) return;
    lock.unlock();
    for (const std::shared_ptr<SendEnd>& end : ends) end->Break();
    lock.lock();
    changed_.Wait(lock, none);
  }

  bool Poll(Loop::Nanoseconds now) override {
    if (now < accept_at_) return false;
    AcceptAll();
    return true;
  }
  void OnSocket() override {
    if (accept_at_ == Loop::kNever) AcceptAll();
  }
  void OnPeerEnd() override {}
  void SetSleeps(bool) override {}
  Loop::Nanoseconds deadline() const override { return accept_at_; }
  bool over() const override { return closing_; }
  void OnDropped() override {
    socket_.Reset();
    {
      MutexLock lock(mu_);
      closed_ = true;
    }
    changed_.NotifyAll();
  }

 private:
  void AcceptAll() {
    const absl::Status none = AcceptClients();
    for (const ConnectionPace::Arrived& one : pace_.Take(BootTime())) {
      LetIn(PacketSocket(Descriptor(one.fd)), one.client);
    }
    const bool lacked = std::exchange(lacks_descriptors_, absl::IsResourceExhausted(none));
    accept_at_ = NextAccept(none.ok());
    if (!lacks_descriptors_) return;
    CountRefused(Port::kShm, Refused::kTooMany);
    if (lacked) return;
    StderrEventLog()->Write({"clients_wait", {{"reason", std::string(none.message())}}});
  }
  // `more`: clients may be queued.
  Loop::Nanoseconds NextAccept(bool more) const {
    if (lacks_descriptors_) return Loop::Now() + kAcceptPause;
    if (more) return Loop::Now();
    const absl::Time next = pace_.NextTake();
    if (next == absl::InfiniteFuture()) return Loop::kNever;
    return Loop::Now() + absl::ToInt64Nanoseconds(next - BootTime());
  }
  // Passes clients that are queued to the pace. Returns why there is no other one; OK if there may
  // be more.
  absl::Status AcceptClients() {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      absl::StatusOr<PacketSocket> socket = AcceptFrom(socket_.get());
      if (socket.ok()) {
        pace_.Add((*std::move(socket)).Release().Release(), BootTime());
      } else if (absl::IsPermissionDenied(socket.status())) {  // it belongs to a different user
        CountRefused(Port::kShm, Refused::kUnauthenticated);
      } else {
        return socket.status();
      }
    }
    return absl::OkStatus();
  }
  void LetIn(PacketSocket socket, const ClientAddress& client) {
    const auto accept = [self = shared_from_this(), client](const Hello& hello,
                                                            std::shared_ptr<SendLink> link) {
      auto events = self->accept_(hello, std::move(link));
      if (events.ok() && self->pace_.Proved(client)) self->accept_at_ = Loop::Now();
      return events;
    };
    auto end = std::make_shared<SendEnd>(loop_, std::move(socket), accept);
    end->on_over = [acceptor = shared_from_this(), over = end.get()] { acceptor->Forget(over); };
    {
      MutexLock lock(mu_);
      BreakOldestUnauthenticated();
      ends_.push_back(end);
    }
    end->Join();
  }
  // Breaks the client that has waited longest without a greeting, if there are too many.
  void BreakOldestUnauthenticated() REQUIRES(mu_) {
    const auto unauthenticated = [](const auto& end) { return end->awaits_greeting(); };
    const auto waiting = std::ranges::count_if(ends_, unauthenticated);
    if (static_cast<size_t>(waiting) < UnauthenticatedLimits().count) return;
    CountRefused(Port::kShm, Refused::kTooMany);
    (*std::ranges::find_if(ends_, unauthenticated))->Break();
  }
  void Forget(const SendEnd* over) {
    {
      MutexLock lock(mu_);
      std::erase_if(ends_, [&](const auto& end) { return end.get() == over; });
    }
    changed_.NotifyAll();
  }

  Loop& loop_;
  Descriptor socket_;
  const Listener::Accept accept_;
  std::atomic<bool> closing_{false};
  // Used by the serving thread only.
  ConnectionPace pace_{Port::kShm};
  Loop::Nanoseconds accept_at_ = Loop::kNever;  // until then clients are not accepted one by one
  bool lacks_descriptors_ = false;

  Mutex mu_;
  Condition changed_;
  bool closed_ GUARDED_BY(mu_) = false;
  std::vector<std::shared_ptr<SendEnd>> ends_ GUARDED_BY(mu_);
};

class ShmListener : public Listener {
 public:
  ShmListener(std::string address, std::shared_ptr<ShmAcceptor> acceptor)
      : address_(std::move(address)), acceptor_(std::move(acceptor)) {
    acceptor_->Open();
  }
  ~ShmListener() override { acceptor_->Close(); }
  std::string address() const override { return address_; }
  std::string compatibility() const override { return DescribeHost(); }

 private:
  const std::string address_;
  const std::shared_ptr<ShmAcceptor> acceptor_;
};

class ShmReceiveLink : public ReceiveLink {
 public:
  explicit ShmReceiveLink(std::shared_ptr<ReceiveEnd> end) : end_(std::move(end)) {}
  ~ShmReceiveLink() override { end_->Close(); }
  void Grant(Credits credits) override { end_->Grant(credits); }
  void Recall() override { end_->Recall(); }

 private:
  const std::shared_ptr<ReceiveEnd> end_;
};

class ShmTransport : public Transport {
 public:
  std::string_view name() const override { return "shm"; }
  int rank() const override { return 10; }  // after `local`, where nothing moves

  absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenOptions&,
                                                   Listener::Accept accept) override {
    if (const long bytes = ::sysconf(_SC_PAGESIZE); bytes != static_cast<long>(kPageBytes)) {
      return absl::NotFoundError(absl::StrCat("it needs pages of ", kPageBytes,
                                              " bytes, and this machine has pages of ", bytes));
    }
    ASSIGN_OR_RETURN(Loop * loop, TheLoop());
    const std::string address =  // unique, and cannot be guessed
        absl::StrFormat("%s%016x%016x", kScheme, RandomNumber(), RandomNumber());
    ASSIGN_OR_RETURN(Descriptor socket, ListenAt(NameIn(address)));
    return std::make_unique<ShmListener>(
        address, std::make_shared<ShmAcceptor>(*loop, std::move(socket), std::move(accept)));
  }

  absl::Status Check(std::string_view, std::string_view compatibility) override {
    return CheckSameHost(compatibility, DescribeHost());
  }

  absl::StatusOr<std::unique_ptr<ReceiveLink>> Dial(
      std::string_view address, DialOptions options,
      std::shared_ptr<ReceiveEvents> events) override {
    if (!absl::StartsWith(std::string(address), kScheme)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", std::string(address), "' is not a worker address; use shm:name"));
    }
    ASSIGN_OR_RETURN(Loop * loop, TheLoop());
    auto end = std::make_shared<ReceiveEnd>(*loop, std::string(address), std::move(options),
                                            std::move(events));
    auto link = std::make_unique<ShmReceiveLink>(end);
    end->Dial(NameIn(address));
    return link;
  }

 private:
  static std::string NameIn(std::string_view address) {
    return absl::StrCat("penstock-", std::string(address));
  }

  // Returns the loop of the process, started at first use.
  absl::StatusOr<Loop*> TheLoop() {
    MutexLock lock(mu_);
    if (loop_ == nullptr || !loop_->runs()) {
      ASSIGN_OR_RETURN(loop_, Loop::Start());
    }
    return loop_;
  }

  Mutex mu_;
  Loop* loop_ GUARDED_BY(mu_) = nullptr;  // lasts as long as the process
};

}  // namespace

std::unique_ptr<Transport> MakeShmTransport() {
  return std::make_unique<ShmTransport>();
}

}  // namespace penstock::transfer::shm
