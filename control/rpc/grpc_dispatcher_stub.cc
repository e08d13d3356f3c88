// SPDX-License-Identifier: Apache-2.0
// DispatcherStub over gRPC.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "control/proto/dispatcher.grpc.pb.h"
#include "control/proto/reading_proto.h"
#include "control/protocol/host_port.h"
#include "control/rpc/client_stream.h"
#include "control/rpc/credentials.h"
#include "control/rpc/dataset_fetcher.h"
#include "control/rpc/prepare_grpc.h"
#include "control/rpc/status_grpc.h"
#include "control/stub/dispatcher_stub.h"
#include "control/stub/retry.h"
#include "control/stub/scheme.h"
#include "control/stub/target.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

using ClientStreamOfClient = ClientStream<ClientUp, ClientDown, wire::ClientUp, wire::ClientDown>;
using ClientStreamOfWorker = ClientStream<WorkerUp, WorkerDown, wire::WorkerUp, wire::WorkerDown>;

// `has_others`: the dispatcher that leads may have another address.
grpc::ChannelArguments ChannelSettings(bool has_others) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // The least time between two attempts to connect also bounds an attempt. When thousands of peers
  // come to a restarted dispatcher at once, the last of them are served after some seconds. If an
  // address is dead, a worker should still find the dispatcher within worker_timeout (10 s).
  // Retry() and KeepOpen() set the pauses between tries (TryAtOnce() below); gRPC should not try as
  // well meanwhile.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 7'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // With this setting, a dispatcher that comes back under its name at another IP address is found
  // within seconds, not after half a minute.
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000);
  // With these settings, gRPC notices a host that vanished, or a process that is stopped, without
  // closing the connection. A standby leads 3 to 4 s after its leader has vanished, and should then
  // be asked at once. With one address there is nobody else to ask.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, has_others ? 1'000 : 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, has_others ? 2'000 : 5'000);
  // By default, only two pings are sent between two messages.
  if (has_others) arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // As at the dispatcher's port. Without the pings, the window of a stream has this size.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1 << 20);
  // This stub shares no connection with other stubs, so that a broken connection affects only one
  // stub.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

// A channel and the stub of its calls.
struct Connection {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<wire::Dispatcher::Stub> stub;
};

// Makes a channel that has failed connect at once: the caller has paused already. gRPC's own pauses
// grow to two minutes for a name that DNS did not know.
void TryAtOnce(grpc::Channel& channel) {
  if (channel.GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_TRANSIENT_FAILURE) {
    grpc::experimental::ChannelResetConnectionBackoff(&channel);
  }
}

// Makes the connections to one address. Any thread may call any method.
class Connections {
 public:
  // `files`: null for plain text. `has_others`: the service has several addresses.
  Connections(std::string address, bool has_others, std::shared_ptr<TlsFiles> files)
      : address_(std::move(address)), has_others_(has_others), files_(std::move(files)) {}

  // Returns the latest connection, or a new one if the TLS files have changed since it was made.
  // Streams and calls that use an earlier connection keep it until they end.
  std::shared_ptr<const Connection> Latest() {
    Pem pem = files_ == nullptr ? Pem() : files_->Latest();
    MutexLock lock(mu_);
    if (latest_ != nullptr && pem_ == pem) {
      TryAtOnce(*latest_->channel);
      return latest_;
    }
    pem_ = std::move(pem);
    const auto credentials =
        files_ == nullptr ? grpc::InsecureChannelCredentials() : ChannelCredentials(pem_);
    auto channel = grpc::CreateCustomChannel(address_, credentials, ChannelSettings(has_others_));
    auto stub = wire::Dispatcher::NewStub(channel);
    latest_ = std::make_shared<Connection>(Connection{std::move(channel), std::move(stub)});
    return latest_;
  }
  // If the service has other addresses, waits until the attempt to connect is over, for `bound` and
  // a second at most. Then returns Unavailable: the caller should try another address. The attempt
  // goes on, and the next try at this address continues it.
  absl::Status Await(grpc::Channel& channel, absl::Duration bound,
                     const std::stop_token& stop) const {
    if (!has_others_) return absl::OkStatus();
    bound = std::min(bound, absl::Seconds(1));
    const absl::Time end = BootTime() + bound;
    while (true) {
      const grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
      if (state != GRPC_CHANNEL_IDLE && state != GRPC_CHANNEL_CONNECTING) return absl::OkStatus();
      const absl::Duration left = end - BootTime();
      if (left <= absl::ZeroDuration() || stop.stop_requested())
        return absl::UnavailableError(
            absl::StrCat(address_, " did not answer within ", absl::FormatDuration(bound)));
      constexpr absl::Duration kBetweenLooks = absl::Milliseconds(50);  // at `stop`
      channel.WaitForStateChange(state,
                                 absl::ToChronoTime(WallTime() + std::min(left, kBetweenLooks)));
    }
  }

