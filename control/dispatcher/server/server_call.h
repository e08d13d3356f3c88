// SPDX-License-Identifier: Apache-2.0
// One call of a peer, on gRPC's callback API, from its head until its answer has been read. The
// caller is known from the head, so gRPC reads no request of an unknown caller: it holds at most
// the 64 KiB that the peer may send without being asked. Includes gRPC; for service.cc only.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "control/dispatcher/server/port_bounds.h"
#include "control/protocol/principal.h"
#include "control/rpc/status_grpc.h"
#include "control/rpc/wire_bytes.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"

namespace penstock::control {

// A call that deletes itself when gRPC is done with it.
class ServerCall final : public grpc::ServerGenericBidiReactor, public PortUser {
 public:
  // Handles the request, and calls FinishWith() once, now or later, on any thread.
  using Handler = std::function<void(ServerCall*, const Caller&, grpc::ByteBuffer* request)>;

  // `handler` outlives the call. It is not called if the caller is not known, or if no request
  // comes.
  ServerCall(PortBounds* bounds, grpc::CallbackServerContext* context,
             absl::StatusOr<Caller> caller, const Handler& handler)
      : bounds_(bounds), context_(context), caller_(std::move(caller)), handler_(handler) {
    bounds_->AddCall(*this, BootTime());
    if (caller_.ok()) {
      StartRead(&request_);
    } else {
      FinishWith(caller_.status());
    }
  }

  // Ends the call with `answer`, unless too many bytes are held.
  void FinishWith(const google::protobuf::Message& answer) {
    const absl::Status room = bounds_->Answer(*this, answer.ByteSizeLong(), BootTime());
    if (!room.ok()) return FinishWith(room);
    Give(ToBytes(answer));
  }
  // Does the same with one more field, which is `shared` (control/rpc/wire_bytes.h). The answer
  // keeps `object`, of which `shared` is a part, and which has that many bytes.
  void FinishWith(const google::protobuf::Message& answer, int field, SharedBytes shared,
                  const void* object, size_t object_bytes) {
    const absl::Status room = bounds_->Answer(*this, answer.ByteSizeLong(), BootTime(),
                                              {object, object_bytes, shared.bytes.size()});
    if (!room.ok()) return FinishWith(room);
    Give(ToBytes(answer, field, std::move(shared)));
  }
  void FinishWith(const absl::Status& status) {
    Answered();
    if (status.ok()) bounds_->OnServed(context_->peer());
    Finish(ToGrpc(status));
  }

  std::string peer() const { return context_->peer(); }
  // Nobody waits for the answer. Once true, always true.
  bool is_cancelled() const { return cancelled_; }
  // Finishes the call and returns true if nobody waits for the answer, so that it need not be made.
  bool FinishIfCancelled() {
    if (!cancelled_) return false;
    FinishWith(absl::CancelledError("nobody waits for the answer"));
    return true;
  }

  void Refuse(const absl::Status&) override { Cancel(); }  // its answer is on its way
  void Cancel() override { context_->TryCancel(); }
  absl::Time UnreadSince() const override {
    MutexLock lock(mu_);
    return answered_;
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return FinishWith(absl::InvalidArgumentError("the call came without a request"));
    if (FinishIfCancelled()) return;
    bounds_->Request(*this, request_.Length());
    handler_(this, *caller_, &request_);
  }
  void OnCancel() override { cancelled_ = true; }
  void OnDone() override {
    bounds_->Remove(*this);
    delete this;
  }
  void Give(grpc::ByteBuffer answer) {
    answer_ = std::move(answer);
    Answered();
    bounds_->OnServed(context_->peer());
    StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void Answered() {
    MutexLock lock(mu_);
    answered_ = BootTime();
  }

  PortBounds* const bounds_;
  grpc::CallbackServerContext* const context_;  // gRPC's, until OnDone
  const absl::StatusOr<Caller> caller_;
  const Handler& handler_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer answer_;
  std::atomic<bool> cancelled_{false};
  mutable Mutex mu_;
  absl::Time answered_ GUARDED_BY(mu_) = absl::InfiniteFuture();
};

}  // namespace penstock::control
