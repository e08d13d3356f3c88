// SPDX-License-Identifier: Apache-2.0
// One stream of a peer, on gRPC's callback API. Includes gRPC; for service.cc only.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/core.h"
#include "control/dispatcher/server/port_bounds.h"
#include "control/dispatcher/server/stream_rights.h"
#include "control/observe/refused.h"
#include "control/rpc/status_grpc.h"
#include "control/rpc/wire_bytes.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "penstock/status.h"

namespace penstock::control {

inline bool IsRefusal(const ClientDown& message) {
  return std::holds_alternative<SessionError>(message);
}
inline bool IsRefusal(const WorkerDown& message) {
  return std::holds_alternative<WorkerRefused>(message);
}

// The core's sending end of a stream. It may outlive the stream; messages sent after the stream's
// end are dropped.
template <class Stream, class Down>
class ServerStreamWriter final : public StreamWriter<Down> {
 public:
  explicit ServerStreamWriter(Stream* stream) : stream_(stream) {}
  void Send(Down message, uint64_t sequence) override {
    MutexLock lock(mu_);
    if (stream_ != nullptr) stream_->Send(std::array{&message}, sequence);
  }
  void SendAll(const MessageBatch<Down>& messages, uint64_t sequence) override {
    MutexLock lock(mu_);
    if (stream_ != nullptr) stream_->Send(messages, sequence);
  }
  void Finish(const absl::Status& status) override {
    MutexLock lock(mu_);
    if (stream_ != nullptr) stream_->FinishWith(status);
  }
  void Detach() {
    MutexLock lock(mu_);
    stream_ = nullptr;
  }

 private:
  Mutex mu_;
  Stream* stream_ GUARDED_BY(mu_);  // null once the stream is over
};

// A stream that deletes itself when gRPC is done with it.
template <class Up, class Down, class WireUp, class WireDown, class Peer>
class ServerStream final : public grpc::ServerGenericBidiReactor, public PortUser {
 public:
  using Opened = std::shared_ptr<Peer> (Core::*)(std::shared_ptr<StreamWriter<Down>>, Caller);

  ServerStream(Core* core, Opened open, PortBounds* bounds, StreamRights* rights, Opener opener,
               grpc::CallbackServerContext* context)
      : core_(core),
        bounds_(bounds),
        rights_(rights),
        context_(context),
        writer_(std::make_shared<ServerStreamWriter<ServerStream, Down>>(this)) {
    peer_ = (core_->*open)(writer_, opener.caller);
    rights_->Add(*this, std::move(opener));
    const absl::Status added = bounds_->AddStream(*this, BootTime());
    if (added.ok()) {
      this->StartRead(&in_);
    } else {
      FinishWith(added);
    }
  }

  // `messages`: pointers to at least one.
  void Send(const auto& messages, uint64_t sequence) {
    std::vector<std::string> encoded;
    size_t size = 0;
    for (const auto& message : messages) {
      WireDown wire;
      ToWire(*message, &wire);
      wire.set_sequence(sequence);
      size += encoded.emplace_back(wire.SerializeAsString()).size();
    }
    MutexLock lock(mu_);
    if (finish_.has_value()) return;
    if (!IsRefusal(*messages.front()) && !std::exchange(served_, true))
      bounds_->OnServed(context_->peer());
    if (written_bytes_ > 0 &&
        written_bytes_ + waiting_bytes_ + size > bounds_->limits().unread_bytes) {
      return BreakOff();
    }
    waiting_bytes_ += size;
    std::move(encoded.begin(), encoded.end(), std::back_inserter(waiting_));
    if (written_bytes_ == 0) WriteNext();
  }

  // Ends the stream once all messages passed to Send() have been written.
  void FinishWith(const absl::Status& status) {
    MutexLock lock(mu_);
    if (finish_.has_value()) return;
    finish_ = status;
    if (written_bytes_ == 0) this->Finish(ToGrpc(*finish_));
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      core_->OnClosed(peer_);
      return FinishWith(absl::OkStatus());
    }
    absl::StatusOr<std::optional<Up>> message = Read<Up>(&in_, &wire_);
    if (!message.ok()) {  // the core ends the stream
      return core_->OnUnreadable(peer_, Annotate(message.status(), "from ", context_->peer()));
    }
    if (message->has_value() && !IsRefused()) {
      using Hello = std::variant_alternative_t<0, Up>;
      if (const auto* hello = std::get_if<Hello>(&**message)) OnHello(hello->version);
      core_->OnMessage(peer_, **std::move(message));
    }
    this->StartRead(&in_);
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(mu_);
    out_.Clear();
    written_bytes_ = 0;
    if (!ok) {  // the stream is broken; the read fails too
      waiting_.clear();
      waiting_bytes_ = 0;
    }
    if (!waiting_.empty()) {
      WriteNext();
    } else if (finish_.has_value()) {
      this->Finish(ToGrpc(*finish_));
    }
  }

