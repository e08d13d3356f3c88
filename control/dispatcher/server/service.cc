// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/server/service.h"

#include "control/dispatcher/server/server_stream.h"
#include "control/proto/reading_proto.h"

namespace penstock::control {
namespace {

// Answers a call with the core's answer, or with its status.
template <class Answer, class Wire>
Core::Done<Answer> AnswerTo(grpc::ServerUnaryReactor* reactor, Wire* wire) {
  return [reactor, wire](absl::StatusOr<Answer> answer) {
    if (answer.ok()) ToWire(*answer, wire);
    reactor->Finish(ToGrpc(answer.status()));
  };
}

Core::DoneEmpty FinishOf(grpc::ServerUnaryReactor* reactor) {
  return [reactor](absl::Status status) { reactor->Finish(ToGrpc(status)); };
}

}  // namespace

grpc::ServerUnaryReactor* DispatcherService::GetVersion(grpc::CallbackServerContext* context,
                                                        const wire::VersionRequest* /*request*/,
                                                        wire::VersionRange* answer) {
  ToWire(VersionRange(), answer);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* DispatcherService::GetOrRegisterDataset(
    grpc::CallbackServerContext* context, const wire::RegisterDatasetRequest* request,
    wire::RegisterDatasetAnswer* answer) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<RegisterDatasetRequest> parsed = FromWire(*request);
  if (parsed.ok()) {
    core_->RegisterDataset(*parsed, AnswerTo<RegisterDatasetAnswer>(reactor, answer));
  } else {
    reactor->Finish(ToGrpc(parsed.status()));
  }
  return reactor;
}

grpc::ServerUnaryReactor* DispatcherService::GetDataset(grpc::CallbackServerContext* context,
                                                        const wire::DatasetRequest* request,
                                                        wire::GetDatasetAnswer* answer) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  core_->GetDataset(request->dataset_id(), request->edition(),
                    AnswerTo<GetDatasetAnswer>(reactor, answer));
  return reactor;
}

grpc::ServerUnaryReactor* DispatcherService::UnregisterDataset(grpc::CallbackServerContext* context,
                                                               const wire::DatasetRequest* request,
                                                               wire::Empty* /*answer*/) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  core_->UnregisterDataset(request->dataset_id(), FinishOf(reactor));
  return reactor;
}

grpc::ServerUnaryReactor* DispatcherService::GetOrCreateJob(
    grpc::CallbackServerContext* context, const wire::GetOrCreateJobRequest* request,
    wire::JobAnswer* answer) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<GetOrCreateJobRequest> parsed = FromWire(*request);
  if (parsed.ok()) {
    core_->GetOrCreateJob(*parsed, AnswerTo<JobAnswer>(reactor, answer));
  } else {
    reactor->Finish(ToGrpc(parsed.status()));
  }
  return reactor;
}

grpc::ServerUnaryReactor* DispatcherService::RestoreJob(grpc::CallbackServerContext* context,
                                                        const wire::RestoreJobRequest* request,
                                                        wire::JobAnswer* answer) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<RestoreJobRequest> parsed = FromWire(*request);
  if (parsed.ok()) {
    core_->RestoreJob(*parsed, AnswerTo<JobAnswer>(reactor, answer));
  } else {
    reactor->Finish(ToGrpc(parsed.status()));
  }
  return reactor;
}

grpc::ServerUnaryReactor* DispatcherService::GetReading(grpc::CallbackServerContext* context,
                                                        const wire::GetReadingRequest* request,
                                                        wire::SavedRepetition* answer) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<GetReadingRequest> parsed = FromWire(*request);
  if (parsed.ok()) {
    core_->GetReading(*parsed, AnswerTo<SavedRepetition>(reactor, answer));
  } else {
    reactor->Finish(ToGrpc(parsed.status()));
  }
  return reactor;
}

grpc::ServerUnaryReactor* DispatcherService::CancelJob(grpc::CallbackServerContext* context,
                                                       const wire::JobRequest* request,
                                                       wire::Empty* /*answer*/) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  core_->CancelJob(request->job(), FinishOf(reactor));
  return reactor;
}

grpc::ServerUnaryReactor* DispatcherService::RemoveJob(grpc::CallbackServerContext* context,
                                                       const wire::JobRequest* request,
                                                       wire::Empty* /*answer*/) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  core_->RemoveJob(request->job(), FinishOf(reactor));
  return reactor;
}

grpc::ServerUnaryReactor* DispatcherService::GetStatus(grpc::CallbackServerContext* context,
                                                       const wire::Empty* /*request*/,
                                                       wire::DispatcherStatus* answer) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  core_->GetStatus(AnswerTo<DispatcherStatus>(reactor, answer));
  return reactor;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* DispatcherService::ClientSession(
    grpc::CallbackServerContext* context) {
  return new ClientServerStream(core_, &Core::OpenClient, context);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* DispatcherService::WorkerSession(
    grpc::CallbackServerContext* context) {
  return new WorkerServerStream(core_, &Core::OpenWorker, context);
}

}  // namespace penstock::control