 private:
  const std::string address_;
  const bool has_others_;
  const std::shared_ptr<TlsFiles> files_;
  Mutex mu_;
  Pem pem_ GUARDED_BY(mu_);
  std::shared_ptr<const Connection> latest_ GUARDED_BY(mu_);
};

// Explains the answer of a server that does not know a method. If the service has other addresses,
// the caller should try them: a worker may have got the port of a dispatcher that is gone.
absl::Status OrEarlierRelease(absl::Status status, const std::string& address, bool has_others) {
  if (!absl::IsUnimplemented(status)) return status;
  return absl::Status(
      has_others ? absl::StatusCode::kUnavailable : absl::StatusCode::kFailedPrecondition,
      absl::StrCat(address, " does not know this call (", status.message(),
                   "): if it is a dispatcher, its release is earlier than that of this process; "
                   "upgrade the dispatcher first, at most one release at a time; else give the "
                   "dispatcher's address, not that of a worker or of a proxy without a route"));
}

class GrpcDispatcherStub final : public DispatcherStub {
 public:
  GrpcDispatcherStub(std::vector<std::string> addresses, std::string token_file,
                     const std::shared_ptr<TlsFiles>& files)
      : DispatcherStub(std::move(addresses)), token_file_(std::move(token_file)) {
    const std::vector<std::string>& all = this->addresses().all();
    for (const std::string& its : all) connections_.try_emplace(its, its, all.size() > 1, files);
  }
  ~GrpcDispatcherStub() override { Stop(); }

  void Stop() override { stop_.request_stop(); }

  absl::StatusOr<VersionRange> GetVersion(CallOptions options) override {
    ASSIGN_OR_RETURN(wire::VersionRange answer,
                     Call<wire::VersionRange>(wire::VersionRequest(),
                                              &wire::Dispatcher::Stub::GetVersion, options));
    const VersionRange ours;
    ASSIGN_OR_RETURN(const VersionRange theirs, FromWire(answer));
    if (theirs.max < ours.min || ours.max < theirs.min) {
      return absl::FailedPreconditionError(absl::StrCat(
          "version mismatch with the dispatcher at ", address(), ": it speaks control versions ",
          theirs.min, " to ", theirs.max, ", this process ", ours.min, " to ", ours.max,
          "; upgrade the older one of them, at most one release at a time"));
    }
    return theirs;
  }

  absl::StatusOr<RegisterDatasetAnswer> GetOrRegisterDataset(const RegisterDatasetRequest& request,
                                                             CallOptions options) override {
    wire::RegisterDatasetRequest wire;
    ToWire(request, &wire);
    ASSIGN_OR_RETURN(wire::RegisterDatasetAnswer answer,
                     Call<wire::RegisterDatasetAnswer>(
                         wire, &wire::Dispatcher::Stub::GetOrRegisterDataset, options));
    return FromWire(answer);
  }

  absl::StatusOr<GetDatasetAnswer> GetDataset(std::string_view dataset_id, uint64_t edition,
                                              CallOptions options) override {
    return datasets_.Fetch(dataset_id, edition, [&](const wire::DatasetRequest& request) {
      return Call<wire::GetDatasetAnswer>(request, &wire::Dispatcher::Stub::GetDataset, options);
    });
  }

