// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/receive_stripe.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "control/observe/event_log.h"
#include "dataplane/transfer/tcp/receive_socket.h"
#include "dataplane/transfer/tcp/wire.h"
#include "include/status_macros.h"

namespace penstock::transfer::tcp {
namespace {

absl::Status Garbled(const absl::Status& why) {
  return absl::IsUnavailable(why) ? why : absl::DataLossError(why.message());
}

}  // namespace

ReceiveStripe::ReceiveStripe(std::shared_ptr<Loop> loop, const Join& join, Link link)
    : loop_(std::move(loop)), join_(WithPrefix(Encode(join))), link_(std::move(link)) {}

void ReceiveStripe::Start(const Endpoint& worker) {
  absl::StatusOr<Socket> socket = BeginConnecting(worker);
  if (!socket.ok()) return Fail(socket.status());
  socket_ = *std::move(socket);
  if (const absl::Status added = loop_->Add(socket_, shared_from_this()); !added.ok()) Fail(added);
}

absl::StatusOr<std::optional<ReceiveStripe::Came>> ReceiveStripe::Take() {
  MutexLock lock(mu_);
  if (!came_.empty()) return came_.Pop();
  RETURN_IF_ERROR(failure_);
  awaited_ = true;
  return std::nullopt;
}

void ReceiveStripe::Close() {
  gate_.Close();
  Fifo<Came> came;  // both destroyed outside the lock
  Loan begun;
  MutexLock lock(mu_);  // also guards against another Close()
  std::swap(came, came_);
  begun = std::move(loan_);
}

void ReceiveStripe::HangUp() {
  hangs_up_ = true;
  loop_->Call(shared_from_this());
}

void ReceiveStripe::OnReady(uint32_t events) {
  if (!socket_) return;
  if (hangs_up_) {
    loop_->Remove(socket_, *this);
    socket_.HangUp();
    return;
  }
  if (!gate_.Enter()) return;
  if (const absl::Status going = Advance(events); !going.ok()) Fail(going);
  gate_.Leave();
}

absl::Status ReceiveStripe::Advance(uint32_t events) {
  {
    MutexLock lock(mu_);
    if (!failure_.ok()) return absl::OkStatus();
  }
  if (!connected_) {
    if (events == 0) return absl::OkStatus();
    RETURN_IF_ERROR(Connected(socket_));
    connected_ = true;
    // The join is the first message written, so the socket has space for it.
    const ssize_t put =
        ::send(socket_.fd(), join_.data(), join_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0) return BrokenBy("cannot send the join message", errno);
    if (put != static_cast<ssize_t>(join_.size())) {
      return absl::UnavailableError("a new connection has no room to send the join message");
    }
  }
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) incoming_.ExpectEnd();
  return ReadOn();
}

absl::Status ReceiveStripe::ReadOn() {
  const uint64_t stop_at = incoming_.total() + kMaxReceiveBytesAtOnce;
  while (incoming_.total() < stop_at) {
    const absl::StatusOr<Incoming::Got> got = incoming_.Read(socket_.fd());
    if (!got.ok()) return Garbled(got.status());
    if (*got == Incoming::Got::kNothing) return absl::OkStatus();
    if (*got == Incoming::Got::kEnd) return absl::UnavailableError("the connection broke");
    RETURN_IF_ERROR(*got == Incoming::Got::kHead ? MakeRoom() : Handle());
  }
  loop_->Call(shared_from_this());
  return absl::OkStatus();
}

absl::Status ReceiveStripe::MakeRoom() {
  const uint64_t bytes = incoming_.body_bytes();
  if (incoming_.type() != MessageType::kElement) {
    if (bytes > kMaxRequestBytes) {
      return absl::DataLossError(absl::StrCat("a message of ", bytes, " bytes is too long"));
    }
    incoming_.IntoText();
    return absl::OkStatus();
  }
  if (bytes > link_.max_element_bytes) return AboveLimit(bytes, link_.max_element_bytes);
  RETURN_IF_ERROR(link_.receiver.BeginEarly());
  ASSIGN_OR_RETURN(loan_, link_.pool.Lend(bytes));
  incoming_.Into(loan_.bytes().first(bytes));
  return absl::OkStatus();
}

absl::Status ReceiveStripe::Handle() {
  if (!loan_) {  // a `closed` with the worker's reason
    const absl::StatusOr<Message> message = Decode(incoming_.text());
    if (!message.ok()) return Garbled(message.status());
    const auto* closed = std::get_if<Closed>(&*message);
    if (closed != nullptr && !closed->reason.ok()) return closed->reason;
    return absl::DataLossError("the worker sent an unexpected message");
  }
  joined_ = true;
  MutexLock lock(mu_);
  came_.Push({std::exchange(loan_, Loan()), static_cast<size_t>(incoming_.body_bytes())});
  if (std::exchange(awaited_, false)) CallLink();
  return absl::OkStatus();
}

// Ends the stripe. The link fails with `reason` once it waits for an element of this stripe.
void ReceiveStripe::Fail(const absl::Status& reason) {
  loan_ = Loan();
  if (!joined_) NotifyNotJoined(reason);
  MutexLock lock(mu_);
  failure_ = reason;
  if (std::exchange(awaited_, false)) CallLink();
}

// The link continues with fewer connections than were asked for.
void ReceiveStripe::NotifyNotJoined(const absl::Status& reason) {
  if (absl::IsUnavailable(reason) && connected_) return;  // an unused connection may end like this
  StderrEventLog()->Write({"connection_not_joined",
                           {{"worker", link_.target}, {"reason", std::string(reason.message())}}});
}

void ReceiveStripe::CallLink() {
  if (const std::shared_ptr<ReceiveSocket> link = link_.socket.lock()) link->GoOn();
}

}  // namespace penstock::transfer::tcp
