// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/grpc/send_stream.h"

#include <limits>
#include <utility>

#include "absl/time/clock.h"
#include "dataplane/memory/pool.h"
#include "dataplane/transfer/grpc/convert.h"
#include "dataplane/transfer/grpc/slices.h"
#include "penstock/status.h"

namespace penstock::transfer {
namespace {

// gRPC counts a message's bytes in 32 bits.
constexpr uint64_t kMaxBlockBytes = std::numeric_limits<uint32_t>::max() - kMessageHeaderBytes;

constexpr absl::Duration kLongestFilling = absl::Milliseconds(1);

class GrpcSendLink : public SendLink {
 public:
  explicit GrpcSendLink(std::shared_ptr<SendStream> stream) : stream_(std::move(stream)) {}
  ~GrpcSendLink() override {
    stream_->Close(absl::CancelledError("the worker let go of the link"));
  }
  const Hello& hello() const override { return stream_->hello(); }
  int64_t credits() const override { return stream_->credits(); }
  absl::Status Send(Element&& element) override {
    if (element.block().size() > kMaxBlockBytes) {
      return absl::InvalidArgumentError(absl::StrCat("an element of ", element.block().size(),
                                                     " bytes; 'grpc' carries ", kMaxBlockBytes,
                                                     " at most"));
    }
    Sent sent;
    sent.identity = element.identity();
    sent.element = std::move(element);
    absl::Status status = stream_->Send(std::move(sent));
    if (!status.ok()) element = std::move(sent.element);
    return status;
  }
  absl::Status SendError(const Identity& identity, const absl::Status& error) override {
    return stream_->Send({identity, Element(), error});
  }
  void Flush() override { stream_->Flush(); }
  void Close(const absl::Status& reason) override { stream_->Close(reason); }

