// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/send_socket.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "control/observe/refused.h"
#include "control/sync/mutex.h"
#include "control/sync/random.h"
#include "dataplane/memory/pool.h"
#include "dataplane/transfer/send_handle.h"
#include "dataplane/transfer/unauthenticated_limits.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock::transfer::tcp {
namespace {

// How long a client may take to close after it has received the end of the link.
constexpr std::chrono::seconds kClientGoodbyeTimeout(5);

// The maximum number of bytes that one client may send before other clients are served.
constexpr uint64_t kReadBytesPerTurn = 64 << 10;

StripeKey DrawKey() {
  return {.high = RandomNumber(), .low = RandomNumber()};
}

}  // namespace

SendSocket::SendSocket(std::shared_ptr<Loop> loop, Socket socket, Owner& owner)
    : loop_(std::move(loop)),
      owner_(owner),
      socket_(std::move(socket)),
      queue_(DefaultPool(), kFrameBytes) {}

absl::Status SendSocket::Start(std::chrono::milliseconds hello_timeout) {
  loop_->SetDeadline(shared_from_this(), Loop::Clock::now() + hello_timeout);
  return loop_->Add(socket_, shared_from_this());
}

// --- The worker's calls ----------------------------------------------------------

int64_t SendSocket::credits() const {
  MutexLock lock(mu_);
  return queue_.credits();
}

absl::Status SendSocket::Send(Sent&& sent) {
  MutexLock lock(mu_);
  const size_t bytes = sent.element ? sent.element.block().size() : kMinWriteBytes;
  RETURN_IF_ERROR(queue_.Send(std::move(sent)));
  const bool holds = writable_ && delay_.Hold(bytes);
  if ((queue_.has_open_frame() || holds) && !delay_.has_deadline()) FlushLater();
  if (!holds) Write();
  return absl::OkStatus();
}

void SendSocket::Flush() {
  MutexLock lock(mu_);
  queue_.Seal();
  Write();
}

void SendSocket::Close(const absl::Status& reason) {
  MutexLock lock(mu_);
  queue_.Close(reason);
  Write();
}

void SendSocket::Break(const absl::Status& reason) {
  MutexLock lock(mu_);
  BreakLocked(reason);
}

// --- Reading ---------------------------------------------------------------------

void SendSocket::OnReady(uint32_t events) {
  if (over_) return;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) incoming_.ExpectEnd();
  if (absl::Status read = ReadOn(); !read.ok()) StopReading(read);
  {
    MutexLock lock(mu_);
    if ((events & EPOLLOUT) != 0) writable_ = true;
    if (!delay_.holds()) Write();
  }
  EndIfOver();
}

