// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/listener.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/observe/connection_pace.h"
#include "control/observe/refused.h"
#include "control/protocol/host_port.h"
#include "control/sync/clock.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "dataplane/transfer/tcp/loop.h"
#include "dataplane/transfer/tcp/send_socket.h"
#include "dataplane/transfer/tcp/socket.h"
#include "dataplane/transfer/tcp/wire.h"
#include "include/status_macros.h"

namespace penstock::transfer::tcp {
namespace {

// The pause after an attempt to accept a connection failed for lack of a descriptor.
constexpr std::chrono::milliseconds kAcceptPause(100);
// How many connections are accepted before the existing ones are served. The limit ensures that a
// hello that has arrived is read before its sender could be dropped as one client too many.
constexpr int kAcceptsPerTurn = 16;

// Accepts connections and keeps the links that have not ended.
class Acceptor : public Loop::Member,
                 public SendSocket::Owner,
                 public std::enable_shared_from_this<Acceptor> {
 public:
  Acceptor(std::shared_ptr<Loop> loop, Socket socket, Listener::Accept accept,
           UnauthenticatedLimits limits)
      : loop_(std::move(loop)),
        socket_(std::move(socket)),
        accept_(std::move(accept)),
        limits_(limits) {}

  absl::Status Open() { return loop_->Add(socket_, shared_from_this()); }

  // Closes all links, breaks the links whose clients do not read, and returns when no link is left.
  void Close() {
    const absl::Status reason = absl::UnavailableError("the worker has stopped");
    for (const std::shared_ptr<SendSocket>& link : Stop()) link->Close(reason);
    MutexLock lock(mu_);
    const auto none = [this]() REQUIRES(mu_) { return links_.empty(); };
    if (none_.WaitFor(lock, absl::FromChrono(Listener::kStopTimeout), none)) return;
    for (const std::shared_ptr<SendSocket>& link : links_) link->Break(reason);
    none_.Wait(lock, none);
  }
  // Call this after Close(), when the loop has stopped.
  void StopStripes() {
    for (const std::shared_ptr<Loop>& loop : stripe_loops_) loop->Stop();
  }

 private:
  // Prevents new links and returns the existing ones.
  std::vector<std::shared_ptr<SendSocket>> Stop() {
    MutexLock lock(mu_);
    stopped_ = true;
    return links_;
  }

  void OnReady(uint32_t) override {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      absl::StatusOr<Socket> connection = AcceptAt(socket_);
      if (!connection.ok()) {
        CountRefused(Port::kTcp, Refused::kTooMany);
        Admit();
        return loop_->SetDeadline(shared_from_this(), Loop::Clock::now() + kAcceptPause);
      }
      if (!*connection) return Admit();
      if (IsKeptFree(connection->fd())) {
        CountRefused(Port::kTcp, Refused::kTooMany);
        continue;  // closes it
      }
      pace_.Add(connection->Release(), BootTime());
    }
    Admit();
    loop_->Call(shared_from_this());
  }
  // Serves the connections whose turn it is.
  void Admit() {
    for (ConnectionPace::Arrived& one : pace_.Take(BootTime())) {
      Begin(Socket(one.fd), std::move(one.client));
    }
    const absl::Time next = pace_.NextTake();
    if (next == absl::InfiniteFuture()) return Watch();
    // Until then the port is not watched, so connections are accepted together.
    if (std::exchange(watched_, false)) loop_->Remove(socket_, *this);
    const auto left = absl::ToChronoNanoseconds(next - BootTime());
    loop_->SetDeadline(shared_from_this(), Loop::Clock::now() + left);
  }
  void Watch() {
    if (watched_) return;
    watched_ = loop_->Add(socket_, shared_from_this()).ok();
    if (!watched_) loop_->SetDeadline(shared_from_this(), Loop::Clock::now() + kAcceptPause);
  }
  void OnDeadline() override { OnReady(0); }
  bool is_link() const override { return false; }

  void Begin(Socket connection, ClientAddress client) {
    if (unauthenticated_.size() == limits_.count) {
      CountRefused(Port::kTcp, Refused::kTooMany);
      unauthenticated_.front().link->Break(
          absl::ResourceExhaustedError("too many unauthenticated clients"));
      unauthenticated_.erase(unauthenticated_.begin());
    }
    auto link = std::make_shared<SendSocket>(loop_, std::move(connection), *this);
    MutexLock lock(mu_);
    if (stopped_ || !link->Start(limits_.hello_timeout).ok()) return;  // closes the link
    links_.push_back(link);
    unauthenticated_.push_back({std::move(link), std::move(client)});
  }

