// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/server/service.h"

#include <grpcpp/security/auth_context.h>

#include <string>

#include "absl/strings/strip.h"
#include "control/dispatcher/server/server_call.h"
#include "control/dispatcher/server/server_stream.h"
#include "control/observe/refused.h"
#include "control/policy/authorization.h"
#include "control/proto/reading_proto.h"
#include "control/rpc/credentials.h"

namespace penstock::control {
namespace {

// Answers a call with the core's answer, or with its status.
template <class Answer, class Wire>
Core::Done<Answer> AnswerTo(ServerCall* reactor, Wire* wire) {
  return [reactor, wire](absl::StatusOr<Answer> answer) {
    if (!answer.ok()) return reactor->FinishWith(answer.status());
    ToWire(*answer, wire);
    reactor->FinishWith(*wire);
  };
}

Core::DoneEmpty FinishOf(ServerCall* reactor) {
  return [reactor](absl::Status status) { reactor->FinishWith(status); };
}

// Calls handle(parsed), or finishes the call if the request is not valid.
template <class Request, class Handle>
void Parsed(const Request& request, ServerCall* reactor, Handle handle) {
  const auto parsed = FromWire(request);
  if (parsed.ok()) {
    handle(*parsed);
  } else {
    reactor->FinishWith(parsed.status());
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

// Opens a stream of the core, or one that ends with the reason for which the caller is refused.
template <class Stream, class RefusedAs>
grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* OpenStream(
    Core* core, Authenticator* authenticator, PortBounds* bounds, typename Stream::Opened open,
    grpc::CallbackServerContext* context) {
  absl::StatusOr<Caller> caller = authenticator->Identify(CredentialsOf(*context));
  if (caller.ok()) return new Stream(core, open, bounds, *std::move(caller), context);
  CountRefused(Port::kDispatcher, Refused::kUnauthenticated);
  return new RefusedAs(caller.status(), bounds, context);
}

}  // namespace

template <class Handle>
grpc::ServerUnaryReactor* DispatcherService::Identified(grpc::CallbackServerContext* context,
                                                        const google::protobuf::Message& request,
                                                        Handle handle) {
  auto* reactor = new ServerCall(bounds_, context, request);
  const absl::StatusOr<Caller> caller = authenticator_->Identify(CredentialsOf(*context));
  if (caller.ok()) {
    handle(*caller, reactor);
  } else {
    CountRefused(Port::kDispatcher, Refused::kUnauthenticated);
    reactor->FinishWith(caller.status());
  }
  return reactor;
}

grpc::ServerUnaryReactor* DispatcherService::GetVersion(grpc::CallbackServerContext* context,
                                                        const wire::VersionRequest* request,
                                                        wire::VersionRange* answer) {
  ToWire(VersionRange(), answer);
  return Identified(context, *request, [](const Caller& caller, ServerCall* reactor) {
    reactor->FinishWith(AuthorizeByRole(Action::kGetVersion, caller));
  });
}

grpc::ServerUnaryReactor* DispatcherService::GetOrRegisterDataset(
    grpc::CallbackServerContext* context, const wire::RegisterDatasetRequest* request,
    wire::RegisterDatasetAnswer* answer) {
  return Identified(context, *request, [&](const Caller& caller, ServerCall* reactor) {
    Parsed(*request, reactor, [&](const RegisterDatasetRequest& parsed) {
      core_->RegisterDataset(parsed, AnswerTo<RegisterDatasetAnswer>(reactor, answer), caller);
    });
  });
}

grpc::ServerUnaryReactor* DispatcherService::GetDataset(grpc::CallbackServerContext* context,
                                                        const wire::DatasetRequest* request,
                                                        wire::GetDatasetAnswer* answer) {
  return Identified(context, *request, [&](const Caller& caller, ServerCall* reactor) {
    core_->GetDataset(request->dataset_id(), request->edition(),
                      AnswerTo<GetDatasetAnswer>(reactor, answer), caller);
  });
}

grpc::ServerUnaryReactor* DispatcherService::UnregisterDataset(grpc::CallbackServerContext* context,
                                                               const wire::DatasetRequest* request,
                                                               wire::Empty* /*answer*/) {
  return Identified(context, *request, [&](const Caller& caller, ServerCall* reactor) {
    core_->UnregisterDataset(request->dataset_id(), FinishOf(reactor), caller);
  });
}

grpc::ServerUnaryReactor* DispatcherService::GetOrCreateJob(
    grpc::CallbackServerContext* context, const wire::GetOrCreateJobRequest* request,
    wire::JobAnswer* answer) {
  return Identified(context, *request, [&](const Caller& caller, ServerCall* reactor) {
    Parsed(*request, reactor, [&](const GetOrCreateJobRequest& parsed) {
      core_->GetOrCreateJob(parsed, AnswerTo<JobAnswer>(reactor, answer), caller);
    });
  });
}

grpc::ServerUnaryReactor* DispatcherService::RestoreJob(grpc::CallbackServerContext* context,
                                                        const wire::RestoreJobRequest* request,
                                                        wire::JobAnswer* answer) {
  return Identified(context, *request, [&](const Caller& caller, ServerCall* reactor) {
    Parsed(*request, reactor, [&](const RestoreJobRequest& parsed) {
      core_->RestoreJob(parsed, AnswerTo<JobAnswer>(reactor, answer), caller);
    });
  });
}

grpc::ServerUnaryReactor* DispatcherService::GetReading(grpc::CallbackServerContext* context,
                                                        const wire::GetReadingRequest* request,
                                                        wire::SavedRepetition* answer) {
  return Identified(context, *request, [&](const Caller& caller, ServerCall* reactor) {
    Parsed(*request, reactor, [&](const GetReadingRequest& parsed) {
      core_->GetReading(parsed, AnswerTo<SavedRepetition>(reactor, answer), caller);
    });
  });
}

grpc::ServerUnaryReactor* DispatcherService::CancelJob(grpc::CallbackServerContext* context,
                                                       const wire::JobRequest* request,
                                                       wire::Empty* /*answer*/) {
  return Identified(context, *request, [&](const Caller& caller, ServerCall* reactor) {
    core_->CancelJob(request->job(), FinishOf(reactor), caller);
  });
}

grpc::ServerUnaryReactor* DispatcherService::RemoveJob(grpc::CallbackServerContext* context,
                                                       const wire::JobRequest* request,
                                                       wire::Empty* /*answer*/) {
  return Identified(context, *request, [&](const Caller& caller, ServerCall* reactor) {
    core_->RemoveJob(request->job(), FinishOf(reactor), caller);
  });
}

grpc::ServerUnaryReactor* DispatcherService::GetStatus(grpc::CallbackServerContext* context,
                                                       const wire::StatusRequest* request,
                                                       wire::DispatcherStatus* answer) {
  return Identified(context, *request, [&](const Caller& caller, ServerCall* reactor) {
    Parsed(*request, reactor, [&](const StatusRequest& parsed) {
      core_->GetStatus(parsed, AnswerTo<DispatcherStatus>(reactor, answer), caller);
    });
  });
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* DispatcherService::ClientSession(
    grpc::CallbackServerContext* context) {
  return OpenStream<ClientServerStream, RefusedStream<ClientDown, wire::ClientDown, SessionError>>(
      core_, authenticator_, bounds_, &Core::OpenClient, context);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* DispatcherService::WorkerSession(
    grpc::CallbackServerContext* context) {
  return OpenStream<WorkerServerStream, RefusedStream<WorkerDown, wire::WorkerDown, WorkerRefused>>(
      core_, authenticator_, bounds_, &Core::OpenWorker, context);
}

}  // namespace penstock::control
