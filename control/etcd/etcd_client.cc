// SPDX-License-Identifier: Apache-2.0
// EtcdClient over gRPC.
#include "control/etcd/etcd_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <stop_token>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "control/etcd/etcd.grpc.pb.h"
#include "control/etcd/etcd_messages.h"
#include "control/rpc/credentials.h"
#include "control/rpc/prepare_grpc.h"
#include "control/rpc/status_grpc.h"
#include "control/rpc/tls_files.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

// Between two rounds over all endpoints.
constexpr absl::Duration kPause = absl::Milliseconds(50);

// The metadata in which etcd expects the token of Authenticate().
constexpr char kEtcdToken[] = "token";

grpc::ChannelArguments EtcdChannelSettings() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  // An endpoint that was started again is found within a second.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

struct Endpoint {
  std::string address;
  std::unique_ptr<etcdserverpb::KV::Stub> keys;
  std::unique_ptr<etcdserverpb::Lease::Stub> leases;
  std::unique_ptr<etcdserverpb::Watch::Stub> watches;
  std::unique_ptr<etcdserverpb::Auth::Stub> users;
};

// etcd refused the token: it was made by a process that has ended, is too old, or belongs to rights
// that have changed since. The request was not carried out.
bool NeedsNewToken(const absl::Status& status) {
  return absl::IsUnauthenticated(status) ||
         absl::StrContains(status.message(), "invalid auth token") ||
         absl::StrContains(status.message(), "revision of auth store is old");
}

// etcd knows the deadline of a call too. If it notices the end first, it gives the error no code.
absl::Status WithDeadlineCode(const absl::Status& status) {
  if (!absl::IsUnknown(status) || !absl::StrContains(status.message(), "context deadline exceeded"))
    return status;
  return absl::DeadlineExceededError(status.message());
}

class GrpcEtcdClient final : public EtcdClient {
 public:
  GrpcEtcdClient(EtcdOptions options, std::shared_ptr<TlsFiles> files)
      : options_(std::move(options)) {
    PrepareGrpc();
    for (const std::string& address : options_.address.endpoints) {
      const auto channel =
          grpc::CreateCustomChannel(address,
                                    files == nullptr ? grpc::InsecureChannelCredentials()
                                                     : ChannelCredentials(files->Latest()),
                                    EtcdChannelSettings());
      endpoints_.push_back({.address = address,
                            .keys = etcdserverpb::KV::NewStub(channel),
                            .leases = etcdserverpb::Lease::NewStub(channel),
                            .watches = etcdserverpb::Watch::NewStub(channel),
                            .users = etcdserverpb::Auth::NewStub(channel)});
    }
  }

  void Stop() override { stop_.request_stop(); }

  absl::StatusOr<EtcdFound> Get(const EtcdGet& get, absl::Duration bound) override {
    etcdserverpb::RangeRequest request;
    ToEtcd(get, &request);
    etcdserverpb::RangeResponse answer;
    RETURN_IF_ERROR(Repeat(bound, [&](const Endpoint& endpoint, grpc::ClientContext* context) {
      return endpoint.keys->Range(context, request, &answer);
    }));
    EtcdFound found{.more = answer.more(), .revision = answer.header().revision()};
    AppendKeys(answer, found.keys);
    return found;
  }

  absl::StatusOr<EtcdTxnAnswer> Commit(const EtcdTxn& txn) override {
    const etcdserverpb::TxnRequest request = ToEtcd(txn);
    etcdserverpb::TxnResponse answer;
    const size_t place = current_;
    const absl::Status status = TryAt(place, options_.patience,
                                      [&](const Endpoint& endpoint, grpc::ClientContext* context) {
                                        return endpoint.keys->Txn(context, request, &answer);
                                      });
    if (!status.ok()) {
      LeaveEndpoint(place);
      return status;
    }
    return FromEtcd(answer);
  }

  absl::Status Compact(int64_t revision, absl::Duration bound) override {
    etcdserverpb::CompactionRequest request;
    request.set_revision(revision);
    etcdserverpb::CompactionResponse answer;
    return Repeat(bound, [&](const Endpoint& endpoint, grpc::ClientContext* context) {
      return endpoint.keys->Compact(context, request, &answer);
    });
  }

  absl::StatusOr<EtcdLease> GrantLease(absl::Duration ttl, absl::Duration bound) override {
    etcdserverpb::LeaseGrantRequest request;
    request.set_ttl(absl::ToInt64Seconds(absl::Ceil(ttl, absl::Seconds(1))));
    etcdserverpb::LeaseGrantResponse answer;
    RETURN_IF_ERROR(Repeat(bound, [&](const Endpoint& endpoint, grpc::ClientContext* context) {
      return endpoint.leases->LeaseGrant(context, request, &answer);
    }));
    if (!answer.error().empty()) return absl::InternalError(answer.error());
    return EtcdLease{.id = answer.id(), .ttl = absl::Seconds(answer.ttl())};
  }

  absl::Status KeepAlive(int64_t lease, absl::Duration bound) override {
    etcdserverpb::LeaseKeepAliveRequest request;
    request.set_id(lease);
    etcdserverpb::LeaseKeepAliveResponse answer;
    RETURN_IF_ERROR(Repeat(bound, [&](const Endpoint& endpoint, grpc::ClientContext* context) {
      const auto stream = endpoint.leases->LeaseKeepAlive(context);
      const bool answered = stream->Write(request) && stream->WritesDone() && stream->Read(&answer);
      if (answered) context->TryCancel();
      const grpc::Status status = stream->Finish();
      return answered ? grpc::Status::OK : AsError(status);
    }));
    if (answer.ttl() > 0) return absl::OkStatus();
    return absl::NotFoundError("the lease in etcd has ended");
  }