  absl::StatusOr<std::shared_ptr<SendEvents>> Accept(const Hello& hello,
                                                     std::shared_ptr<SendLink> link) override {
    return accept_(hello, std::move(link));
  }
  std::shared_ptr<SendSocket> FindLink(const StripeKey& key) override {
    MutexLock lock(mu_);
    const auto its = std::find_if(links_.begin(), links_.end(), [&](const auto& link) {
      return key != StripeKey() && link->key() == key;
    });
    return its == links_.end() ? nullptr : *its;
  }
  absl::StatusOr<std::shared_ptr<Loop>> LoopOf(uint32_t stripe) override {
    if (stripe >= kMaxTcpConnections - 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("a link has at most ", kMaxTcpConnections, " connections"));
    }
    while (stripe_loops_.size() <= stripe) {
      ASSIGN_OR_RETURN(stripe_loops_.emplace_back(), Loop::Start(Loop::ServedBy::kOwnThread));
    }
    return stripe_loops_[stripe];
  }
  void OnAuthenticated(SendSocket& socket) override {
    const auto its = FindUnauthenticated(socket);
    if (its == unauthenticated_.end()) return;
    const bool admits = pace_.Proved(its->client);
    unauthenticated_.erase(its);
    if (admits) loop_->Call(shared_from_this());
  }
  void OnOver(SendSocket& socket) override {
    if (const auto its = FindUnauthenticated(socket); its != unauthenticated_.end()) {
      unauthenticated_.erase(its);
    }
    {
      MutexLock lock(mu_);
      std::erase_if(links_, [&](const auto& one) { return one.get() == &socket; });
    }
    none_.NotifyAll();
  }

  struct Unauthenticated {
    std::shared_ptr<SendSocket> link;
    ClientAddress client;
  };
  std::vector<Unauthenticated>::iterator FindUnauthenticated(const SendSocket& socket) {
    return std::ranges::find_if(
        unauthenticated_, [&](const Unauthenticated& one) { return one.link.get() == &socket; });
  }

  const std::shared_ptr<Loop> loop_;
  const Socket socket_;
  const Listener::Accept accept_;
  const UnauthenticatedLimits limits_;
  // Used only by the thread that serves the loop.
  ConnectionPace pace_{Port::kTcp, limits_.pace};
  bool watched_ = true;
  std::vector<Unauthenticated> unauthenticated_;  // oldest first
  // Indexed by the number of a further connection.
  std::vector<std::shared_ptr<Loop>> stripe_loops_;

  Mutex mu_;
  Condition none_;
  bool stopped_ GUARDED_BY(mu_) = false;
  std::vector<std::shared_ptr<SendSocket>> links_ GUARDED_BY(mu_);
};

class TcpListener : public Listener {
 public:
  TcpListener(std::shared_ptr<Loop> loop, std::shared_ptr<Acceptor> acceptor, std::string address)
      : loop_(std::move(loop)), acceptor_(std::move(acceptor)), address_(std::move(address)) {}
  ~TcpListener() override {
    acceptor_->Close();
    loop_->Stop();
    acceptor_->StopStripes();
  }
  std::string address() const override { return address_; }
  std::string compatibility() const override { return ToString(kWireVersions); }

 private:
  const std::shared_ptr<Loop> loop_;
  const std::shared_ptr<Acceptor> acceptor_;
  const std::string address_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> StartListener(const ListenOptions& options,
                                                        Listener::Accept accept,
                                                        UnauthenticatedLimits limits) {
  const HostAndPort where{.host = control::WithoutBrackets(options.host), .port = options.port};
  ASSIGN_OR_RETURN(Bound bound, ListenAt(where));
  ASSIGN_OR_RETURN(std::shared_ptr<Loop> loop, Loop::Start());
  const std::string address = control::JoinHostPort(where.host, bound.port);
  auto acceptor =
      std::make_shared<Acceptor>(loop, std::move(bound.socket), std::move(accept), limits);
  RETURN_IF_ERROR(acceptor->Open());
  return std::make_unique<TcpListener>(std::move(loop), std::move(acceptor), address);
}

}  // namespace penstock::transfer::tcp
