// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/receive_socket.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "control/sync/mutex.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/tcp/wire.h"
#include "include/status_macros.h"

namespace penstock::transfer::tcp {
namespace {

// How long a worker may take to end a connection that the client has closed.
constexpr std::chrono::seconds kWorkerGoodbyeTimeout(5);
// Received elements are reported with the next credits that are granted, or after this time.
constexpr std::chrono::milliseconds kMaxReportDelay(1);
Loop::Clock::time_point After(absl::Duration timeout) {
  return Loop::Clock::now() + absl::ToChronoMilliseconds(std::min(timeout, absl::Hours(24 * 365)));
}

}  // namespace

absl::Status AboveLimit(uint64_t bytes, uint64_t max_element_bytes) {
  return absl::DataLossError(absl::StrCat(
      "an element of ", bytes, " bytes is above max_element_bytes = ", max_element_bytes));
}

ReceiveSocket::ReceiveSocket(std::vector<std::shared_ptr<Loop>> loops, std::string target,
                             DialOptions options, std::shared_ptr<ReceiveEvents> events)
    : loops_(std::move(loops)),
      loop_(loops_.front()),
      target_(std::move(target)),
      options_(std::move(options)),
      pool_(options_.pool != nullptr ? *options_.pool : DefaultPool()),
      events_(std::move(events)),
      receiver_(options_.spec, options_.max_element_bytes),
      out_(WithPrefix(Encode(options_.hello), (options_.tcp.checksum_values ? kSumOfAll : 0) |
                                                  (loops_.size() > 1 ? kWantsStripes : 0))) {}

void ReceiveSocket::Start() {
  loop_->SetDeadline(shared_from_this(), After(options_.timeout));
}

void ReceiveSocket::Connect(absl::StatusOr<std::vector<Endpoint>> endpoints) {
  {
    MutexLock lock(mu_);
    endpoints_ = std::move(endpoints);
  }
  loop_->Call(shared_from_this());
}

// --- The client's calls ----------------------------------------------------------

void ReceiveSocket::Grant(Credits credits) {
  if (credits.count <= 0) return;
  receiver_.Grant(credits.count);
  MutexLock lock(mu_);
  (waiting_.recall ? waiting_.granted_after_recall : waiting_.granted) += credits.count;
  Write();
}

void ReceiveSocket::Recall() {
  MutexLock lock(mu_);
  // If one message has a second recall, credits granted since the first recall are returned too.
  waiting_.granted += std::exchange(waiting_.granted_after_recall, 0);
  waiting_.recall = true;
  Write();
}

void ReceiveSocket::Close() {
  gate_.Close();
  loan_ = Loan();  // no thread uses it until the link is seen as closed
  for (const auto& stripe : stripes_) stripe->Close();  // no thread adds a stripe now
  {
    MutexLock lock(mu_);
    closed_ = true;
    Write();
  }
  loop_->SetDeadline(shared_from_this(), Loop::Clock::now() + kWorkerGoodbyeTimeout);
  loop_->Call(shared_from_this());
}

// --- Connecting ------------------------------------------------------------------

void ReceiveSocket::OnReady(uint32_t events) {
  if (over_) return;
  if (gate_.Enter()) {
    std::optional<absl::Status> reason = Advance(events);
    if (reason.has_value() && !closed()) NotifyEnd(*reason);
    gate_.Leave();
  }
  if (!over_ && closed()) DrainClosed(events);
}

void ReceiveSocket::OnDeadline() {
  if (over_) return;
  if (gate_.Enter()) {
    if (!open_) {
      NotifyEnd(absl::DeadlineExceededError(
          absl::StrCat("it did not answer within ", absl::FormatDuration(options_.timeout))));
    } else {
      report_due_ = false;
      MutexLock lock(mu_);
      Write();
    }
    gate_.Leave();
  } else if (closed()) {
    End();
  }
}

std::optional<absl::Status> ReceiveSocket::Advance(uint32_t events) {
  if (!connected_) {
    if (std::optional<absl::Status> reason = ConnectOn(events)) return reason;
    if (!connected_) return std::nullopt;
  }
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) incoming_.ExpectEnd();
  if ((events & EPOLLOUT) != 0) {
    // The event is also reported if the socket had room all along; reports then wait
    // (ReportSoon()).
    MutexLock lock(mu_);
    if (!std::exchange(writable_, true)) Write();
  }
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) hung_up_ = true;
  return ReadOn();
}

std::optional<absl::Status> ReceiveSocket::ConnectOn(uint32_t events) {
  MutexLock lock(mu_);
  if (!endpoints_.has_value()) return std::nullopt;
  if (!endpoints_->ok()) return endpoints_->status();
  if (connecting_) {
    if (events == 0) return std::nullopt;
    last_failure_ = Connected(socket_);
    if (last_failure_.ok()) {
      connected_ = true;
      writable_ = true;
      Write();
      return std::nullopt;
    }
    loop_->Remove(socket_, *this);
    connecting_ = false;
  }
  const std::vector<Endpoint>& endpoints = **endpoints_;
  while (tried_ < endpoints.size()) {
    absl::StatusOr<Socket> socket = BeginConnecting(endpoints[tried_++]);
    if (socket.ok()) {
      socket_ = *std::move(socket);
      last_failure_ = loop_->Add(socket_, shared_from_this());
      connecting_ = last_failure_.ok();
      if (connecting_) return std::nullopt;
    } else {
      last_failure_ = socket.status();
    }
  }
  return last_failure_;
}