  absl::Status Revoke(int64_t lease, absl::Duration bound) override {
    etcdserverpb::LeaseRevokeRequest request;
    request.set_id(lease);
    etcdserverpb::LeaseRevokeResponse answer;
    const absl::Status revoked =
        Repeat(bound, [&](const Endpoint& endpoint, grpc::ClientContext* context) {
          return endpoint.leases->LeaseRevoke(context, request, &answer);
        });
    return absl::IsNotFound(revoked) ? absl::OkStatus() : revoked;
  }

  absl::Status AwaitDeletion(const std::string& key, int64_t revision,
                             absl::Duration bound) override {
    etcdserverpb::WatchRequest request;
    etcdserverpb::WatchCreateRequest& create = *request.mutable_create_request();
    create.set_key(key);
    create.set_start_revision(revision + 1);
    create.add_filters(etcdserverpb::WatchCreateRequest::NOPUT);
    const size_t place = current_;
    const absl::Status status =
        TryAt(place, bound, [&](const Endpoint& endpoint, grpc::ClientContext* context) {
          const auto stream = endpoint.watches->Watch(context);
          etcdserverpb::WatchResponse answer;
          bool over = false;
          if (stream->Write(request)) {
            while (!over && stream->Read(&answer)) {
              over = answer.canceled() || answer.events_size() > 0;
            }
          }
          if (over) context->TryCancel();
          const grpc::Status ended = stream->Finish();
          return over ? grpc::Status::OK : AsError(ended);
        });
    if (!status.ok()) LeaveEndpoint(place);
    return status;
  }

 private:
  using Try = absl::FunctionRef<grpc::Status(const Endpoint&, grpc::ClientContext*)>;

  // A stream that ended although the client still wanted to read.
  static grpc::Status AsError(const grpc::Status& status) {
    if (!status.ok()) return status;
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "etcd ended the stream");
  }

  // Tries one endpoint after the other until `bound` is over or an answer is certain.
  absl::Status Repeat(absl::Duration bound, Try once) {
    const absl::Time end = BootTime() + bound;
    for (size_t tries = 1;; ++tries) {
      const size_t place = current_;
      absl::Status status = TryAt(place, std::min(options_.patience, end - BootTime()), once);
      if (!IsUncertain(status) || stop_.stop_requested()) return status;
      LeaveEndpoint(place);
      if (tries % endpoints_.size() == 0) {
        if (BootTime() + kPause >= end) return status;
        Sleep(kPause, stop_.get_token());
      } else if (BootTime() >= end) {
        return status;
      }
    }
  }

  // Tries one endpoint once, and once more if it wants a new token.
  absl::Status TryAt(size_t place, absl::Duration bound, Try once) {
    const Endpoint& endpoint = endpoints_[place % endpoints_.size()];
    absl::Status status;
    for (int tries = 0; tries < 2; ++tries) {
      if (stop_.stop_requested()) return absl::CancelledError("the client of etcd was stopped");
      std::string token;
      if (!options_.user.empty()) {
        ASSIGN_OR_RETURN(token, TokenFrom(endpoint, bound));
      }
      status = CallOnce(endpoint, bound, token, once);
      if (options_.user.empty() || !NeedsNewToken(status)) break;
      MutexLock lock(mu_);
      if (token_ == token) token_.clear();
    }
    return Annotate(status, "etcd ", endpoint.address);
  }

  absl::Status CallOnce(const Endpoint& endpoint, absl::Duration bound, const std::string& token,
                        Try once) {
    grpc::ClientContext context;
    if (!token.empty()) context.AddMetadata(kEtcdToken, token);
    context.set_deadline(absl::ToChronoTime(WallTime() + bound));
    std::stop_callback cancel(stop_.get_token(), [&context] { context.TryCancel(); });
    return WithDeadlineCode(FromGrpc(once(endpoint, &context)));
  }

  absl::StatusOr<std::string> TokenFrom(const Endpoint& endpoint, absl::Duration bound) {
    {
      MutexLock lock(mu_);
      if (!token_.empty()) return token_;
    }
    etcdserverpb::AuthenticateRequest request;
    request.set_name(options_.user);
    request.set_password(options_.password);
    etcdserverpb::AuthenticateResponse answer;
    const absl::Status status =
        CallOnce(endpoint, bound, "", [&](const Endpoint& at, grpc::ClientContext* context) {
          return at.users->Authenticate(context, request, &answer);
        });
    RETURN_IF_ERROR(Annotate(status, "etcd ", endpoint.address, " does not accept the user '",
                             options_.user, "'"));
    MutexLock lock(mu_);
    token_ = answer.token();
    return token_;
  }

  void LeaveEndpoint(size_t place) { current_.compare_exchange_strong(place, place + 1); }

  const EtcdOptions options_;
  std::vector<Endpoint> endpoints_;  // constant after the constructor
  std::atomic<size_t> current_ = 0;  // modulo the number of endpoints: the one to ask next
  std::stop_source stop_;
  Mutex mu_;
  std::string token_ GUARDED_BY(mu_);  // empty: none yet
};

}  // namespace

absl::StatusOr<std::shared_ptr<EtcdClient>> EtcdClient::Make(EtcdOptions options) {
  std::shared_ptr<TlsFiles> files;
  if (options.address.tls) {
    ASSIGN_OR_RETURN(files, TlsFiles::Open(options.tls));
  }
  return std::make_shared<GrpcEtcdClient>(std::move(options), std::move(files));
}

std::string EtcdPrefixEnd(std::string prefix) {
  ++prefix.back();
  return prefix;
}

bool IsUncertain(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return true;
    default:
      return false;
  }
}

}  // namespace penstock::control