 private:
  const std::shared_ptr<SendStream> stream_;
};

}  // namespace

SendStream* SendStream::Start(grpc::GenericCallbackServerContext* context, Listener::Accept accept,
                              std::function<void(SendStream*)> done) {
  std::shared_ptr<SendStream> stream(new SendStream(context, std::move(accept), std::move(done)));
  stream->self_ = stream;
  stream->StartRead(&stream->read_);
  return stream.get();
}

SendStream::SendStream(grpc::GenericCallbackServerContext* context, Listener::Accept accept,
                       std::function<void(SendStream*)> done)
    : context_(context),
      accept_(std::move(accept)),
      done_(std::move(done)),
      sent_(DefaultPool(), kFrameBytes) {}

int64_t SendStream::credits() const {
  std::lock_guard lock(mu_);
  return credits_;
}

absl::Status SendStream::Send(Sent&& sent) {
  std::lock_guard lock(mu_);
  if (closing_) return absl::UnavailableError("the link is closed");
  if (credits_ == 0) return absl::FailedPreconditionError("no credit on this link");
  --credits_;
  sent_.Push(std::move(sent));
  PostParcels();
  WriteNext();
  if (sent_.filling() && !alarm_set_) FlushLater();
  return absl::OkStatus();
}

void SendStream::Flush() {
  std::lock_guard lock(mu_);
  Seal();
  WriteNext();
}

void SendStream::Seal() {
  sent_.Seal();
  PostParcels();
}

void SendStream::PostParcels() {
  for (; posted_ < sent_.ready(); ++posted_) outbox_.Push({Letter::kParcel});
}

void SendStream::FlushLater() {
  alarm_set_ = true;
  alarm_.emplace();
  alarm_->Set(absl::ToChronoTime(absl::Now() + kLongestFilling),
              [stream = weak_from_this(), frame = sent_.frame()](bool) {
                const std::shared_ptr<SendStream> self = stream.lock();
                if (self == nullptr) return;
                std::lock_guard lock(self->mu_);
                self->alarm_set_ = false;
                if (!self->sent_.filling()) return;
                if (self->sent_.frame() != frame) return self->FlushLater();
                self->Seal();
                self->WriteNext();
              });
}

void SendStream::Close(const absl::Status& reason) {
  std::lock_guard lock(mu_);
  if (closing_) return;
  closing_ = true;
  reason_ = reason;
  Seal();
  WriteNext();
}

void SendStream::OnReadDone(bool ok) {
  if (!ok) {
    std::lock_guard lock(mu_);
    accepting_ = false;
    return Break(absl::UnavailableError("the client's connection broke"));
  }
  absl::StatusOr<std::string> bytes = ToString(read_);
  absl::Status handled = bytes.ok() ? Handle(*bytes) : bytes.status();
  if (handled.ok()) return StartRead(&read_);
  std::lock_guard lock(mu_);
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
    std::lock_guard lock(mu_);
    Break(absl::OkStatus());
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("a message that a client does not send");
}

absl::Status SendStream::Handle(Hello hello) {
  greeted_ = true;
  hello_ = std::move(hello);
  absl::StatusOr<std::shared_ptr<SendEvents>> events =
      std::exchange(accept_, nullptr)(hello_, std::make_shared<GrpcSendLink>(shared_from_this()));
  std::lock_guard lock(mu_);
  accepting_ = false;
  if (!events.ok()) {
    closing_ = false;  // that the handle was let go of is no reason to tell
    return events.status();
  }
  events_ = *std::move(events);
  outbox_.Push({Letter::kWelcome});
  WriteNext();
  return absl::OkStatus();
}

absl::Status SendStream::Handle(const Update& update) {
  const int64_t granted = update.granted + update.granted_after_recall;
  {
    std::lock_guard lock(mu_);
    if (credits_ > std::numeric_limits<int64_t>::max() - granted) {
      return absl::InvalidArgumentError("more credits than can be counted");
    }
    if (!sent_.Landed(update.landed)) {
      return absl::InvalidArgumentError(absl::StrCat("the client has landed ", update.landed,
                                                     " elements at once, more than were sent"));
    }
    credits_ += update.granted;
    if (update.recall) {
      Seal();  // the answer comes behind what was sent
      outbox_.Push({Letter::kRecalled, std::exchange(credits_, 0)});
    }
    credits_ += update.granted_after_recall;
    WriteNext();
  }
  if (update.landed > 0) events_->OnLanded(update.landed);
  if (granted > 0) events_->OnCredits({granted});
  return absl::OkStatus();
}

void SendStream::OnWriteDone(bool ok) {
  std::lock_guard lock(mu_);
  busy_ = false;
  writing_.Clear();
  if (!ok) return Break(absl::UnavailableError("the client's connection broke"));
  WriteNext();
}

void SendStream::Cancel() {
  // The read that is under way then fails, and what follows from it.
  context_->TryCancel();
}

void SendStream::OnCancel() {
  std::lock_guard lock(mu_);
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
  if (!outbox_.empty() && !broken_) {
    writing_ = NextMessage();
    busy_ = true;
    return StartWrite(&writing_);
  }
  if (!closing_) return;
  finished_ = true;
  Finish(ToGrpc(reason_));
}

grpc::ByteBuffer SendStream::NextMessage() {
  const Letter next = outbox_.Pop();
  switch (next.kind) {
    case Letter::kWelcome:
      return ToBuffer(Encode(Welcome()));
    case Letter::kRecalled:
      return ToBuffer(Encode(Recalled{next.count}));
    case Letter::kParcel:
      break;
  }
  return NextParcel();
}

grpc::ByteBuffer SendStream::NextParcel() {
  --posted_;
  Outgoing::Parcel parcel = sent_.Take();
  if (parcel.error != nullptr) {
    return ToBuffer(Encode(ErrorMessage{parcel.error->identity, parcel.error->error}));
  }
  return ToBuffer(parcel.is_frame ? MessageType::kFrame : MessageType::kElement, parcel.bytes,
                  std::move(parcel.loan));
}

void SendStream::OnDone() {
  std::vector<Sent> unconfirmed;
  absl::Status reason;
  {
    std::lock_guard lock(mu_);
    unconfirmed = sent_.TakeUnconfirmed();
    closing_ = true;
    reason = reason_;
  }
  std::shared_ptr<SendStream> self = std::exchange(self_, nullptr);
  if (auto events = std::exchange(events_, nullptr)) {
    events->OnClosed(reason, std::move(unconfirmed));
  }
  done_(this);
}

}  // namespace penstock::transfer
