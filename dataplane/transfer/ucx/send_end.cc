// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/send_end.h"

#include <utility>

#include "control/sync/mutex.h"
#include "dataplane/memory/pool.h"
#include "dataplane/transfer/send_handle.h"
#include "include/status_macros.h"

namespace penstock::transfer::ucx {
namespace {

// How long a client may be silent after it has received the end of the link.
constexpr std::chrono::seconds kClientGoodbyeTimeout(5);

class UcxSendLink final : public SendHandle<SendEnd> {
 public:
  using SendHandle::SendHandle;
  std::shared_ptr<Pool> pool() override { return end_->slots(); }
};

}  // namespace

SendEnd::SendEnd(std::shared_ptr<Engine> engine, std::shared_ptr<Pool> slots, Owner& owner)
    : engine_(std::move(engine)),
      slots_(std::move(slots)),
      owner_(owner),
      queue_(DefaultPool(), kFrameBytes) {}

// --- The worker's calls ----------------------------------------------------------

int64_t SendEnd::credits() const {
  MutexLock lock(mu_);
  return queue_.credits();
}

absl::Status SendEnd::Send(Sent&& sent) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(queue_.Send(std::move(sent)));
  Ask();
  return absl::OkStatus();
}

void SendEnd::Flush() {
  MutexLock lock(mu_);
  queue_.Seal();
  Ask();
}

void SendEnd::Close(const absl::Status& reason) {
  {
    MutexLock lock(mu_);
    queue_.Close(reason);
  }
  engine_->Call(shared_from_this());
}

void SendEnd::Break(const absl::Status& reason) {
  {
    MutexLock lock(mu_);
    queue_.Close(reason);
    broken_ = true;
  }
  engine_->Call(shared_from_this());
}

void SendEnd::Ask() {
  if (queue_.has_open_frame() && !deadline_set_ && !std::exchange(deadline_asked_, true)) {
    return engine_->Call(shared_from_this());
  }
  if (!queue_.empty()) engine_->Call(shared_from_this());
}

// --- On the engine's thread --------------------------------------------------------

absl::Status SendEnd::Admit(uint32_t, size_t) {
  return absl::InvalidArgumentError("a client must not send elements");
}

absl::StatusOr<Loan> SendEnd::Room(size_t) {
  return absl::InvalidArgumentError("a client must not send elements");
}

void SendEnd::OnIncoming(Incoming incoming) {
  if (over_) return;
  absl::Status handled = Handle(incoming);
  if (over_) return;
  if (!handled.ok()) {
    draining_ = true;
    MutexLock lock(mu_);
    queue_.Refuse(handled);
  }
  Pump();
}

absl::Status SendEnd::Handle(const Incoming& incoming) {
  RETURN_IF_ERROR(incoming.status);
  if (incoming.head.kind == Head::kBroken) {
    End(absl::UnavailableError("the client aborted the link"));
    return absl::OkStatus();
  }
  if (incoming.head.kind != Head::kText) {
    return draining_ ? absl::OkStatus()
                     : absl::InvalidArgumentError("a client must not send elements");
  }
  absl::StatusOr<Message> message = DecodeFromClient(incoming.text(), hello_received_);
  if (message.ok() && std::holds_alternative<Goodbye>(*message)) {
    End(absl::OkStatus());
    return absl::OkStatus();
  }
  if (draining_) return absl::OkStatus();
  RETURN_IF_ERROR(message.status());
  if (auto* hello = std::get_if<Hello>(&*message)) return HandleHello(std::move(*hello));
  const auto& update = std::get<Update>(*message);
  {
    MutexLock lock(mu_);
    RETURN_IF_ERROR(queue_.Apply(update, received_));
  }
  // A client that still receives elements is not silent.
  if (close_sent_) engine_->SetDeadline(*this, Clock::now() + kClientGoodbyeTimeout);
  NotifyUpdate(update, received_, *events_);
  return absl::OkStatus();
}

absl::Status SendEnd::HandleHello(Hello hello) {
  hello_received_ = true;
  hello_ = std::move(hello);
  ASSIGN_OR_RETURN(events_, owner_.OnHello(hello_, std::make_shared<UcxSendLink>(self())));
  MutexLock lock(mu_);
  queue_.Welcome();
  return absl::OkStatus();
}

void SendEnd::OnCall() {
  if (over_) return;
  MutexLock lock(mu_);
  if (broken_) {
    lock.unlock();
    return End(absl::OkStatus());
  }
  if (std::exchange(deadline_asked_, false)) {
    deadline_set_ = true;
    frame_ = queue_.frame();
    engine_->SetDeadline(*this, Clock::now() + kFrameFlushDelay);
  }
  lock.unlock();
  Pump();
}

void SendEnd::Pump() {
  MutexLock lock(mu_);
  while (!queue_.empty()) {
    SendQueue::OutgoingMessage next = queue_.Take();
    lock.unlock();
    if (const std::string text = TextOf(next); !text.empty()) {
      engine_->Send(*this, text);
    } else {
      engine_->Send(*this, next.type, next.bytes, std::move(next.loan));
    }
    lock.lock();
  }
  if (!queue_.close_sent() || std::exchange(close_sent_, true)) return;
  engine_->SetDeadline(*this, Clock::now() + kClientGoodbyeTimeout);
}

void SendEnd::OnDeadline() {
  if (over_) return;
  if (close_sent_) return End(absl::UnavailableError("the client did not answer"));
  {
    MutexLock lock(mu_);
    deadline_set_ = false;
    if (queue_.has_open_frame() && queue_.frame() != frame_) {
      deadline_set_ = true;
      frame_ = queue_.frame();
      engine_->SetDeadline(*this, Clock::now() + kFrameFlushDelay);
    } else {
      queue_.Seal();
    }
  }
  Pump();
}

void SendEnd::OnLost(const absl::Status& reason) {
  if (over_) return;
  End(Annotate(absl::UnavailableError("the client's connection broke"), reason.message()));
}

void SendEnd::End(const absl::Status& reason) {
  if (std::exchange(over_, true)) return;
  const std::shared_ptr<SendEnd> kept = self();
  engine_->Remove(*this);
  std::vector<Sent> unconfirmed;
  absl::Status why;
  {
    MutexLock lock(mu_);
    queue_.Close(reason);
    why = queue_.reason();
    unconfirmed = queue_.TakeUnconfirmed();
  }
  if (auto events = std::exchange(events_, nullptr)) {
    events->OnClosed(why, std::move(unconfirmed));
  }
  owner_.OnOver(*this);
}

}  // namespace penstock::transfer::ucx
