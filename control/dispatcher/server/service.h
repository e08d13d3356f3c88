// SPDX-License-Identifier: Apache-2.0
// Calls the core from gRPC's callback API. gRPC asks the service at the head of each call, before
// it reads a message, so the service decides by the head alone which calls have a right to be read.
// Includes gRPC; for grpc_listener.cc only.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <functional>
#include <map>
#include <string>

#include "control/dispatcher/core.h"
#include "control/dispatcher/server/authenticator.h"
#include "control/dispatcher/server/dataset_pieces.h"
#include "control/dispatcher/server/port_bounds.h"
#include "control/dispatcher/server/server_call.h"
#include "control/dispatcher/server/stream_rights.h"
#include "control/rpc/connection_watch.h"

namespace penstock::control {

class DispatcherService final : public grpc::CallbackGenericService {
 public:
  // All must outlive the server with which this service is registered.
  DispatcherService(Core* core, Authenticator* authenticator, PortBounds* bounds,
                    StreamRights* rights, ConnectionWatch* watch);

  // Returns an object that deletes itself. A call of an unknown method ends with Unimplemented.
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  using Opening = std::function<grpc::ServerGenericBidiReactor*(grpc::CallbackServerContext*)>;
  enum class Requests { kSmall, kLarge };
  struct Call {
    ServerCall::Handler handler;
    Requests requests;
  };

  void AddDatasets();
  void AddJobs();
  void AddStreams();
  // The method `name` is a call. `handle(request, caller, call)` must lead to one FinishWith().
  // kLarge: a request may be longer than an unauthenticated peer may send.
  template <class Wire, class Handle>
  void AddCall(const std::string& name, Handle handle, Requests requests = Requests::kSmall);
  template <class Stream, class RefusedAs>
  grpc::ServerGenericBidiReactor* OpenStream(typename Stream::Opened open,
                                             grpc::CallbackServerContext* context);

  Core* const core_;
  Authenticator* const authenticator_;
  PortBounds* const bounds_;
  StreamRights* const rights_;
  ConnectionWatch* const watch_;
  DatasetPieces pieces_;
  // Both by "/service/method"; constant after construction.
  std::map<std::string, Call> calls_;
  std::map<std::string, Opening> streams_;
};

}  // namespace penstock::control
