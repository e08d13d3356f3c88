// SPDX-License-Identifier: Apache-2.0
// The Listener over gRPC.
#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "control/dispatcher/server/listener.h"
#include "control/dispatcher/server/service.h"
#include "control/dispatcher/server/stream_rights.h"
#include "control/rpc/accept_loop.h"
#include "control/rpc/connection_watch.h"
#include "control/rpc/credentials.h"
#include "control/rpc/prepare_grpc.h"
#include "control/sync/clock.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

// More streams than one process of Penstock has to its dispatcher; further ones wait in the client.
constexpr int kStreamsPerConnection = 4096;
// Connections without a stream or a call are closed after this time.
constexpr int kIdleMs = 60'000;

void SetLimits(const PortLimits& limits, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(limits.message_bytes));
  builder.SetMaxSendMessageSize(-1);
  builder.SetResourceQuota(grpc::ResourceQuota("dispatcher").Resize(limits.received_bytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(absl::ToInt64Milliseconds(limits.hello_timeout)));
  // Peers that know several addresses ping each second (control/rpc/grpc_dispatcher_stub.cc).
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 500);
  // By default, gRPC measures which size of HTTP/2's windows is good, with a ping for most messages
  // that arrive. Without the pings, heartbeats cost a quarter less CPU time.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
}

class GrpcListener final : public Listener {
 public:
  GrpcListener(std::unique_ptr<Authenticator> authenticator, std::unique_ptr<ConnectionWatch> watch,
               const PortLimits& limits)
      : authenticator_(std::move(authenticator)),
        bounds_(limits, [this](const std::string& peer) { connections_->Proved(peer); }),
        rights_(authenticator_.get()),
        watch_(std::move(watch)) {}
  ~GrpcListener() override {
    if (server_ == nullptr) return;
    Shutdown();
    server_->Wait();
  }

  absl::Status Listen(const DispatcherConfig& config) {
    const auto of_clients =
        config.auth_file.empty() ? ClientCertificates::kNotAsked : ClientCertificates::kAsked;
    ASSIGN_OR_RETURN(credentials_, ServerCredentials(config.tls, of_clients));
    ASSIGN_OR_RETURN(connections_, AcceptLoop::Listen(config.host, config.port, Port::kDispatcher,
                                                      bounds_.limits().pace));
    return absl::OkStatus();
  }

  absl::Status Serve(Core* core) override {
    service_.emplace(core, authenticator_.get(), &bounds_, &rights_, watch_.get());
    PrepareGrpc();
    grpc::ServerBuilder builder;
    AcceptLoop::Take take = AcceptLoop::Into(builder, credentials_);
    builder.RegisterCallbackGenericService(&*service_);
    SetLimits(bounds_.limits(), builder);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return absl::InternalError("gRPC cannot start a server");
    return connections_->Start(watch_->Watching(connections_->pace(), std::move(take)));
  }

  int port() const override { return connections_->port(); }
  absl::StatusOr<Caller> Identify(const std::string& token, const std::string& address) override {
    return authenticator_->Identify({.token = token, .certificate_names = {}, .address = address});
  }
  void Sweep() override { bounds_.Sweep(BootTime()); }
  void SweepRights() override { rights_.Sweep(); }
  void Shutdown() override {
    connections_->Stop();
    server_->Shutdown(absl::ToChronoTime(WallTime()));  // streams do not end by themselves
  }

 private:
  const std::unique_ptr<Authenticator> authenticator_;
  PortBounds bounds_;
  StreamRights rights_;
  const std::unique_ptr<ConnectionWatch> watch_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;
  std::optional<DispatcherService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<AcceptLoop> connections_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Bind(const DispatcherConfig& config,
                                                         const PortLimits& limits) {
  ASSIGN_OR_RETURN(auto authenticator,
                   Authenticator::Open(config.auth_file, StderrEventLog(), BootTime));
  ASSIGN_OR_RETURN(auto watch, ConnectionWatch::Start(Port::kDispatcher,
                                                      {.time = limits.unauthenticated_timeout}));
  auto listener =
      std::make_unique<GrpcListener>(std::move(authenticator), std::move(watch), limits);
  RETURN_IF_ERROR(listener->Listen(config));
  return listener;
}

}  // namespace penstock::control
