// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/transport.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "dataplane/transfer/tcp/listener.h"
#include "dataplane/transfer/tcp/loop.h"
#include "dataplane/transfer/tcp/receive_socket.h"
#include "dataplane/transfer/tcp/resolver.h"
#include "dataplane/transfer/tcp/wire.h"
#include "include/status_macros.h"

namespace penstock::transfer {
namespace tcp {
namespace {

class TcpReceiveLink : public ReceiveLink {
 public:
  explicit TcpReceiveLink(std::shared_ptr<ReceiveSocket> socket) : socket_(std::move(socket)) {}
  ~TcpReceiveLink() override { socket_->Close(); }
  void Grant(Credits credits) override { socket_->Grant(credits); }
  void Recall() override { socket_->Recall(); }

 private:
  const std::shared_ptr<ReceiveSocket> socket_;
};

class TcpTransport : public Transport {
 public:
  ~TcpTransport() override {
    for (const std::shared_ptr<Loop>& loop : loops_) loop->Stop();
  }
  std::string_view name() const override { return "tcp"; }
  int rank() const override { return 80; }  // before grpc, after all transports without TCP sockets

  absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenOptions& options,
                                                   Listener::Accept accept) override {
    return StartListener(options, std::move(accept));
  }

  absl::Status Check(std::string_view, std::string_view compatibility) override {
    return CheckOffer(compatibility, kWireVersions);
  }

  absl::StatusOr<std::unique_ptr<ReceiveLink>> Dial(
      std::string_view address, DialOptions options,
      std::shared_ptr<ReceiveEvents> events) override {
    ASSIGN_OR_RETURN(HostAndPort where, ParseAddress(address));
    ASSIGN_OR_RETURN(std::vector<std::shared_ptr<Loop>> loops,
                     ClientLoops(options.tcp.connections));
    auto socket = std::make_shared<ReceiveSocket>(std::move(loops), std::string(address),
                                                  std::move(options), std::move(events));
    socket->Start();
    resolver_.LookUp(std::move(where), [socket](absl::StatusOr<std::vector<Endpoint>> endpoints) {
      socket->Connect(std::move(endpoints));
    });
    return std::make_unique<TcpReceiveLink>(std::move(socket));
  }

 private:
  // Returns one loop for the first connections of all links that this process dials, one for their
  // second connections, and so on. Each loop is started by the first link that needs it.
  absl::StatusOr<std::vector<std::shared_ptr<Loop>>> ClientLoops(int connections) {
    const auto count = static_cast<size_t>(std::clamp(connections, 1, kMaxTcpConnections));
    MutexLock lock(mu_);
    while (loops_.size() < count) {
      ASSIGN_OR_RETURN(loops_.emplace_back(),
                       Loop::Start(loops_.empty() ? Loop::ServedBy::kWaitingThreads
                                                  : Loop::ServedBy::kOwnThread));
    }
    return std::vector<std::shared_ptr<Loop>>(loops_.begin(), loops_.begin() + count);
  }

  Mutex mu_;
  std::vector<std::shared_ptr<Loop>> loops_ GUARDED_BY(mu_);
  Resolver resolver_;  // destroyed first: it calls sockets, which call the loop
};

}  // namespace
}  // namespace tcp

std::unique_ptr<Transport> MakeTcpTransport() {
  return std::make_unique<tcp::TcpTransport>();
}

}  // namespace penstock::transfer
