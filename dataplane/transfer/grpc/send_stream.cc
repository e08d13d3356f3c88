// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/grpc/send_stream.h"

#include <limits>
#include <utility>

#include "absl/time/clock.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/pool.h"
#include "dataplane/transfer/grpc/convert.h"
#include "dataplane/transfer/grpc/slices.h"
#include "dataplane/transfer/send_handle.h"
#include "penstock/status.h"

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
    stream->alarm_->Set(std::chrono::system_clock::now() + hello_timeout,
                        [stranger = stream->weak_from_this()](bool expired) {
                          const std::shared_ptr<SendStream> self = stranger.lock();
                          if (self == nullptr || !expired) return;
                          self->TurnAway(absl::DeadlineExceededError("the client said no hello"));
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
                                                   " bytes; 'grpc' carries ", kMaxBlockBytes,
                                                   " at most"));
  }
  MutexLock lock(mu_);
  if (closing_) return absl::UnavailableError("the link is closed");
  PENSTOCK_RETURN_IF_ERROR(queue_.Send(std::move(sent)));
  WriteNext();
  if (queue_.filling() && !alarm_set_) FlushLater();
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
  alarm_->Set(absl::ToChronoTime(absl::Now() + absl::FromChrono(kLongestFilling)),
              [stream = weak_from_this(), frame = queue_.frame()](bool) {
                const std::shared_ptr<SendStream> self = stream.lock();
                if (self == nullptr) return;
                MutexLock lock(self->mu_);
                self->alarm_set_ = false;
                if (!self->queue_.filling()) return;
                if (self->queue_.frame() != frame) return self->FlushLater();
                self->queue_.Seal();
                self->WriteNext();
              });
}

void SendStream::Close(const absl::Status& reason) {
  MutexLock lock(mu_);
  if (closing_) return;
  closing_ = true;
  reason_ = reason;
  queue_.Seal();
  WriteNext();
}

void SendStream::OnReadDone(bool ok) {
  if (!ok) {
    MutexLock lock(mu_);
    accepting_ = false;
    return Break(absl::UnavailableError("the client's connection broke"));
  }
  absl::StatusOr<std::string> bytes = ToString(read_);
  absl::Status handled = bytes.ok() ? Handle(*bytes) : bytes.status();
  if (handled.ok()) return StartRead(&read_);
  MutexLock lock(mu_);
  accepting_ = false;
  Break(handled);
}

absl::Status SendStream::Handle(const std::string& bytes) {
  PENSTOCK_ASSIGN_OR_RETURN(Message message, Decode(bytes));
  if (!greeted_) {
    if (auto* hello = std::get_if<Hello>(&message)) return Handle(std::move(*hello));
    return absl::InvalidArgumentError("a link begins with a hello");
  }
  if (auto* update = std::get_if<Update>(&message)) return Handle(*update);
  if (std::holds_alternative<Goodbye>(message)) {
    MutexLock lock(mu_);
    Break(absl::OkStatus());
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("a message that a client does not send");
}

absl::Status SendStream::Handle(Hello hello) {
  greeted_ = true;
  hello_ = std::move(hello);
  codec_.Wish(hello_.compression);
  owner_.OnGreeted(*this);
  absl::StatusOr<std::shared_ptr<SendEvents>> events =
      owner_.Accept(hello_, std::make_shared<SendHandle<SendStream>>(shared_from_this()));
  MutexLock lock(mu_);
  accepting_ = false;
  if (!events.ok()) {
    closing_ = false;  // that the handle was let go of is no reason to tell
    return events.status();
  }
  events_ = *std::move(events);
  queue_.Welcome();
  WriteNext();
  return absl::OkStatus();
}

absl::Status SendStream::Handle(const Update& update) {
  {
    MutexLock lock(mu_);
    PENSTOCK_RETURN_IF_ERROR(queue_.Apply(update, landed_));
    codec_.OnLanded(update.landed);
    WriteNext();
  }
  Tell(update, landed_, *events_);
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
  // The read that is under way then fails, and what follows from it.
  context_->TryCancel();
}

void SendStream::TurnAway(const absl::Status& reason) {
  MutexLock lock(mu_);
  if (!std::exchange(accepting_, false)) return;
  Break(reason);
}

void SendStream::OnCancel() {
  MutexLock lock(mu_);
  Break(absl::UnavailableError("the client's connection broke"));
}

void SendStream::Break(const absl::Status& reason) {
  if (!closing_) reason_ = reason;
  closing_ = true;
  broken_ = true;
  WriteNext();
}

void SendStream::WriteNext() {
  if (busy_ || finished_ || accepting_) return;
  if (!queue_.empty() && !broken_) {
    writing_ = NextMessage();
    busy_ = true;
    return StartWrite(&writing_);
  }
  if (!closing_) return;
  finished_ = true;
  Finish(ToGrpc(reason_));
}

grpc::ByteBuffer SendStream::NextMessage() {
  SendQueue::Next next = queue_.Take();
  if (const std::string text = TextOf(next); !text.empty()) {
    if (next.type == MessageType::kError) codec_.OnError();
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
    closing_ = true;
    reason = reason_;
  }
  std::shared_ptr<SendStream> self = std::exchange(self_, nullptr);
  if (auto events = std::exchange(events_, nullptr)) {
    events->OnClosed(reason, std::move(unconfirmed));
  }
  owner_.OnOver(*this);
}

}  // namespace penstock::transfer