  absl::Status UnregisterDataset(std::string_view dataset_id, CallOptions options) override {
    wire::DatasetRequest wire;
    wire.set_dataset_id(std::string(dataset_id));
    return Call<wire::Empty>(wire, &wire::Dispatcher::Stub::UnregisterDataset, options).status();
  }

  absl::StatusOr<JobAnswer> GetOrCreateJob(const GetOrCreateJobRequest& request,
                                           CallOptions options) override {
    wire::GetOrCreateJobRequest wire;
    ToWire(request, &wire);
    ASSIGN_OR_RETURN(wire::JobAnswer answer,
                     Call<wire::JobAnswer>(wire, &wire::Dispatcher::Stub::GetOrCreateJob, options));
    return FromWire(answer);
  }

  absl::StatusOr<JobAnswer> RestoreJob(const RestoreJobRequest& request,
                                       CallOptions options) override {
    wire::RestoreJobRequest wire;
    ToWire(request, &wire);
    ASSIGN_OR_RETURN(wire::JobAnswer answer,
                     Call<wire::JobAnswer>(wire, &wire::Dispatcher::Stub::RestoreJob, options));
    return FromWire(answer);
  }

  absl::StatusOr<SavedRepetition> GetReading(const GetReadingRequest& request,
                                             CallOptions options) override {
    wire::GetReadingRequest wire;
    ToWire(request, &wire);
    ASSIGN_OR_RETURN(
        wire::SavedRepetition answer,
        Call<wire::SavedRepetition>(wire, &wire::Dispatcher::Stub::GetReading, options));
    return FromWire(answer);
  }

  absl::Status CancelJob(std::string_view job, CallOptions options) override {
    return CallOnJob(job, &wire::Dispatcher::Stub::CancelJob, options);
  }

  absl::Status RemoveJob(std::string_view job, CallOptions options) override {
    return CallOnJob(job, &wire::Dispatcher::Stub::RemoveJob, options);
  }

  absl::StatusOr<DispatcherStatus> GetStatusPage(const StatusRequest& request,
                                                 CallOptions options) override {
    wire::StatusRequest wire;
    ToWire(request, &wire);
    ASSIGN_OR_RETURN(
        wire::DispatcherStatus answer,
        Call<wire::DispatcherStatus>(wire, &wire::Dispatcher::Stub::GetStatus, options));
    return FromWire(answer);
  }

  absl::Status FinaliseUpgrade(CallOptions options) override {
    return Call<wire::Empty>(wire::Empty(), &wire::Dispatcher::Stub::FinaliseUpgrade, options)
        .status();
  }

  std::unique_ptr<ClientSession> OpenClientSession(const std::string& address,
                                                   ClientSessionEvents* events) override {
    return Open<ClientStreamOfClient, ClientUp, wire::ClientUp>(address, "ClientSession", events);
  }

  std::unique_ptr<WorkerSession> OpenWorkerSession(const std::string& address,
                                                   WorkerSessionEvents* events) override {
    return Open<ClientStreamOfWorker, WorkerUp, wire::WorkerUp>(address, "WorkerSession", events);
  }

 private:
  template <class Stream, class Up, class WireUp, class Events>
  std::unique_ptr<Session<Up>> Open(const std::string& address, const char* method,
                                    Events* events) {
    return std::make_unique<StreamSession<Stream, Up>>(
        Stream::Open(events, [&](grpc::ClientContext* context, auto* reactor) {
          absl::Status status = AddToken(context);
          Connections& connections = connections_.at(address);
          const std::shared_ptr<const Connection> connection = connections.Latest();
          status.Update(
              connections.Await(*connection->channel, absl::InfiniteDuration(), stop_.get_token()));
          grpc::TemplatedGenericStub<WireUp, grpc::ByteBuffer>(connection->channel)
              .PrepareBidiStreamingCall(
                  context, absl::StrCat("/", wire::Dispatcher::service_full_name(), "/", method),
                  {}, reactor);
          return status;
        }));
  }

