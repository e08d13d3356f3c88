// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/transport.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "dataplane/transfer/tcp/listener.h"
#include "dataplane/transfer/tcp/loop.h"
#include "dataplane/transfer/tcp/receive_socket.h"
#include "dataplane/transfer/tcp/resolver.h"
#include "dataplane/transfer/tcp/wire.h"
#include "penstock/status.h"

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
    if (loop_ != nullptr) loop_->Stop();
  }
  std::string_view name() const override { return "tcp"; }
  int rank() const override { return 80; }  // before grpc, behind all that needs no socket

  absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenOptions& options,
                                                   Listener::Accept accept) override {
    return StartListener(options, std::move(accept));
  }

  absl::Status Check(std::string_view address, std::string_view compatibility) override {
    if (compatibility == absl::StrCat("v", kWireVersion)) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat("the worker at ", std::string(address), " speaks '",
                                            std::string(compatibility), "', this client 'v",
                                            kWireVersion, "'"));
  }

  absl::StatusOr<std::unique_ptr<ReceiveLink>> Dial(
      std::string_view address, DialOptions options,
      std::shared_ptr<ReceiveEvents> events) override {
    PENSTOCK_ASSIGN_OR_RETURN(HostAndPort where, ParseAddress(address));
    PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<Loop> loop, ClientLoop());
    auto socket = std::make_shared<ReceiveSocket>(std::move(loop), std::string(address),
                                                  std::move(options), std::move(events));
    socket->Start();
    resolver_.LookUp(std::move(where), [socket](absl::StatusOr<std::vector<Endpoint>> endpoints) {
      socket->Connect(std::move(endpoints));
    });
    return std::make_unique<TcpReceiveLink>(std::move(socket));
  }

 private:
  // One for all links that this process dials, from the first one on.
  absl::StatusOr<std::shared_ptr<Loop>> ClientLoop() {
    MutexLock lock(mu_);
    if (loop_ == nullptr) {
      PENSTOCK_ASSIGN_OR_RETURN(loop_, Loop::Start());
    }
    return loop_;
  }

  Mutex mu_;
  std::shared_ptr<Loop> loop_ GUARDED_BY(mu_);
  Resolver resolver_;  // the first to go: it calls sockets, which call the loop
};

}  // namespace
}  // namespace tcp

std::unique_ptr<Transport> MakeTcpTransport() {
  return std::make_unique<tcp::TcpTransport>();
}

}  // namespace penstock::transfer
