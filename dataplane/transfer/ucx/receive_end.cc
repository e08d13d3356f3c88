// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/receive_end.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "control/sync/mutex.h"
#include "dataplane/element/device_block_check.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/ucx/gpu_places.h"
#include "include/status_macros.h"

namespace penstock::transfer::ucx {
namespace {

// How long a link that the client has closed waits for the worker's answer. The goodbye can be sent
// only after that answer.
constexpr std::chrono::seconds kLateOpenTimeout(5);

Clock::time_point After(absl::Duration timeout) {
  return Clock::now() + absl::ToChronoMilliseconds(std::min(timeout, absl::Hours(24 * 365)));
}

}  // namespace

ReceiveEnd::ReceiveEnd(std::shared_ptr<Engine> engine, Resources& resources, std::string target,
                       DialOptions options, std::shared_ptr<ReceiveEvents> events)
    : engine_(std::move(engine)),
      resources_(resources),
      target_(std::move(target)),
      options_(std::move(options)),
      pool_(options_.pool != nullptr ? *options_.pool : DefaultPool()),
      device_(HeadDescribesAll(options_.spec) ? GpuDirectPool::From(options_.pool) : nullptr),
      events_(std::move(events)),
      receiver_(options_.spec, options_.max_element_bytes) {}

void ReceiveEnd::Start() {
  engine_->Call(shared_from_this());
}

// --- The client's calls ----------------------------------------------------------

void ReceiveEnd::Grant(Credits credits) {
  if (credits.count <= 0) return;
  receiver_.Grant(credits.count);
  {
    MutexLock lock(mu_);
    (waiting_.recall ? waiting_.granted_after_recall : waiting_.granted) += credits.count;
  }
  engine_->Call(shared_from_this());
}

void ReceiveEnd::Recall() {
  {
    MutexLock lock(mu_);
    // A message carries at most one recall. If that recall stands for two, credits granted between
    // the two recalls are returned too.
    waiting_.granted += std::exchange(waiting_.granted_after_recall, 0);
    waiting_.recall = true;
  }
  engine_->Call(shared_from_this());
}

void ReceiveEnd::Close() {
  gate_.Close();
  {
    MutexLock lock(mu_);
    closed_ = true;
  }
  engine_->Call(shared_from_this());
}

bool ReceiveEnd::closed() {
  MutexLock lock(mu_);
  return closed_;
}

// --- The engine's calls --------------------------------------------------------------

void ReceiveEnd::OnCall() {
  if (over_) return;
  if (closed()) return DrainClosed();
  if (!std::exchange(dialled_, true) && gate_.Enter()) {
    engine_->SetDeadline(*this, After(options_.timeout));
    absl::Status dialled = engine_->Dial(shared_from_this(), target_, Encode(options_.hello),
                                         device_ != nullptr ? kWantsTwoPieces : 0);
    if (dialled.ok()) {
      engine_->SetDeadline(*this, After(options_.timeout));
    } else {
      NotifyEnd(dialled);
    }
    gate_.Leave();
  }
  if (open_ && !over_) Report();
}

void ReceiveEnd::OnDeadline() {
  if (over_ || open_) return;
  if (!gate_.Enter()) return End();
  NotifyEnd(absl::DeadlineExceededError(
      absl::StrCat("it did not answer within ", absl::FormatDuration(options_.timeout))));
  gate_.Leave();
}

void ReceiveEnd::OnLost(const absl::Status& reason) {
  if (over_) return;
  if (!gate_.Enter()) return End();
  NotifyEnd(reason);
  gate_.Leave();
}

absl::Status ReceiveEnd::Admit(uint32_t kind, size_t bytes) {
  const bool frame = kind == static_cast<uint32_t>(MessageType::kFrame);
  if (frame && bytes > kFrameBytes) {
    return absl::DataLossError(
        absl::StrCat("a frame of ", bytes, " bytes exceeds the limit of ", kFrameBytes, " bytes"));
  }
  if (!frame && bytes > static_cast<uint64_t>(options_.max_element_bytes)) {
    return absl::DataLossError(
        absl::StrCat("an element of ", bytes,
                     " bytes is above max_element_bytes = ", options_.max_element_bytes));
  }
  return receiver_.Use(1);
}

absl::StatusOr<Loan> ReceiveEnd::Room(size_t bytes) {
  if (bytes >= kAnnounceFrom) return resources_.pool->Lend(bytes);
  if (!gate_.Enter()) return absl::CancelledError("the client has closed the link");
  absl::StatusOr<Loan> loan = pool_.Lend(bytes);
  gate_.Leave();
  return loan;
}

std::optional<DevicePlace> ReceiveEnd::RoomOnDevice(size_t head_bytes, size_t body_bytes) {
  if (device_ == nullptr || !gate_.Enter()) return std::nullopt;
  std::optional<DevicePlace> place =
      device_->LendPlace(head_bytes, body_bytes, OpenGpuPlaces(resources_));
  gate_.Leave();
  return place;
}

void ReceiveEnd::OnIncoming(Incoming incoming) {
  if (over_) return;
  if (gate_.Enter()) {
    std::optional<absl::Status> reason = Handle(incoming);
    if (reason.has_value() && !closed()) NotifyEnd(*reason);
    gate_.Leave();
  } else if (!open_ && incoming.head.kind == Head::kText) {
    open_ = true;  // or the link was refused; a goodbye is then harmless
  }
  if (!over_ && closed()) DrainClosed();
}

std::optional<absl::Status> ReceiveEnd::Handle(Incoming& incoming) {
  if (!incoming.status.ok()) return incoming.status;
  if (incoming.head.kind != Head::kText) {
    if (!open_) return absl::DataLossError("the worker sent an element before its welcome");
    if (absl::Status received = Receive(incoming); !received.ok()) return received;
    return std::nullopt;
  }
  absl::StatusOr<Message> message = Decode(incoming.text());
  if (!message.ok()) return absl::DataLossError(message.status().message());
  if (const auto* closed = std::get_if<Closed>(&*message)) {
    open_ = true;  // the worker waits for a goodbye
    return closed->reason;
  }
  if (open_) {
    if (absl::Status handled = HandleOpen(*message); !handled.ok()) return handled;
    return std::nullopt;
  }
  if (!std::holds_alternative<Welcome>(*message)) {
    return absl::DataLossError("the worker sent a message before its welcome");
  }
  open_ = true;
  engine_->SetDeadline(*this, Clock::time_point::max());
  events_->OnOpen();
  engine_->Call(shared_from_this());  // for credits that were granted meanwhile
  return std::nullopt;
}

absl::Status ReceiveEnd::HandleOpen(const Message& message) {
  if (const auto* recalled = std::get_if<Recalled>(&message)) {
    RETURN_IF_ERROR(receiver_.Use(recalled->count));
    events_->OnRecalled({recalled->count});
    return absl::OkStatus();
  }
  if (const auto* error = std::get_if<ErrorMessage>(&message)) {
    RETURN_IF_ERROR(receiver_.Use(1));
    events_->OnError(error->identity, error->error);
    {
      MutexLock lock(mu_);
      ++waiting_.received;
    }
    engine_->Call(shared_from_this());
    return absl::OkStatus();
  }
  return absl::DataLossError("the worker sent an unexpected message");
}

absl::Status ReceiveEnd::Receive(Incoming& incoming) {
  int64_t count = 0;
  const bool frame = incoming.head.kind == static_cast<uint32_t>(MessageType::kFrame);
  absl::Status status =
      incoming.on_device.has_value()
          ? receiver_.OnDevice(std::move(incoming.loan), *incoming.on_device, *events_, count)
      : frame ? receiver_.Frame(std::move(incoming.loan), incoming.bytes, *events_, count)
              : receiver_.Element(std::move(incoming.loan), incoming.bytes, *events_, count);
  {
    MutexLock lock(mu_);
    waiting_.received += count;
  }
  engine_->Call(shared_from_this());  // runs after the messages that arrived with this one
  return status;
}

void ReceiveEnd::Report() {
  {
    MutexLock lock(mu_);
    if (waiting_.received == 0 && waiting_.granted == 0 && !waiting_.recall) return;
    out_.clear();
    Append(std::exchange(waiting_, Update()), out_);
  }
  engine_->Send(*this, out_);
}

// --- Ending ----------------------------------------------------------------------

void ReceiveEnd::NotifyEnd(const absl::Status& reason) {
  if (open_) {
    Report();
    if (absl::IsDataLoss(reason)) {
      engine_->SendBroken(*this);
    } else {
      engine_->Send(*this, Encode(Goodbye()));
    }
  }
  const std::shared_ptr<ReceiveEvents> events = events_;
  End();
  events->OnClosed(Annotate(reason, "worker at ", target_));
}

void ReceiveEnd::DrainClosed() {
  if (!dialled_) return End();
  if (!open_) {
    return engine_->SetDeadline(*this, Clock::now() + kLateOpenTimeout);
  }
  Report();
  engine_->Send(*this, Encode(Goodbye()));
  End();
}

void ReceiveEnd::End() {
  if (std::exchange(over_, true)) return;
  const std::shared_ptr<Link> kept = shared_from_this();
  engine_->Remove(*this);
  events_.reset();
}

}  // namespace penstock::transfer::ucx
