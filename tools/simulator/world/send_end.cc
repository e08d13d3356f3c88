// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/world/send_end.h"

#include <utility>

#include "dataplane/memory/pool.h"
#include "dataplane/transfer/frame_flush_delay.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/send_handle.h"
#include "include/status_macros.h"

namespace penstock::simulator {
namespace {

// A large simulation has many links, each with frames on their way. Larger elements are sent alone.
constexpr size_t kSimFrameBytes = 16 << 10;
// How long a client may take to close after the end of the link was sent to it; same as in `tcp`.
constexpr absl::Duration kClientGoodbyeTimeout = absl::Seconds(5);

absl::Status ClientBroke() {
  return absl::UnavailableError("the client's connection broke");
}

std::string MessageBytes(const transfer::SendQueue::OutgoingMessage& next) {
  std::string bytes = transfer::TextOf(next);
  if (!bytes.empty()) return bytes;
  bytes = transfer::EncodeHeader(next.type);
  bytes.reserve(bytes.size() + next.bytes.size());
  bytes.append(reinterpret_cast<const char*>(next.bytes.data()), next.bytes.size());
  return bytes;
}

}  // namespace

SendEnd::SendEnd(Scheduler& scheduler, std::shared_ptr<Process> process,
                 std::shared_ptr<Owner> owner, std::shared_ptr<Connection> connection)
    : scheduler_(scheduler),
      process_(std::move(process)),
      owner_(std::move(owner)),
      connection_(std::move(connection)),
      queue_(DefaultPool(), kSimFrameBytes) {}

// --- The worker's calls ----------------------------------------------------------

absl::Status SendEnd::Send(transfer::Sent&& sent) {
  RETURN_IF_ERROR(queue_.Send(std::move(sent)));
  Write();
  if (queue_.has_open_frame()) FlushLater();
  return absl::OkStatus();
}

void SendEnd::Flush() {
  queue_.Seal();
  Write();
}

void SendEnd::Close(const absl::Status& reason) {
  queue_.Close(reason);
  Write();
}

void SendEnd::End(const absl::Status& reason) {
  const std::shared_ptr<SendEnd> self = shared_from_this();
  if (!gate_.Enter()) return;
  EndInside(reason);
  gate_.Leave();
}

// --- Writing ---------------------------------------------------------------------

void SendEnd::Write() {
  if (connection_ == nullptr) return;
  while (!queue_.empty()) connection_->Send(MessageBytes(queue_.Take()));
  if (queue_.close_sent()) EndLater();
}

void SendEnd::FlushLater() {
  if (std::exchange(flush_due_, true)) return;
  scheduler_.At(scheduler_.now() + absl::FromChrono(transfer::kFrameFlushDelay), process_,
                [weak = weak_from_this(), frame = queue_.frame()] {
                  const std::shared_ptr<SendEnd> self = weak.lock();
                  if (self == nullptr) return;
                  self->flush_due_ = false;
                  if (!self->queue_.has_open_frame()) return;
                  if (self->queue_.frame() != frame) return self->FlushLater();
                  self->Flush();
                });
}

// The client closes the connection after it has received everything: if this end closed it first,
// the client's last report would be lost.
void SendEnd::EndLater() {
  if (std::exchange(end_due_, true)) return;
  scheduler_.At(scheduler_.now() + kClientGoodbyeTimeout, process_, [weak = weak_from_this()] {
    if (const std::shared_ptr<SendEnd> self = weak.lock()) self->End(ClientBroke());
  });
}

// --- Events ----------------------------------------------------------------------

void SendEnd::OnMessage(std::string message) {
  const std::shared_ptr<SendEnd> self = shared_from_this();
  if (!gate_.Enter()) return;
  if (!draining_) {
    if (absl::Status handled = Handle(message); !handled.ok()) StopReading(handled);
  }
  gate_.Leave();
}

void SendEnd::OnClosed(const absl::Status& /*reason*/) {
  End(ClientBroke());
}

absl::Status SendEnd::Handle(std::string_view message) {
  ASSIGN_OR_RETURN(transfer::Message decoded, transfer::DecodeFromClient(message, hello_received_));
  if (auto* hello = std::get_if<transfer::Hello>(&decoded)) return Handle(std::move(*hello));
  if (auto* update = std::get_if<transfer::Update>(&decoded)) return Handle(*update);
  EndInside(absl::OkStatus());  // a goodbye
  return absl::OkStatus();
}

absl::Status SendEnd::Handle(transfer::Hello hello) {
  hello_received_ = true;
  hello_ = std::move(hello);
  ASSIGN_OR_RETURN(
      events_,
      owner_->Accept(hello_, std::make_shared<transfer::SendHandle<SendEnd>>(shared_from_this())));
  queue_.Welcome();
  Write();
  return absl::OkStatus();
}

absl::Status SendEnd::Handle(const transfer::Update& update) {
  std::vector<transfer::Acknowledged> received;
  RETURN_IF_ERROR(queue_.Apply(update, received));
  Write();
  transfer::NotifyUpdate(update, received, *events_);
  return absl::OkStatus();
}

void SendEnd::StopReading(const absl::Status& reason) {
  draining_ = true;
  queue_.Refuse(reason);
  Write();
}

void SendEnd::EndInside(const absl::Status& reason) {
  if (connection_ == nullptr) return;
  draining_ = true;
  queue_.Close(reason);
  const std::shared_ptr<Connection> connection = std::exchange(connection_, nullptr);
  connection->Close(absl::OkStatus());
  std::vector<transfer::Sent> unconfirmed = queue_.TakeUnconfirmed();
  if (const auto events = std::exchange(events_, nullptr)) {
    events->OnClosed(queue_.reason(), std::move(unconfirmed));
  }
  owner_->OnOver(*this);
}

}  // namespace penstock::simulator
