// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/world/receive_end.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/memory/pool.h"
#include "include/status_macros.h"

namespace penstock::simulator {

ReceiveEnd::ReceiveEnd(std::string target, transfer::DialOptions options,
                       std::shared_ptr<transfer::ReceiveEvents> events)
    : target_(std::move(target)),
      options_(std::move(options)),
      pool_(options_.pool != nullptr ? *options_.pool : DefaultPool()),
      events_(std::move(events)),
      receiver_(options_.spec, options_.max_element_bytes) {}

void ReceiveEnd::Dial(Scheduler& scheduler, Network& network) {
  connection_ = network.Connect(target_, shared_from_this());
  connection_->Send(transfer::Encode(options_.hello));
  const absl::Duration timeout = std::min(options_.timeout, absl::Hours(24 * 365));
  scheduler.At(scheduler.now() + timeout, scheduler.current_process(), [weak = weak_from_this()] {
    if (const std::shared_ptr<ReceiveEnd> self = weak.lock()) self->OnTimeout();
  });
}

// --- The client's calls ----------------------------------------------------------

void ReceiveEnd::Grant(transfer::Credits credits) {
  if (credits.count <= 0) return;
  receiver_.Grant(credits.count);
  (waiting_.recall ? waiting_.granted_after_recall : waiting_.granted) += credits.count;
  if (!in_event_) SendUpdate();
}

void ReceiveEnd::Recall() {
  // A message carries at most one recall. If that recall stands for two, credits granted between
  // the two recalls are returned too.
  waiting_.granted += std::exchange(waiting_.granted_after_recall, 0);
  waiting_.recall = true;
  if (!in_event_) SendUpdate();
}

void ReceiveEnd::Close() {
  gate_.Close();
  if (connection_ == nullptr) return;
  SendUpdate();
  connection_->Send(transfer::Encode(transfer::Goodbye()));
  HangUp();
  if (!in_event_) events_.reset();  // else Run() drops them
}

void ReceiveEnd::SendUpdate() {
  const bool any = waiting_.received > 0 || waiting_.granted > 0 || waiting_.recall;
  if (!any || connection_ == nullptr) return;
  connection_->Send(transfer::Encode(std::exchange(waiting_, transfer::Update())));
}

void ReceiveEnd::HangUp() {
  const std::unique_ptr<Connection> connection = std::exchange(connection_, nullptr);
  connection->Close(absl::OkStatus());
}

// --- Events ----------------------------------------------------------------------

void ReceiveEnd::OnMessage(std::string message) {
  Run([&] { return Handle(message); });
}

void ReceiveEnd::OnClosed(const absl::Status& reason) {
  Run([&]() -> Ended {
    return reason.ok() ? absl::UnavailableError("the connection broke") : reason;
  });
}

void ReceiveEnd::OnTimeout() {
  Run([this]() -> Ended {
    if (open_) return std::nullopt;
    return absl::DeadlineExceededError(
        absl::StrCat("it did not answer within ", absl::FormatDuration(options_.timeout)));
  });
}

void ReceiveEnd::Run(absl::FunctionRef<Ended()> event) {
  const std::shared_ptr<ReceiveEnd> self = shared_from_this();
  if (!gate_.Enter()) return;
  if (connection_ != nullptr) {
    in_event_ = true;
    const Ended ended = event();
    in_event_ = false;
    SendUpdate();
    if (ended.has_value() && connection_ != nullptr) {
      HangUp();
      events_->OnClosed(Annotate(*ended, "worker at ", target_));
    }
    if (connection_ == nullptr) events_.reset();
  }
  gate_.Leave();
}

ReceiveEnd::Ended ReceiveEnd::Handle(std::string_view message) {
  const absl::StatusOr<transfer::MessageType> type = transfer::TypeOf(message);
  if (!type.ok()) return absl::DataLossError(type.status().message());
  if (!open_ ||
      (*type != transfer::MessageType::kElement && *type != transfer::MessageType::kFrame)) {
    return HandleText(message);
  }
  message.remove_prefix(transfer::kMessageHeaderBytes);
  if (absl::Status received = Receive(*type, message); !received.ok()) return received;
  return std::nullopt;
}

ReceiveEnd::Ended ReceiveEnd::HandleText(std::string_view message) {
  const absl::StatusOr<transfer::Message> decoded = transfer::Decode(message);
  if (!decoded.ok()) return absl::DataLossError(decoded.status().message());
  if (const auto* closed = std::get_if<transfer::Closed>(&*decoded)) return closed->reason;
  if (!open_ && std::holds_alternative<transfer::Welcome>(*decoded)) {
    open_ = true;
    events_->OnOpen();
    return std::nullopt;
  }
  if (const auto* recalled = std::get_if<transfer::Recalled>(&*decoded); open_ && recalled) {
    if (absl::Status used = receiver_.Use(recalled->count); !used.ok()) return used;
    events_->OnRecalled({recalled->count});
    return std::nullopt;
  }
  if (const auto* error = std::get_if<transfer::ErrorMessage>(&*decoded); open_ && error) {
    if (absl::Status used = receiver_.Use(1); !used.ok()) return used;
    events_->OnError(error->identity, error->error);
    ++waiting_.received;
    return std::nullopt;
  }
  return absl::DataLossError("the worker sent an unexpected message");
}

absl::Status ReceiveEnd::Receive(transfer::MessageType type, std::string_view body) {
  RETURN_IF_ERROR(receiver_.Use(1));
  ASSIGN_OR_RETURN(Loan loan, pool_.Lend(body.size()));
  std::memcpy(loan.bytes().data(), body.data(), body.size());
  int64_t count = 0;
  const absl::Status status =
      type == transfer::MessageType::kFrame
          ? receiver_.Frame(std::move(loan), body.size(), *events_, count)
          : receiver_.Element(std::move(loan), body.size(), *events_, count);
  waiting_.received += count;
  return status;
}

}  // namespace penstock::simulator
