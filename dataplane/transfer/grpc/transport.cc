// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/grpc/transport.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "control/protocol/host_port.h"
#include "control/rpc/accept_loop.h"
#include "control/rpc/connection_watch.h"
#include "control/rpc/credentials.h"
#include "control/rpc/prepare_grpc.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "dataplane/transfer/grpc/receive_stream.h"
#include "dataplane/transfer/grpc/send_stream.h"
#include "include/status_macros.h"

namespace penstock::transfer {
namespace {

// The prefix of the address of a worker that uses TLS.
constexpr char kTls[] = "grpcs://";

// Answers a call to an unknown method.
class Refusal : public grpc::ServerGenericBidiReactor {
 public:
  Refusal() {
    Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED,
                        absl::StrCat("a Penstock worker answers ", kLinkMethod, " only")));
  }
  void OnDone() override { delete this; }
};

// Accepts calls, and keeps the calls that have not ended.
class LinkService : public grpc::CallbackGenericService, public SendStream::Owner {
 public:
  LinkService(Listener::Accept accept, UnauthenticatedLimits limits,
              std::unique_ptr<control::ConnectionWatch> watch)
      : accept_(std::move(accept)), limits_(limits), watch_(std::move(watch)) {}

  control::ConnectionWatch& watch() { return *watch_; }

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    if (context->method() != kLinkMethod) return new Refusal;
    MutexLock lock(mu_);
    if (unauthenticated_.size() == limits_.count) {
      unauthenticated_.front()->Reject(
          absl::ResourceExhaustedError("too many unauthenticated clients"));
      unauthenticated_.erase(unauthenticated_.begin());
    }
    SendStream* stream = SendStream::Start(context, *this, limits_.hello_timeout);
    streams_.insert(stream);
    unauthenticated_.push_back(stream);
    if (stopped_) stream->Close(absl::UnavailableError("the worker has stopped"));
    return stream;
  }

  // The loop that accepts the connections of the calls. Call this before the first call.
  void SetConnections(control::AcceptLoop* connections) { connections_ = connections; }

  // Closes all links, and breaks the links whose clients do not read.
  void Stop() {
    MutexLock lock(mu_);
    stopped_ = true;
    for (SendStream* stream : streams_) {
      stream->Close(absl::UnavailableError("the worker has stopped"));
    }
    const auto none = [this]() REQUIRES(mu_) { return streams_.empty(); };
    if (none_.WaitFor(lock, absl::FromChrono(Listener::kStopTimeout), none)) return;
    for (SendStream* stream : streams_) stream->Cancel();
    none_.Wait(lock, none);
  }

 private:
  absl::StatusOr<std::shared_ptr<SendEvents>> Accept(const Hello& hello,
                                                     std::shared_ptr<SendLink> link) override {
    return accept_(hello, std::move(link));
  }
  void OnHelloReceived(SendStream& stream) override {
    MutexLock lock(mu_);
    std::erase(unauthenticated_, &stream);
  }
  void OnAuthenticated(const std::string& peer) override {
    watch_->Authenticated(peer);
    connections_->Proved(peer);
  }
  void OnOver(SendStream& stream) override {
    MutexLock lock(mu_);
    std::erase(unauthenticated_, &stream);
    streams_.erase(&stream);
    none_.NotifyAll();
  }

  const Listener::Accept accept_;
  const UnauthenticatedLimits limits_;
  const std::unique_ptr<control::ConnectionWatch> watch_;
  control::AcceptLoop* connections_ = nullptr;
  Mutex mu_;
  Condition none_;
  bool stopped_ GUARDED_BY(mu_) = false;
  std::set<SendStream*> streams_ GUARDED_BY(mu_);
  std::vector<SendStream*> unauthenticated_ GUARDED_BY(mu_);  // oldest first
};

