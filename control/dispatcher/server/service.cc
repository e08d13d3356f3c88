// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/server/service.h"

#include <grpcpp/security/auth_context.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "control/dispatcher/dataset_registry.h"
#include "control/dispatcher/server/server_stream.h"
#include "control/dispatcher/server/upgrade.h"
#include "control/observe/refused.h"
#include "control/policy/authorization.h"
#include "control/proto/dispatcher.grpc.pb.h"
#include "control/proto/reading_proto.h"
#include "control/rpc/credentials.h"
#include "control/rpc/dataset_fetcher.h"

namespace penstock::control {
namespace {

std::string PathOf(const std::string& method) {
  return absl::StrCat("/", wire::Dispatcher::service_full_name(), "/", method);
}

// Gives the call its answer, as `Wire`.
template <class Wire, class Answer>
void Give(const Answer& answer, ServerCall* call) {
  Wire wire;
  ToWire(answer, &wire);
  call->FinishWith(wire);
}

size_t BytesOf(const DatasetRecord& dataset) {
  return static_cast<size_t>(BytesOf(dataset.definition, dataset.summary));
}

// A definition may have many MiB, and many may ask for it, so no answer has a copy of it.
template <class Wire>
void Give(const std::shared_ptr<const DatasetRecord>& dataset, ServerCall* call) {
  Wire wire;
  ToWire(GetDatasetAnswer{dataset->id, /*definition=*/"", dataset->summary}, &wire);
  call->FinishWith(wire, Wire::kDefinitionFieldNumber, {dataset, dataset->definition},
                   dataset.get(), BytesOf(*dataset));
}

// Answers a call with the core's answer, as `Wire`, or with its status.
template <class Answer, class Wire>
Core::Done<Answer> AnswerTo(ServerCall* call) {
  return [call](const absl::StatusOr<Answer>& answer) {
    if (!answer.ok()) return call->FinishWith(answer.status());
    if (call->FinishIfCancelled()) return;
    Give<Wire>(*answer, call);
  };
}

Core::DoneEmpty FinishOf(ServerCall* call) {
  return [call](const absl::Status& status) {
    if (!status.ok()) return call->FinishWith(status);
    call->FinishWith(wire::Empty());
  };
}

// Calls handle(parsed), or finishes the call if the request is not valid.
template <class Request, class Handle>
void Parsed(const Request& request, ServerCall* call, Handle handle) {
  const auto parsed = FromWire(request);
  if (parsed.ok()) {
    handle(*parsed);
  } else {
    call->FinishWith(parsed.status());
  }
}

PeerCredentials CredentialsOf(const grpc::CallbackServerContext& context) {
  PeerCredentials credentials{.token = "", .certificate_names = {}, .address = context.peer()};
  const auto& metadata = context.client_metadata();
  if (const auto found = metadata.find(kTokenMetadata); found != metadata.end()) {
    const std::string value(found->second.data(), found->second.size());
    credentials.token = std::string(absl::StripPrefix(value, kTokenScheme));
  }
  const std::shared_ptr<const grpc::AuthContext> tls = context.auth_context();
  if (tls == nullptr || !tls->IsPeerAuthenticated()) return credentials;
  for (const char* property : {GRPC_X509_CN_PROPERTY_NAME, GRPC_X509_SAN_PROPERTY_NAME}) {
    for (const grpc::string_ref& name : tls->FindPropertyValues(property)) {
      credentials.certificate_names.emplace_back(name.data(), name.size());
    }
  }
  return credentials;
}

}  // namespace

DispatcherService::DispatcherService(Core* core, Authenticator* authenticator, PortBounds* bounds,
                                     StreamRights* rights, ConnectionWatch* watch)
    : core_(core),
      authenticator_(authenticator),
      bounds_(bounds),
      rights_(rights),
      watch_(watch),
      pieces_(bounds->limits()) {
  AddCall<wire::VersionRequest>("GetVersion", [](const auto&, const Caller& caller, auto* call) {
    const absl::Status allowed = AuthorizeByRole(Action::kGetVersion, caller);
    if (!allowed.ok()) return call->FinishWith(allowed);
    wire::VersionRange answer;
    ToWire(VersionRange(), &answer);
    call->FinishWith(answer);
  });
  AddCall<wire::StatusRequest>("GetStatus", [this](const auto& request, const Caller& caller,
                                                   ServerCall* call) {
    Parsed(request, call, [&](const StatusRequest& parsed) {
      core_->GetStatus(parsed, AnswerTo<DispatcherStatus, wire::DispatcherStatus>(call), caller);
    });
  });
  AddCall<wire::Empty>("FinaliseUpgrade",
                       [this](const auto&, const Caller& caller, ServerCall* call) {
                         FinaliseUpgrade(*core_, FinishOf(call), caller);
                       });
  AddDatasets();
  AddJobs();
  AddStreams();
}

template <class Wire, class Handle>
void DispatcherService::AddCall(const std::string& name, Handle handle, Requests requests) {
  const auto handler = [this, handle](ServerCall* call, const Caller& caller,
                                      grpc::ByteBuffer* bytes) {
    Wire request;
    const absl::Status parsed = Parse(bytes, &request);
    if (!parsed.ok()) return call->FinishWith(parsed);
    watch_->Authenticated(call->peer());
    handle(request, caller, call);
  };
  calls_[PathOf(name)] = {handler, requests};
}

void DispatcherService::AddDatasets() {
  AddCall<wire::RegisterDatasetRequest>(
      "GetOrRegisterDataset",
      [this](const auto& request, const Caller& caller, ServerCall* call) {
        Parsed(request, call, [&](const RegisterDatasetRequest& parsed) {
          core_->RegisterDataset(
              parsed, AnswerTo<RegisterDatasetAnswer, wire::RegisterDatasetAnswer>(call), caller);
        });
      },
      Requests::kLarge);
  AddCall<wire::DatasetRequest>(
      "GetDataset", [this](const auto& request, const Caller& caller, ServerCall* call) {
        using Found = std::shared_ptr<const DatasetRecord>;
        const auto whole = AnswerTo<Found, wire::GetDatasetAnswer>(call);
        core_->GetDataset(
            request.dataset_id(), request.edition(),
            [this, call, request, whole](const absl::StatusOr<Found>& found) {
              if (!request.has_piece() || !found.ok() || BytesOf(**found) <= kDatasetPieceBytes)
                return whole(found);
              pieces_.Answer(call, *found, request.piece());
            },
            caller);
      });
  AddCall<wire::DatasetRequest>(
      "UnregisterDataset", [this](const auto& request, const Caller& caller, ServerCall* call) {
        core_->UnregisterDataset(request.dataset_id(), FinishOf(call), caller);
      });
}

void DispatcherService::AddJobs() {
  AddCall<wire::GetOrCreateJobRequest>(
      "GetOrCreateJob", [this](const auto& request, const Caller& caller, ServerCall* call) {
        Parsed(request, call, [&](const GetOrCreateJobRequest& parsed) {
          core_->GetOrCreateJob(parsed, AnswerTo<JobAnswer, wire::JobAnswer>(call), caller);
        });
      });
  AddCall<wire::RestoreJobRequest>(
      "RestoreJob",
      [this](const auto& request, const Caller& caller, ServerCall* call) {
        Parsed(request, call, [&](const RestoreJobRequest& parsed) {
          core_->RestoreJob(parsed, AnswerTo<JobAnswer, wire::JobAnswer>(call), caller);
        });
      },
      Requests::kLarge);
  AddCall<wire::GetReadingRequest>(
      "GetReading", [this](const auto& request, const Caller& caller, ServerCall* call) {
        Parsed(request, call, [&](const GetReadingRequest& parsed) {
          core_->GetReading(parsed, AnswerTo<SavedRepetition, wire::SavedRepetition>(call), caller);
        });
      });
  AddCall<wire::JobRequest>("CancelJob",
                            [this](const auto& request, const Caller& caller, ServerCall* call) {
                              core_->CancelJob(request.job(), FinishOf(call), caller);
                            });
  AddCall<wire::JobRequest>("RemoveJob",
                            [this](const auto& request, const Caller& caller, ServerCall* call) {
                              core_->RemoveJob(request.job(), FinishOf(call), caller);
                            });
}

void DispatcherService::AddStreams() {
  streams_[PathOf("ClientSession")] = [this](grpc::CallbackServerContext* context) {
    return OpenStream<ClientServerStream,
                      RefusedStream<ClientDown, wire::ClientDown, SessionError>>(&Core::OpenClient,
                                                                                 context);
  };
  streams_[PathOf("WorkerSession")] = [this](grpc::CallbackServerContext* context) {
    return OpenStream<WorkerServerStream,
                      RefusedStream<WorkerDown, wire::WorkerDown, WorkerRefused>>(&Core::OpenWorker,
                                                                                  context);
  };
}

grpc::ServerGenericBidiReactor* DispatcherService::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  if (const auto found = streams_.find(context->method()); found != streams_.end()) {
    return found->second(context);
  }
  static const ServerCall::Handler none;
  const auto found = calls_.find(context->method());
  if (found == calls_.end()) {
    return new ServerCall(bounds_, context,
                          absl::UnimplementedError("a Penstock dispatcher has no such method"),
                          none);
  }
  absl::StatusOr<Caller> caller = authenticator_->Identify(CredentialsOf(*context));
  if (!caller.ok()) {
    CountRefused(Port::kDispatcher, Refused::kUnauthenticated);
  } else if (caller->has_value() || found->second.requests == Requests::kLarge) {
    watch_->Authenticated(context->peer());
  }
  return new ServerCall(bounds_, context, std::move(caller), found->second.handler);
}

// Opens a stream of the core, or one that ends with the reason for which the caller is refused.
template <class Stream, class RefusedAs>
grpc::ServerGenericBidiReactor* DispatcherService::OpenStream(
    typename Stream::Opened open, grpc::CallbackServerContext* context) {
  const uint64_t revision = authenticator_->Revision();
  PeerCredentials credentials = CredentialsOf(*context);
  absl::StatusOr<Caller> caller = authenticator_->Identify(credentials);
  if (caller.ok()) {
    watch_->Authenticated(context->peer());
    return new Stream(core_, open, bounds_, rights_,
                      {std::move(credentials), *std::move(caller), revision}, context);
  }
  CountRefused(Port::kDispatcher, Refused::kUnauthenticated);
  return new RefusedAs(caller.status(), bounds_, context);
}

}  // namespace penstock::control