  // Reads the file each time, so that a token can be replaced while this process runs. If the file
  // is missing or not valid at that moment, uses the last token that it contained.
  absl::Status AddToken(grpc::ClientContext* context) {
    if (token_file_.empty()) return absl::OkStatus();
    MutexLock lock(mu_);
    absl::StatusOr<std::string> token = ReadToken(token_file_);
    if (token.ok()) {
      token_ = *std::move(token);
    } else if (token_.empty()) {
      return token.status();
    }
    context->AddMetadata(kTokenMetadata, absl::StrCat(kTokenScheme, token_));
    return absl::OkStatus();
  }

  template <class Answer, class Request>
  using Method = grpc::Status (wire::Dispatcher::Stub::*)(grpc::ClientContext*, const Request&,
                                                          Answer*);

  absl::Status CallOnJob(std::string_view job, Method<wire::Empty, wire::JobRequest> method,
                         const CallOptions& options) {
    wire::JobRequest wire;
    wire.set_job(std::string(job));
    return Call<wire::Empty>(wire, method, options).status();
  }

  // Repeats the call until it is answered, fails for good, runs out of time or is stopped.
  template <class Answer, class Request>
  absl::StatusOr<Answer> Call(const Request& request, Method<Answer, Request> method,
                              const CallOptions& options) {
    Answer answer;
    const absl::Status status =
        Retry(addresses(), options, stop_.get_token(),
              [&](const std::string& its, absl::Duration left,
                  const std::stop_token& stop) -> absl::Status {
                answer.Clear();
                grpc::ClientContext context;
                RETURN_IF_ERROR(AddToken(&context));
                context.set_deadline(absl::ToChronoTime(WallTime() + left));
                std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
                Connections& connections = connections_.at(its);
                const std::shared_ptr<const Connection> connection = connections.Latest();
                RETURN_IF_ERROR(connections.Await(*connection->channel, left, stop));
                return OrEarlierRelease(
                    FromGrpc(((*connection->stub).*method)(&context, request, &answer)), its,
                    addresses().all().size() > 1);
              });
    if (!status.ok()) return status;
    return answer;
  }

  const std::string token_file_;                    // empty: none
  std::map<std::string, Connections> connections_;  // by address; constant after construction
  DatasetFetcher datasets_;
  std::stop_source stop_;
  Mutex mu_;
  std::string token_ GUARDED_BY(mu_);  // the last valid one of token_file_; empty: none yet
};

}  // namespace

absl::StatusOr<std::unique_ptr<DispatcherStub>> DispatcherStub::Make(std::string_view service,
                                                                     const TlsConfig& tls) {
  ASSIGN_OR_RETURN(Target target, ParseTarget(service));
  if (const MakeStub make = FindScheme(target.protocol)) return make(std::move(target.addresses));
  const std::string grpcs = absl::StrCat("\"grpcs://", absl::StrJoin(target.addresses, ","), "\"");
  std::shared_ptr<TlsFiles> files;
  if (target.tls()) {
    ASSIGN_OR_RETURN(files, TlsFiles::Open(tls));
  } else if (!tls.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("TLS is configured, but the service \"",
                                                   std::string(service),
                                                   "\" is reached in plain text; give ", grpcs));
  }
  const bool on_loopback =
      std::all_of(target.addresses.begin(), target.addresses.end(),
                  [](const std::string& address) { return IsLoopback(HostOf(address)); });
  if (!tls.token_file.empty() && !target.tls() && !on_loopback) {
    return absl::InvalidArgumentError(absl::StrCat(
        "token_file is set, but the service \"", std::string(service),
        "\" is reached in plain text, so that others could read the token on the way; give ", grpcs,
        ", or leave token_file out"));
  }
  PrepareGrpc();
  return std::make_unique<GrpcDispatcherStub>(std::move(target.addresses), tls.token_file, files);
}

}  // namespace penstock::control