class GrpcListener : public Listener {
 public:
  static absl::StatusOr<std::unique_ptr<Listener>> Start(const ListenOptions& options,
                                                         Accept accept,
                                                         UnauthenticatedLimits limits) {
    // A hello that is too long or too late gets an answer that says so.
    ASSIGN_OR_RETURN(
        auto watch,
        control::ConnectionWatch::Start(
            Port::kGrpc, {.bytes = kMaxHelloBytes + control::ConnectionLimits().bytes,
                          .time = absl::FromChrono(limits.hello_timeout) + absl::Seconds(5)}));
    auto listener = std::unique_ptr<GrpcListener>(
        new GrpcListener(std::move(accept), limits, std::move(watch)));
    ASSIGN_OR_RETURN(auto credentials, control::ServerCredentials(options.tls));
    ASSIGN_OR_RETURN(listener->connections_, control::AcceptLoop::Listen(options.host, options.port,
                                                                         Port::kGrpc, limits.pace));
    listener->service_.SetConnections(listener->connections_.get());
    control::PrepareGrpc();
    grpc::ServerBuilder builder;
    control::AcceptLoop::Take take = control::AcceptLoop::Into(builder, credentials);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
    // A client that hangs, or whose host is gone, loses its link even while nothing is being sent
    // to the client.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    // For connections that never begin a call or do not speak HTTP/2.
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, HelloMilliseconds(limits));
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, HelloMilliseconds(limits));
    builder.SetMaxReceiveMessageSize(kMessageHeaderBytes + kMaxHelloBytes);
    builder.SetMaxSendMessageSize(-1);
    builder.RegisterCallbackGenericService(&listener->service_);
    listener->server_ = builder.BuildAndStart();
    if (listener->server_ == nullptr) return absl::InternalError("gRPC cannot start a server");
    listener->address_ =
        absl::StrCat(options.tls.certificate.empty() ? "" : kTls,
                     control::JoinHostPort(options.host, listener->connections_->port()));
    RETURN_IF_ERROR(listener->connections_->Start(
        listener->service_.watch().Watching(listener->connections_->pace(), std::move(take))));
    return listener;
  }
  ~GrpcListener() override {
    if (server_ == nullptr) return;
    connections_->Stop();
    service_.Stop();
    server_->Shutdown();
    server_->Wait();
  }
  std::string address() const override { return address_; }
  std::string compatibility() const override { return ToString(kLinkVersions); }

 private:
  GrpcListener(Accept accept, UnauthenticatedLimits limits,
               std::unique_ptr<control::ConnectionWatch> watch)
      : service_(std::move(accept), limits, std::move(watch)) {}
  static int HelloMilliseconds(const UnauthenticatedLimits& limits) {
    return static_cast<int>(limits.hello_timeout.count());
  }

  LinkService service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<control::AcceptLoop> connections_;
  std::string address_;
};

class GrpcReceiveLink : public ReceiveLink {
 public:
  explicit GrpcReceiveLink(std::shared_ptr<ReceiveStream> stream) : stream_(std::move(stream)) {}
  ~GrpcReceiveLink() override { stream_->Close(); }
  void Grant(Credits credits) override { stream_->Grant(credits); }
  void Recall() override { stream_->Recall(); }

 private:
  const std::shared_ptr<ReceiveStream> stream_;
};

class GrpcTransport : public Transport {
 public:
  std::string_view name() const override { return "grpc"; }
  int rank() const override { return 90; }  // works everywhere, so it comes last

  absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenOptions& options,
                                                   Listener::Accept accept) override {
    return StartGrpcListener(options, std::move(accept));
  }

  absl::Status Check(std::string_view, std::string_view compatibility) override {
    return CheckOffer(compatibility, kLinkVersions);
  }

  absl::StatusOr<std::unique_ptr<ReceiveLink>> Dial(
      std::string_view address, DialOptions options,
      std::shared_ptr<ReceiveEvents> events) override {
    const std::string_view whole = address;
    std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
    if (address.starts_with(kTls)) {
      address.remove_prefix(sizeof kTls - 1);
      ASSIGN_OR_RETURN(const std::shared_ptr<control::TlsFiles> files, FilesOf(options.tls));
      credentials = control::ChannelCredentials(files->Latest());
    }
    const size_t colon = address.rfind(':');
    int port = 0;
    if (colon == std::string_view::npos || colon == 0 ||
        !absl::SimpleAtoi(std::string(address.substr(colon + 1)), &port) || port <= 0 ||
        port > 65535) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", std::string(whole),
                       "' is not a worker address; use host:port or grpcs://host:port"));
    }
    return std::make_unique<GrpcReceiveLink>(ReceiveStream::Start(
        std::string(address), credentials, std::move(options), std::move(events)));
  }

 private:
  // The files stay open for all later links, so that a link that is dialled while a certificate is
  // being replaced gets the last valid one.
  absl::StatusOr<std::shared_ptr<control::TlsFiles>> FilesOf(const TlsConfig& tls) {
    MutexLock lock(mu_);
    std::shared_ptr<control::TlsFiles>& files = files_[{tls.ca, tls.certificate, tls.key}];
    if (files == nullptr) {
      ASSIGN_OR_RETURN(files, control::TlsFiles::Open(tls));
    }
    return files;
  }

  Mutex mu_;
  std::map<std::array<std::string, 3>, std::shared_ptr<control::TlsFiles>> files_ GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> StartGrpcListener(const ListenOptions& options,
                                                            Listener::Accept accept,
                                                            UnauthenticatedLimits limits) {
  return GrpcListener::Start(options, std::move(accept), limits);
}

std::unique_ptr<Transport> MakeGrpcTransport() {
  return std::make_unique<GrpcTransport>();
}

}  // namespace penstock::transfer
