// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/grpc/send_stream.h"

#include <limits>
#include <utility>

#include "control/observe/refused.h"
#include "control/rpc/status_grpc.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/pool.h"
#include "dataplane/transfer/grpc/slices.h"
#include "dataplane/transfer/send_handle.h"
#include "include/status_macros.h"

namespace penstock::transfer {
namespace {

// gRPC counts a message's bytes in 32 bits.
constexpr uint64_t kMaxBlockBytes = std::numeric_limits<uint32_t>::max() - kMessageHeaderBytes;

}  // namespace

SendStream* SendStream::Start(grpc::GenericCallbackServerContext* context, Owner& owner,
                              std::chrono::milliseconds hello_timeout) {
  std::shared_ptr<SendStream> stream(new SendStream(context, owner));
  stream->self_ = stream;
  {
    MutexLock lock(stream->mu_);
    stream->alarm_.emplace();
    stream->alarm_->Set(
        absl::ToChronoTime(WallTime()) + hello_timeout,
        [weak = stream->weak_from_this()](bool expired) {
          const std::shared_ptr<SendStream> self = weak.lock();
          if (self == nullptr || !expired) return;
          self->Reject(absl::DeadlineExceededError("the client did not send a hello in time"));
        });
  }
  stream->StartRead(&stream->read_);
  return stream.get();
}

SendStream::SendStream(grpc::GenericCallbackServerContext* context, Owner& owner)
    : context_(context), owner_(owner), queue_(DefaultPool(), kFrameBytes) {}

int64_t SendStream::credits() const {
  MutexLock lock(mu_);
  return queue_.credits();
}

absl::Status SendStream::Send(Sent&& sent) {
  if (sent.element && sent.element.block().size() > kMaxBlockBytes) {
    return absl::InvalidArgumentError(absl::StrCat("an element of ", sent.element.block().size(),
                                                   " bytes exceeds the limit of 'grpc', ",
                                                   kMaxBlockBytes, " bytes"));
  }
  MutexLock lock(mu_);
  RETURN_IF_ERROR(queue_.Send(std::move(sent)));
  WriteNext();
  if (queue_.has_open_frame() && !alarm_set_) FlushLater();
  return absl::OkStatus();
}

void SendStream::Flush() {
  MutexLock lock(mu_);
  queue_.Seal();
  WriteNext();
}

void SendStream::FlushLater() {
  alarm_set_ = true;
  alarm_.emplace();
  alarm_->Set(absl::ToChronoTime(WallTime() + absl::FromChrono(kFrameFlushDelay)),
              [stream = weak_from_this(), frame = queue_.frame()](bool) {
                const std::shared_ptr<SendStream> self = stream.lock();
                if (self == nullptr) return;
                MutexLock lock(self->mu_);
                self->alarm_set_ = false;
                if (!self->queue_.has_open_frame()) return;
                if (self->queue_.frame() != frame) return self->FlushLater();
                self->queue_.Seal();
                self->WriteNext();
              });
}

void SendStream::Close(const absl::Status& reason) {
  MutexLock lock(mu_);
  queue_.Close(reason);
  WriteNext();
}

void SendStream::OnReadDone(bool ok) {
  absl::Status handled = absl::UnavailableError("the client's connection broke");
  if (ok) {
    const absl::StatusOr<std::string> bytes = ToString(read_);
    handled = bytes.ok() ? Handle(*bytes) : bytes.status();
  }
  if (handled.ok()) return StartRead(&read_);
  MutexLock lock(mu_);
  queue_.Refuse(handled);
  Break(handled);
}

absl::Status SendStream::Handle(const std::string& bytes) {
  ASSIGN_OR_RETURN(Message message, DecodeFromClient(bytes, hello_received_));
  if (auto* hello = std::get_if<Hello>(&message)) return Handle(std::move(*hello));
  if (auto* update = std::get_if<Update>(&message)) return Handle(*update);
  MutexLock lock(mu_);
  Break(absl::OkStatus());  // a goodbye
  return absl::OkStatus();
}

absl::Status SendStream::Handle(Hello hello) {
  hello_received_ = true;
  hello_ = std::move(hello);
  codec_.SetCompression(hello_.compression);
  owner_.OnHelloReceived(*this);
  ASSIGN_OR_RETURN(
      events_, owner_.Accept(hello_, std::make_shared<SendHandle<SendStream>>(shared_from_this())));
  owner_.OnAuthenticated(context_->peer());
  MutexLock lock(mu_);
  queue_.Welcome();
  WriteNext();
  return absl::OkStatus();
}

absl::Status SendStream::Handle(const Update& update) {
  {
    MutexLock lock(mu_);
    RETURN_IF_ERROR(queue_.Apply(update, received_));
    codec_.OnReceived(update.received);
    WriteNext();
  }
  NotifyUpdate(update, received_, *events_);
  return absl::OkStatus();
}

void SendStream::OnWriteDone(bool ok) {
  MutexLock lock(mu_);
  busy_ = false;
  writing_.Clear();
  if (!ok) return Break(absl::UnavailableError("the client's connection broke"));
  WriteNext();
}

void SendStream::Cancel() {
  // The pending read then fails, which ends the call.
  context_->TryCancel();
}

void SendStream::Reject(const absl::Status& reason) {
  MutexLock lock(mu_);
  if (queue_.answered()) return;
  CountRefused(Port::kGrpc,
               absl::IsDeadlineExceeded(reason) ? Refused::kTooLate : Refused::kTooMany);
  queue_.Refuse(reason);
  Break(reason);
}

void SendStream::OnCancel() {
  MutexLock lock(mu_);
  Break(absl::UnavailableError("the client's connection broke"));
}

void SendStream::Break(const absl::Status& reason) {
  queue_.Close(reason);
  broken_ = true;
  WriteNext();
}

void SendStream::WriteNext() {
  if (busy_ || finished_ || !queue_.answered()) return;
  if (!broken_) {
    if (queue_.empty()) return;
    SendQueue::OutgoingMessage next = queue_.Take();
    if (next.type != MessageType::kClosed) {
      writing_ = MessageOf(std::move(next));
      busy_ = true;
      return StartWrite(&writing_);
    }
  }
  finished_ = true;
  Finish(control::ToGrpc(queue_.reason()));
}

grpc::ByteBuffer SendStream::MessageOf(SendQueue::OutgoingMessage next) {
  if (const std::string text = TextOf(next); !text.empty()) {
    if (next.type == MessageType::kError) codec_.OnOther(0);
    return ToBuffer(text);
  }
  LinkCodec::Encoded encoded =
      codec_.Encode(next.type, next.bytes, std::move(next.loan), next.count);
  return ToBuffer(encoded.type, encoded.bytes, std::move(encoded.loan));
}

void SendStream::OnDone() {
  std::vector<Sent> unconfirmed;
  absl::Status reason;
  {
    MutexLock lock(mu_);
    unconfirmed = queue_.TakeUnconfirmed();
    reason = queue_.reason();
  }
  std::shared_ptr<SendStream> self = std::exchange(self_, nullptr);
  if (auto events = std::exchange(events_, nullptr)) {
    events->OnClosed(reason, std::move(unconfirmed));
  }
  owner_.OnOver(*this);
}

}  // namespace penstock::transfer