  void OnDone() override {
    rights_->Remove(*this);
    bounds_->Remove(*this);
    writer_->Detach();
    core_->OnClosed(peer_);
    delete this;
  }

  void Refuse(const absl::Status& why) override {
    MutexLock lock(mu_);
    refused_ = true;
    if (written_bytes_ > 0) return context_->TryCancel();
    if (finish_.has_value()) return;
    finish_ = why;
    this->Finish(ToGrpc(why));
  }
  void Cancel() override { context_->TryCancel(); }
  absl::Time UnreadSince() const override {
    MutexLock lock(mu_);
    return written_bytes_ == 0 ? absl::InfiniteFuture() : writing_since_;
  }

 private:
  static constexpr size_t kJoinedBytes = 64 << 10;  // of the messages in one, at most

  void OnHello(const VersionRange& version) {
    bounds_->Identified(*this);
    MutexLock lock(mu_);
    reads_joined_ = version.max >= kFirstWithJoinedMessages;
  }

  // Messages that arrive after the refusal are dropped: the peer may have lost its rights.
  bool IsRefused() const {
    MutexLock lock(mu_);
    return refused_;
  }

  // A message costs gRPC and the kernel far more than its bytes do, so those that wait are joined.
  void WriteNext() REQUIRES(mu_) {
    std::string bytes = Pop();
    size_t joined = bytes.size();
    while (reads_joined_ && !waiting_.empty() &&
           (joined += waiting_.front().size()) <= kJoinedBytes) {
      AppendField(WireDown::kMoreFieldNumber, Pop(), &bytes);
    }
    written_bytes_ = bytes.size();
    writing_since_ = BootTime();
    out_ = ToBytes(std::move(bytes));
    this->StartWrite(&out_);
  }
  std::string Pop() REQUIRES(mu_) {
    std::string first = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= first.size();
    return first;
  }

  // For a peer that does not read. It opens another stream and is sent the current state again.
  void BreakOff() REQUIRES(mu_) {
    CountRefused(Port::kDispatcher, Refused::kTooLate);
    finish_ = absl::ResourceExhaustedError(absl::StrCat(
        "more than ", bounds_->limits().unread_bytes, " bytes of messages were not read"));
    context_->TryCancel();
  }

  Core* const core_;
  PortBounds* const bounds_;
  StreamRights* const rights_;
  grpc::CallbackServerContext* const context_;  // owned by gRPC, valid until OnDone
  const std::shared_ptr<ServerStreamWriter<ServerStream, Down>> writer_;
  std::shared_ptr<Peer> peer_;
  grpc::ByteBuffer in_;
  WireUp wire_;  // in_, parsed

  mutable Mutex mu_;
  grpc::ByteBuffer out_ GUARDED_BY(mu_);      // being written
  size_t written_bytes_ GUARDED_BY(mu_) = 0;  // of out_; 0: nothing is being written
  std::deque<std::string> waiting_ GUARDED_BY(mu_);
  size_t waiting_bytes_ GUARDED_BY(mu_) = 0;  // of waiting_
  bool reads_joined_ GUARDED_BY(mu_) = false;
  bool served_ GUARDED_BY(mu_) = false;  // the hello was accepted
  absl::Time writing_since_ GUARDED_BY(mu_);
  std::optional<absl::Status> finish_ GUARDED_BY(mu_);
  bool refused_ GUARDED_BY(mu_) = false;
};

// A stream whose only message is the reason for which the dispatcher refuses the caller. The
// message shows the peer that the reason is the dispatcher's own, not that of a proxy. A peer that
// does not read it has the bounds of a stream without a hello.
template <class Down, class WireDown, class Refusal>
class RefusedStream final : public grpc::ServerGenericBidiReactor, public PortUser {
 public:
  RefusedStream(const absl::Status& why, PortBounds* bounds, grpc::CallbackServerContext* context)
      : bounds_(bounds), context_(context), since_(BootTime()) {
    WireDown wire;
    ToWire(Down(Refusal{why}), &wire);
    message_ = ToBytes(wire);
    const absl::Status added = bounds_->AddStream(*this, since_);
    this->StartWriteAndFinish(&message_, grpc::WriteOptions(), ToGrpc(why));
    if (!added.ok()) Cancel();
  }
  void OnDone() override {
    bounds_->Remove(*this);
    delete this;
  }

  void Refuse(const absl::Status&) override { Cancel(); }  // another reason is on its way
  void Cancel() override { context_->TryCancel(); }
  absl::Time UnreadSince() const override { return since_; }

 private:
  PortBounds* const bounds_;
  grpc::CallbackServerContext* const context_;  // gRPC's, until OnDone
  const absl::Time since_;
  grpc::ByteBuffer message_;
};

using ClientServerStream =
    ServerStream<ClientUp, ClientDown, wire::ClientUp, wire::ClientDown, ClientPeer>;
using WorkerServerStream =
    ServerStream<WorkerUp, WorkerDown, wire::WorkerUp, wire::WorkerDown, WorkerPeer>;

}  // namespace penstock::control
