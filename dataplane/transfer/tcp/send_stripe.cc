// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/send_stripe.h"

#include <sys/epoll.h>

#include <utility>

#include "dataplane/transfer/tcp/send_socket.h"
#include "dataplane/transfer/tcp/wire.h"

namespace penstock::transfer::tcp {
namespace {

constexpr char kBroke[] = "one of the client's connections broke";

}  // namespace

SendStripe::SendStripe(std::shared_ptr<Loop> loop, Socket socket, uint8_t sums,
                       std::weak_ptr<SendSocket> link)
    : loop_(std::move(loop)), sums_(sums), link_(std::move(link)), socket_(std::move(socket)) {}

void SendStripe::Send(QueuedMessage message) {
  {
    MutexLock lock(mu_);
    if (closed_) return;
    given_.Push(std::move(message));
    if (given_.size() > 1) return;  // OnReady() is already due
  }
  loop_->Call(shared_from_this());
}

void SendStripe::Close() {
  {
    MutexLock lock(mu_);
    closed_ = true;
  }
  loop_->Call(shared_from_this());
}

void SendStripe::OnReady(uint32_t events) {
  if (!socket_) return;
  if (!TakeGiven()) {
    writer_.Clear();
    loop_->Remove(socket_, *this);
    socket_.HangUp();
    return;
  }
  if ((events & EPOLLOUT) != 0) writable_ = true;
  // A client sends nothing here, so only the end can be read.
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
    Break(absl::UnavailableError(kBroke));
  }
  if (!broken_) Write();
}

// Returns false if the stripe is closed.
bool SendStripe::TakeGiven() {
  Fifo<QueuedMessage> dropped;  // destroyed outside the lock
  MutexLock lock(mu_);
  if (closed_) {
    std::swap(dropped, given_);
    return false;
  }
  while (!given_.empty()) writer_.Add(given_.Pop());
  return true;
}

void SendStripe::Write() {
  if (!writable_) return;
  const auto encode = [this](QueuedMessage& message) {
    if (std::exchange(message.encoded, true)) return;
    message.head = HeadOf(message.type, sums_, message.bytes);
  };
  switch (writer_.Write(socket_.fd(), encode, [] { return false; })) {
    case MessageWriter::Wrote::kAll:
      break;
    case MessageWriter::Wrote::kSome:
      writable_ = false;
      break;
    case MessageWriter::Wrote::kFailed:
      Break(BrokenBy(kBroke, writer_.error()));
      break;
  }
}

void SendStripe::Break(const absl::Status& reason) {
  if (std::exchange(broken_, true)) return;
  if (const std::shared_ptr<SendSocket> link = link_.lock()) link->Break(reason);
}

}  // namespace penstock::transfer::tcp