// --- Reading ---------------------------------------------------------------------

std::optional<absl::Status> ReceiveSocket::ReadOn() {
  const uint64_t stop_at = incoming_.total() + kMaxReceiveBytesAtOnce;
  while (true) {
    if (incoming_.total() >= stop_at) {
      loop_->Call(shared_from_this());
      break;
    }
    const absl::StatusOr<bool> received = ReceiveAwaited();
    if (closed()) return std::nullopt;  // inside an event
    if (!received.ok()) return received.status();
    if (!*received && hung_up_) return absl::UnavailableError("the connection broke");
    if (!*received) break;
    absl::StatusOr<Incoming::Got> got = incoming_.Read(socket_.fd());
    if (closed()) return std::nullopt;  // inside an event
    if (!got.ok()) {
      return absl::IsUnavailable(got.status()) ? got.status()
                                               : absl::DataLossError(got.status().message());
    }
    if (*got == Incoming::Got::kNothing) break;
    if (*got == Incoming::Got::kEnd) return absl::UnavailableError("the connection broke");
    if (*got == Incoming::Got::kHead) {
      if (absl::Status room = MakeRoom(); !room.ok()) return room;
    } else if (loan_) {
      if (absl::Status good =
              Receive(std::exchange(loan_, Loan()), incoming_.type(), incoming_.body_bytes());
          !good.ok()) {
        return good;
      }
    } else if (std::optional<absl::Status> reason = HandleText()) {
      return reason;
    }
  }
  ReportSoon();
  return std::nullopt;
}

void ReceiveSocket::ReportSoon() {
  if (report_due_) return;
  MutexLock lock(mu_);
  if (closed_ || waiting_.received == 0) return;
  report_due_ = true;
  loop_->SetDeadline(shared_from_this(), Loop::Clock::now() + kMaxReportDelay);
}

absl::Status ReceiveSocket::MakeRoom() {
  const bool frame = incoming_.type() == MessageType::kFrame;
  const uint64_t bytes = incoming_.body_bytes();
  const bool block =
      incoming_.type() == MessageType::kElement || incoming_.type() == MessageType::kCompressed;
  if (!open_ || (!frame && !block)) {
    if (bytes > kMaxControlBytes) {
      return absl::DataLossError(absl::StrCat("a message of ", bytes, " bytes is too long"));
    }
    incoming_.IntoText();
    return absl::OkStatus();
  }
  if (const auto most = static_cast<uint64_t>(options_.max_element_bytes); !frame && bytes > most) {
    return AboveLimit(bytes, most);
  }
  if (frame && bytes > kFrameBytes) {
    return absl::DataLossError(
        absl::StrCat("a frame of ", bytes, " bytes exceeds the limit of ", kFrameBytes, " bytes"));
  }
  RETURN_IF_ERROR(receiver_.Use(1));
  ASSIGN_OR_RETURN(loan_, pool_.Lend(bytes));
  incoming_.Into(loan_.bytes().first(bytes));
  return absl::OkStatus();
}

absl::Status ReceiveSocket::Receive(Loan loan, MessageType type, size_t bytes) {
  int64_t count = 0;
  absl::Status status;
  if (type == MessageType::kCompressed) {
    status = receiver_.Compressed(loan, bytes, pool_, *events_, count);
  } else if (type == MessageType::kFrame) {
    status = receiver_.Frame(std::move(loan), bytes, *events_, count);
  } else {
    status = receiver_.Element(std::move(loan), bytes, *events_, count);
  }
  MutexLock lock(mu_);
  waiting_.received += count;
  return status;
}

std::optional<absl::Status> ReceiveSocket::HandleText() {
  absl::StatusOr<Message> message = Decode(incoming_.text());
  if (!message.ok()) return absl::DataLossError(message.status().message());
  if (const auto* closed = std::get_if<Closed>(&*message)) return closed->reason;
  if (!open_ && std::holds_alternative<Welcome>(*message)) {
    Open();
    return std::nullopt;
  }
  if (const auto* stripes = std::get_if<Stripes>(&*message); open_ && stripes != nullptr) {
    if (absl::Status opened = OpenStripes(stripes->key); !opened.ok()) return opened;
    return std::nullopt;
  }
  if (const auto* striped = std::get_if<Striped>(&*message); open_ && striped != nullptr) {
    if (absl::Status its = Await(*striped); !its.ok()) return its;
    return std::nullopt;
  }
  if (const auto* recalled = std::get_if<Recalled>(&*message); open_ && recalled != nullptr) {
    if (absl::Status used = receiver_.Use(recalled->count); !used.ok()) return used;
    events_->OnRecalled({recalled->count});
    return std::nullopt;
  }
  if (const auto* error = std::get_if<ErrorMessage>(&*message); open_ && error != nullptr) {
    if (absl::Status used = receiver_.Use(1); !used.ok()) return used;
    events_->OnError(error->identity, error->error);
    MutexLock lock(mu_);
    ++waiting_.received;
    return std::nullopt;
  }
  return absl::DataLossError("the worker sent an unexpected message");
}

