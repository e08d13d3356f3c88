// SPDX-License-Identifier: Apache-2.0
// The Listener over gRPC.
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/server/listener.h"
#include "control/dispatcher/server/service.h"
#include "control/protocol/host_port.h"
#include "control/rpc/credentials.h"
#include "control/rpc/prepare_grpc.h"
#include "control/sync/clock.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

class GrpcListener final : public Listener {
 public:
  GrpcListener(Core* core, std::unique_ptr<Authenticator> authenticator)
      : authenticator_(std::move(authenticator)), service_(core, authenticator_.get()) {}
  ~GrpcListener() override {
    if (server_ == nullptr) return;
    Shutdown();
    server_->Wait();
  }

  absl::Status Listen(const DispatcherConfig& config) {
    const auto of_clients =
        config.auth_file.empty() ? ClientCertificates::kNotAsked : ClientCertificates::kAsked;
    ASSIGN_OR_RETURN(auto credentials, ServerCredentials(config.tls, of_clients));
    PrepareGrpc();
    grpc::ServerBuilder builder;
    const std::string address = JoinHostPort(config.host, config.port);
    builder.AddListeningPort(address, credentials, &port_);
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(-1);
    builder.SetMaxSendMessageSize(-1);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a port in use is an error
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ == 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen on ", address,
                       ": the port is in use, or the address is not one of this host"));
    }
    return absl::OkStatus();
  }

  int port() const override { return port_; }
  void Shutdown() override {
    server_->Shutdown(absl::ToChronoTime(WallTime()));  // streams do not end by themselves
  }

 private:
  const std::unique_ptr<Authenticator> authenticator_;
  DispatcherService service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Start(const DispatcherConfig& config,
                                                          Core* core) {
  ASSIGN_OR_RETURN(auto authenticator, Authenticator::Open(config.auth_file, StderrEventLog()));
  auto listener = std::make_unique<GrpcListener>(core, std::move(authenticator));
  RETURN_IF_ERROR(listener->Listen(config));
  return listener;
}

}  // namespace penstock::control