absl::Status SendSocket::ReadOn() {
  const int fd = socket_.fd();  // changed by this thread only
  const uint64_t stop_at = incoming_.total() + kReadBytesPerTurn;
  while (!draining_) {
    if (incoming_.total() >= stop_at) {
      loop_->Call(shared_from_this());
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(Incoming::Got got, incoming_.Read(fd));
    if (got == Incoming::Got::kNothing) return absl::OkStatus();
    if (got == Incoming::Got::kEnd) {
      Break(absl::UnavailableError("the client's connection broke"));
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(got == Incoming::Got::kHead ? MakeRoom() : Handle());
    if (over_) return absl::OkStatus();  // handed over
  }
  switch (Discard(fd)) {
    case Incoming::Got::kEnd:
      Break(absl::UnavailableError("the client's connection broke"));
      break;
    case Incoming::Got::kMessage:
      loop_->Call(shared_from_this());
      break;
    default:
      break;
  }
  return absl::OkStatus();
}

absl::Status SendSocket::MakeRoom() {
  const bool hello = !hello_received_ && incoming_.type() == MessageType::kHello;
  const uint64_t most = hello ? kMaxHelloBytes : kMaxRequestBytes;
  if (!hello_received_ && incoming_.type() != MessageType::kHello &&
      incoming_.type() != MessageType::kJoin) {
    return absl::InvalidArgumentError("the first message of a link must be a hello");
  }
  if (incoming_.body_bytes() > most) {
    CountRefused(Port::kTcp, Refused::kTooLong);
    return absl::InvalidArgumentError(absl::StrCat("a message of ", incoming_.body_bytes(),
                                                   " bytes exceeds the limit of ", most, " bytes"));
  }
  incoming_.IntoText();
  return absl::OkStatus();
}

absl::Status SendSocket::Handle() {
  if (!hello_received_ && incoming_.type() == MessageType::kJoin) return HandOver();
  ASSIGN_OR_RETURN(Message message, DecodeFromClient(incoming_.text(), hello_received_));
  if (auto* hello = std::get_if<Hello>(&message)) return HandleHello(std::move(*hello));
  if (auto* update = std::get_if<Update>(&message)) return Handle(*update);
  draining_ = true;  // a goodbye
  Break(absl::OkStatus());
  return absl::OkStatus();
}

absl::Status SendSocket::HandleHello(Hello hello) {
  hello_received_ = true;
  hello_ = std::move(hello);
  writer_.Configure(hello_.compression, incoming_.flags() & kSumOfAll);
  if ((incoming_.flags() & kWantsStripes) != 0) key_ = DrawKey();
  ASSIGN_OR_RETURN(
      events_, owner_.Accept(hello_, std::make_shared<SendHandle<SendSocket>>(shared_from_this())));
  loop_->SetDeadline(shared_from_this(), Loop::Clock::time_point::max());
  owner_.OnAuthenticated(*this);
  MutexLock lock(mu_);
  queue_.Welcome();  // written after everything was read
  return absl::OkStatus();
}

// Hands this connection over to the link that it joins.
absl::Status SendSocket::HandOver() {
  ASSIGN_OR_RETURN(const Message message, Decode(incoming_.text()));
  const auto& join = std::get<Join>(message);
  const std::shared_ptr<SendSocket> link = owner_.FindLink(join.key);
  if (link == nullptr) return absl::PermissionDeniedError("no link has this key");
  ASSIGN_OR_RETURN(std::shared_ptr<Loop> loop, owner_.LoopOf(join.stripe));
  owner_.OnAuthenticated(*this);
  loop_->SetDeadline(shared_from_this(), Loop::Clock::time_point::max());
  loop_->Remove(socket_, *this);
  Socket socket;
  {
    MutexLock lock(mu_);
    broken_ = true;  // so that no thread writes to it
    socket = std::move(socket_);
  }
  over_ = true;
  owner_.OnOver(*this);
  // If the link does not accept the connection, the connection is closed, which the client notices.
  link->AddStripe(join.stripe, std::move(loop), std::move(socket)).IgnoreError();
  return absl::OkStatus();
}

absl::Status SendSocket::AddStripe(uint32_t number, std::shared_ptr<Loop> loop, Socket socket) {
  MutexLock lock(mu_);
  if (broken_ || queue_.closed()) return absl::UnavailableError("the link is closed");
  return stripes_.Add(number, std::make_shared<SendStripe>(std::move(loop), std::move(socket),
                                                           writer_.sums(), weak_from_this()));
}

absl::Status SendSocket::Handle(const Update& update) {
  {
    MutexLock lock(mu_);
    RETURN_IF_ERROR(queue_.Apply(update, received_));
    writer_.OnReceived(update.received);
    if (update.recall) delay_.Release();  // the answer follows immediately
  }
  NotifyUpdate(update, received_, *events_);
  return absl::OkStatus();
}

void SendSocket::StopReading(const absl::Status& reason) {
  draining_ = true;
  MutexLock lock(mu_);
  if (absl::IsUnavailable(reason) && queue_.answered()) return BreakLocked(reason);
  queue_.Refuse(reason);
}

void SendSocket::OnDeadline() {
  if (over_) return;
  {
    MutexLock lock(mu_);
    if (!queue_.answered() || shut_down_) {
      if (!hello_received_) CountRefused(Port::kTcp, Refused::kTooLate);
      BreakLocked(absl::UnavailableError("the client did not answer"));
    } else {
      const bool is_newer = delay_.Expire(queue_.frame());
      if (queue_.has_open_frame() && is_newer) {
        FlushLater();
      } else {
        queue_.Seal();
      }
      Write();
    }
  }
  EndIfOver();
}

void SendSocket::EndIfOver() {
  std::vector<Sent> unconfirmed;
  absl::Status reason;
  {
    MutexLock lock(mu_);
    if (!broken_ || writing_ || over_) return;
    over_ = true;
    loop_->Remove(socket_, *this);
    socket_.HangUp();
    writer_.Clear();
    stripes_.Close();
    unconfirmed = queue_.TakeUnconfirmed();
    reason = queue_.reason();
  }
  const std::shared_ptr<SendSocket> self = shared_from_this();
  if (auto events = std::exchange(events_, nullptr)) {
    events->OnClosed(reason, std::move(unconfirmed));
  }
  owner_.OnOver(*this);
}

// --- Writing ---------------------------------------------------------------------

void SendSocket::BreakLocked(const absl::Status& reason) {
  queue_.Close(reason);
  if (std::exchange(broken_, true)) return;
  loop_->Call(shared_from_this());
}

void SendSocket::FlushLater() {
  delay_.OnDeadlineSet(queue_.frame());
  loop_->SetDeadline(shared_from_this(), Loop::Clock::now() + kFrameFlushDelay);
}

void SendSocket::Write() {
  delay_.Release();
  if (writing_ || broken_ || shut_down_) return;
  writing_ = true;
  while (true) {
    TakeMessages();
    if (writer_.empty() || !writable_) break;
    writable_ = false;  // unless the loop has set it again meanwhile
    mu_.unlock();
    const MessageWriter::Wrote wrote = writer_.Write(socket_.fd());
    mu_.lock();
    if (wrote == MessageWriter::Wrote::kAll) writable_ = true;
    if (wrote == MessageWriter::Wrote::kFailed) {
      BreakLocked(BrokenBy("the client's connection broke", writer_.error()));
    }
    if (broken_) break;
  }
  writing_ = false;
  if (broken_) {
    loop_->Call(shared_from_this());  // which may have waited for this thread
  } else if (writer_.empty() && queue_.close_sent()) {
    ShutDown();
  }
}

void SendSocket::TakeMessages() {
  // One batch for each connection, since most of the messages may only name a different connection.
  const size_t most = MessageWriter::kMaxMessagesPerWrite * (1 + stripes_.size());
  while (!queue_.empty() && writer_.size() < most) writer_.Add(NextMessage());
}

QueuedMessage SendSocket::NextMessage() {
  QueuedMessage message;
  SendQueue::OutgoingMessage next = queue_.Take();
  message.type = next.type;
  message.count = next.count;
  if (const std::string text = TextOf(next); !text.empty()) {
    message.text = WithPrefix(text);
    if (next.type == MessageType::kWelcome && key_ != StripeKey()) {
      message.text += WithPrefix(Encode(Stripes{key_}));
    }
    return message;
  }
  message.bytes = next.bytes;
  message.loan = std::move(next.loan);
  if (!stripes_.Takes(message) || writer_.compresses()) return message;
  return stripes_.Route(std::move(message));
}

void SendSocket::ShutDown() {
  shut_down_ = true;
  // The client must close first, once it has received everything: if this end closed first, data on
  // its way could be lost.
  ::shutdown(socket_.fd(), SHUT_WR);
  loop_->SetDeadline(shared_from_this(), Loop::Clock::now() + kClientGoodbyeTimeout);
}

}  // namespace penstock::transfer::tcp