void ReceiveSocket::Open() {
  open_ = true;
  loop_->SetDeadline(shared_from_this(), Loop::Clock::time_point::max());
  events_->OnOpen();
}

// --- Further connections ---------------------------------------------------------

// If a connection fails, the worker never learns of that connection and sends nothing over it.
absl::Status ReceiveSocket::OpenStripes(const StripeKey& key) {
  if (loops_.size() == 1 || !stripes_.empty()) {
    return absl::DataLossError("the worker offered additional connections that were not requested");
  }
  MutexLock lock(mu_);
  const Endpoint& worker = (**endpoints_)[tried_ - 1];
  for (uint32_t number = 0; number + 1 < loops_.size(); ++number) {
    stripes_.push_back(std::make_shared<ReceiveStripe>(
        loops_[number + 1], Join{key, number},
        ReceiveStripe::Link{weak_from_this(), pool_, receiver_,
                            static_cast<uint64_t>(options_.max_element_bytes), target_}));
    stripes_.back()->Start(worker);
  }
  return absl::OkStatus();
}

absl::Status ReceiveSocket::Await(const Striped& striped) {
  if (striped.stripe >= stripes_.size()) {
    return absl::DataLossError(
        "the worker announced an element on a connection that does not exist");
  }
  RETURN_IF_ERROR(receiver_.UseInTurn());
  awaited_ = stripes_[striped.stripe].get();
  return absl::OkStatus();
}

absl::StatusOr<bool> ReceiveSocket::ReceiveAwaited() {
  if (awaited_ == nullptr) return true;
  ASSIGN_OR_RETURN(std::optional<ReceiveStripe::Came> came, awaited_->Take());
  if (!came.has_value()) return false;
  awaited_ = nullptr;
  incoming_.LookAgain();
  RETURN_IF_ERROR(Receive(std::move(came->loan), MessageType::kElement, came->bytes));
  return true;
}

// --- Ending ----------------------------------------------------------------------

void ReceiveSocket::NotifyEnd(const absl::Status& reason) {
  const std::shared_ptr<ReceiveEvents> events = events_;
  End();
  events->OnClosed(Annotate(reason, "worker at ", target_));
}

void ReceiveSocket::DrainClosed(uint32_t events) {
  loan_ = Loan();
  Incoming::Got got = Incoming::Got::kEnd;
  {
    MutexLock lock(mu_);
    if (connected_) {
      if ((events & EPOLLOUT) != 0) writable_ = true;
      Write();
      if (out_at_ == out_.size() && !std::exchange(shut_down_, true)) {
        ::shutdown(socket_.fd(), SHUT_WR);
      }
      // If the client closed with unread bytes, the worker would not get the goodbye.
      got = Discard(socket_.fd());
    }
  }
  if (got == Incoming::Got::kEnd) return End();
  if (got == Incoming::Got::kMessage) loop_->Call(shared_from_this());
}

void ReceiveSocket::End() {
  over_ = true;
  loan_ = Loan();
  for (const auto& stripe : stripes_) {
    stripe->Close();
    stripe->HangUp();
  }
  events_.reset();
  loop_->SetDeadline(shared_from_this(), Loop::Clock::time_point::max());
  MutexLock lock(mu_);
  Write();  // reports received elements, if the worker still listens
  connected_ = false;
  if (!socket_) return;
  loop_->Remove(socket_, *this);
  socket_.HangUp();
}

bool ReceiveSocket::closed() {
  MutexLock lock(mu_);
  return closed_;
}

// --- Writing ---------------------------------------------------------------------

void ReceiveSocket::Write() {
  while (connected_ && writable_) {
    if (out_at_ == out_.size()) {
      out_.clear();
      out_at_ = 0;
      AddWaiting();
      if (out_.empty()) return;
    }
    const ssize_t put = ::send(socket_.fd(), out_.data() + out_at_, out_.size() - out_at_,
                               MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put >= 0) {
      out_at_ += static_cast<size_t>(put);
    } else if (errno != EINTR) {
      writable_ = false;  // or broken, which the reading side will notice
    }
  }
}

void ReceiveSocket::AddWaiting() {
  if (waiting_.received > 0 || waiting_.granted > 0 || waiting_.recall) {
    const size_t at = BeginMessage(out_);
    Append(std::exchange(waiting_, Update()), out_);
    FinishMessage(out_, at);
  }
  if (closed_ && !std::exchange(goodbye_sent_, true)) out_ += WithPrefix(Encode(Goodbye()));
}

}  // namespace penstock::transfer::tcp
