// SPDX-License-Identifier: Apache-2.0
// A Session on gRPC's callback API. Only for grpc_dispatcher_stub.cc, because it includes gRPC.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_callback.h>

#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "control/rpc/status_grpc.h"
#include "control/rpc/wire_bytes.h"
#include "control/stub/session.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"

namespace penstock::control {

// The reactor of one stream. It keeps itself alive until gRPC calls OnDone. It adds one hold, for
// the writes that Send may start. The hold is removed once, when the stream fails or is stopped. No
// write starts after that.
template <class Up, class Down, class WireUp, class WireDown>
class ClientStream final : public grpc::ClientBidiReactor<WireUp, grpc::ByteBuffer> {
 public:
  explicit ClientStream(SessionEvents<Down>* events) : events_(events) {}

  // `call(context, reactor)` binds the reactor to the RPC method. From then on, gRPC may call the
  // reactor. If it returns an error, the stream ends with this error.
  template <class Call>
  static std::shared_ptr<ClientStream> Open(SessionEvents<Down>* events, Call call) {
    auto stream = std::make_shared<ClientStream>(events);
    stream->self_ = stream;
    stream->Begin(call(&stream->context_, stream.get()));
    stream->AddHold();
    stream->StartRead(&stream->in_);
    stream->StartCall();
    return stream;
  }

  void Send(const Up& message) {
    WireUp wire;
    ToWire(message, &wire);
    MutexLock lock(mu_);
    if (!holding_) return;
    out_.push_back(std::move(wire));
    if (out_.size() == 1) this->StartWrite(&out_.front());
  }

  void Stop() {
    MutexLock lock(mu_);
    stopped_ = true;
    LetGo();
    context_.TryCancel();
    if (event_thread_ == CurrentThread()) return;
    changed_.Wait(lock, [this]() REQUIRES(mu_) { return done_ && event_thread_ == ThreadId(); });
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      MutexLock lock(mu_);
      LetGo();
      return;
    }
    if (const absl::Status read = DeliverRead(); !read.ok()) {
      MutexLock lock(mu_);
      broken_ = absl::InvalidArgumentError(
          absl::StrCat("a message from the dispatcher cannot be read: ", read.message()));
      context_.TryCancel();
    }
    this->StartRead(&in_);
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(mu_);
    out_.pop_front();
    if (!ok) LetGo();
    if (holding_ && !out_.empty()) this->StartWrite(&out_.front());
  }

  void OnDone(const grpc::Status& status) override {
    absl::Status reason;
    {
      MutexLock lock(mu_);
      LetGo();
      reason = broken_.ok() ? FromGrpc(status) : broken_;
    }
    Deliver([&] { events_->OnClosed(reason); });
    std::shared_ptr<ClientStream> self = std::move(self_);
    MutexLock lock(mu_);
    done_ = true;
    changed_.NotifyAll();
  }

 private:
  void Begin(const absl::Status& status) {
    if (status.ok()) return;
    MutexLock lock(mu_);
    broken_ = status;
    context_.TryCancel();
  }
  void LetGo() REQUIRES(mu_) {
    if (!std::exchange(holding_, false)) return;
    this->RemoveHold();
  }

  // Delivers the messages in in_.
  absl::Status DeliverRead() {
    RETURN_IF_ERROR(Parse(&in_, &wire_));
    RETURN_IF_ERROR(DeliverMessage(wire_));
    for (const WireDown& further : wire_.more()) RETURN_IF_ERROR(DeliverMessage(further));
    return absl::OkStatus();
  }
  absl::Status DeliverMessage(const WireDown& wire) {
    ASSIGN_OR_RETURN(std::optional<Down> message, FromStream(wire));
    if (message.has_value())
      Deliver([&] { events_->OnMessage(*std::move(message), wire.sequence()); });
    return absl::OkStatus();
  }

  template <class Event>
  void Deliver(Event event) {
    {
      MutexLock lock(mu_);
      if (stopped_) return;
      event_thread_ = CurrentThread();
    }
    event();
    MutexLock lock(mu_);
    event_thread_ = ThreadId();
    changed_.NotifyAll();
  }

  SessionEvents<Down>* const events_;
  grpc::ClientContext context_;
  grpc::ByteBuffer in_;
  WireDown wire_;                       // in_, parsed
  std::shared_ptr<ClientStream> self_;  // until OnDone

  Mutex mu_;
  Condition changed_;
  std::deque<WireUp> out_ GUARDED_BY(mu_);  // the first is being written
  bool holding_ GUARDED_BY(mu_) = true;
  bool stopped_ GUARDED_BY(mu_) = false;
  bool done_ GUARDED_BY(mu_) = false;
  absl::Status broken_ GUARDED_BY(mu_);    // the error with which this end stops the stream
  ThreadId event_thread_ GUARDED_BY(mu_);  // the thread that is in an event now
};

// The session that a caller owns.
template <class Stream, class Up>
class StreamSession final : public Session<Up> {
 public:
  explicit StreamSession(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
  ~StreamSession() override { stream_->Stop(); }
  void Send(Up message) override { stream_->Send(message); }
  void Stop() override { stream_->Stop(); }

 private:
  std::shared_ptr<Stream> stream_;
};

}  // namespace penstock::control
