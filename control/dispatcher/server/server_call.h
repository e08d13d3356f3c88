// SPDX-License-Identifier: Apache-2.0
// One call of a peer, on gRPC's callback API, from its request until its answer has been read.
// Includes gRPC; for service.cc only.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include "control/dispatcher/server/port_bounds.h"
#include "control/rpc/status_grpc.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"

namespace penstock::control {

// A call that deletes itself when gRPC is done with it. FinishWith() must be called once.
class ServerCall final : public grpc::ServerUnaryReactor, public PortUser {
 public:
  ServerCall(PortBounds* bounds, grpc::CallbackServerContext* context,
             const google::protobuf::Message& request)
      : bounds_(bounds), context_(context) {
    bounds_->AddCall(*this, request.SpaceUsedLong(), BootTime());
  }

  // Ends the call with `answer`, which gRPC holds and serializes, unless too many bytes are held.
  void FinishWith(google::protobuf::Message& answer) {
    const absl::Status room =
        bounds_->Answer(*this, answer.SpaceUsedLong() + answer.ByteSizeLong(), BootTime());
    if (!room.ok()) answer.Clear();
    FinishWith(room);
  }
  void FinishWith(const absl::Status& status) {
    {
      MutexLock lock(mu_);
      answered_ = BootTime();
    }
    Finish(ToGrpc(status));
  }

  void Refuse(const absl::Status&) override { Cancel(); }  // its answer is on its way
  void Cancel() override { context_->TryCancel(); }
  absl::Time UnreadSince() const override {
    MutexLock lock(mu_);
    return answered_;
  }

 private:
  void OnDone() override {
    bounds_->Remove(*this);
    delete this;
  }

  PortBounds* const bounds_;
  grpc::CallbackServerContext* const context_;  // gRPC's, until OnDone
  mutable Mutex mu_;
  absl::Time answered_ GUARDED_BY(mu_) = absl::InfiniteFuture();
};

}  // namespace penstock::control
