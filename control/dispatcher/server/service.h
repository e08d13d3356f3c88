// SPDX-License-Identifier: Apache-2.0
// Calls the core from gRPC's callback API. Includes gRPC; for grpc_listener.cc only.
#pragma once

#include <memory>

#include "control/dispatcher/core.h"
#include "control/dispatcher/server/authenticator.h"
#include "control/dispatcher/server/port_bounds.h"
#include "control/proto/dispatcher.grpc.pb.h"

namespace penstock::control {

// Calls carry parsed messages; streams carry bytes (control/rpc/wire_bytes.h).
using CallsAndStreams = wire::Dispatcher::WithCallbackMethod_GetVersion<
    wire::Dispatcher::WithCallbackMethod_GetOrRegisterDataset<
        wire::Dispatcher::WithCallbackMethod_GetDataset<
            wire::Dispatcher::WithCallbackMethod_UnregisterDataset<
                wire::Dispatcher::WithCallbackMethod_GetOrCreateJob<
                    wire::Dispatcher::WithCallbackMethod_RestoreJob<
                        wire::Dispatcher::WithCallbackMethod_GetReading<
                            wire::Dispatcher::WithCallbackMethod_CancelJob<
                                wire::Dispatcher::WithCallbackMethod_RemoveJob<
                                    wire::Dispatcher::WithCallbackMethod_GetStatus<
                                        wire::Dispatcher::WithRawCallbackMethod_ClientSession<
                                            wire::Dispatcher::WithRawCallbackMethod_WorkerSession<
                                                wire::Dispatcher::Service>>>>>>>>>>>>;

class DispatcherService final : public CallsAndStreams {
 public:
  // All must outlive the server with which this service is registered.
  DispatcherService(Core* core, Authenticator* authenticator, PortBounds* bounds)
      : core_(core), authenticator_(authenticator), bounds_(bounds) {}

  grpc::ServerUnaryReactor* GetVersion(grpc::CallbackServerContext* context,
                                       const wire::VersionRequest* request,
                                       wire::VersionRange* answer) override;
  grpc::ServerUnaryReactor* GetOrRegisterDataset(grpc::CallbackServerContext* context,
                                                 const wire::RegisterDatasetRequest* request,
                                                 wire::RegisterDatasetAnswer* answer) override;
  grpc::ServerUnaryReactor* GetDataset(grpc::CallbackServerContext* context,
                                       const wire::DatasetRequest* request,
                                       wire::GetDatasetAnswer* answer) override;
  grpc::ServerUnaryReactor* UnregisterDataset(grpc::CallbackServerContext* context,
                                              const wire::DatasetRequest* request,
                                              wire::Empty* answer) override;
  grpc::ServerUnaryReactor* GetOrCreateJob(grpc::CallbackServerContext* context,
                                           const wire::GetOrCreateJobRequest* request,
                                           wire::JobAnswer* answer) override;
  grpc::ServerUnaryReactor* RestoreJob(grpc::CallbackServerContext* context,
                                       const wire::RestoreJobRequest* request,
                                       wire::JobAnswer* answer) override;
  grpc::ServerUnaryReactor* GetReading(grpc::CallbackServerContext* context,
                                       const wire::GetReadingRequest* request,
                                       wire::SavedRepetition* answer) override;
  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context,
                                      const wire::JobRequest* request,
                                      wire::Empty* answer) override;
  grpc::ServerUnaryReactor* RemoveJob(grpc::CallbackServerContext* context,
                                      const wire::JobRequest* request,
                                      wire::Empty* answer) override;
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const wire::StatusRequest* request,
                                      wire::DispatcherStatus* answer) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ClientSession(
      grpc::CallbackServerContext* context) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* WorkerSession(
      grpc::CallbackServerContext* context) override;

 private:
  // Calls handle(caller, reactor), or finishes the call if the caller cannot be identified.
  template <class Handle>
  grpc::ServerUnaryReactor* Identified(grpc::CallbackServerContext* context,
                                       const google::protobuf::Message& request, Handle handle);

  Core* const core_;
  Authenticator* const authenticator_;
  PortBounds* const bounds_;
};

}  // namespace penstock::control
