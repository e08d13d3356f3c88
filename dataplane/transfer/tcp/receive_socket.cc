// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/receive_socket.h"

#include <sys/epoll.h>

#include <algorithm>
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
    : loop_(loops.front()),
      target_(std::move(target)),
      options_(std::move(options)),
      pool_(options_.pool != nullptr ? *options_.pool : DefaultPool()),
      events_(std::move(events)),
      receiver_(options_.spec, options_.max_element_bytes),
      stripes_({loops.begin() + 1, loops.end()}),
      writer_(WithPrefix(Encode(options_.hello), (options_.tcp.checksum_values ? kSumOfAll : 0) |
                                                     (stripes_.wanted() ? kWantsStripes : 0))) {}

void ReceiveSocket::Start() {
  loop_->SetDeadline(shared_from_this(), After(options_.timeout));
}

void ReceiveSocket::Connect(absl::StatusOr<std::vector<Endpoint>> endpoints) {
  {
    MutexLock lock(mu_);
    connector_.SetEndpoints(std::move(endpoints));
  }
  loop_->Call(shared_from_this());
}

// --- The client's calls ----------------------------------------------------------

void ReceiveSocket::Grant(Credits credits) {
  if (credits.count <= 0) return;
  receiver_.Grant(credits.count);
  MutexLock lock(mu_);
  writer_.Grant(credits.count);
  Write();
}

void ReceiveSocket::Recall() {
  MutexLock lock(mu_);
  writer_.Recall();
  Write();
}

void ReceiveSocket::Close() {
  gate_.Close();
  loan_ = Loan();    // no thread uses it until the link is seen as closed
  stripes_.Close();  // no thread adds a stripe now
  {
    MutexLock lock(mu_);
    writer_.Close();
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
    // The event is also reported if the socket was writable all along; reports then wait
    // (ReportSoon()).
    MutexLock lock(mu_);
    if (writer_.SetWritable()) Write();
  }
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) hung_up_ = true;
  return ReadOn();
}

std::optional<absl::Status> ReceiveSocket::ConnectOn(uint32_t events) {
  MutexLock lock(mu_);
  const absl::StatusOr<bool> connected =
      connector_.Advance(events, *loop_, shared_from_this(), socket_);
  if (!connected.ok()) return connected.status();
  if (!*connected) return std::nullopt;
  connected_ = true;
  writer_.SetWritable();
  Write();
  return std::nullopt;
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
  if (writer_.closed() || !writer_.has_report()) return;
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
  writer_.Report(count);
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
    if (absl::Status its = stripes_.Await(*striped); !its.ok()) return its;
    if (absl::Status used = receiver_.UseInTurn(); !used.ok()) return used;
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
    writer_.Report(1);
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

absl::Status ReceiveSocket::OpenStripes(const StripeKey& key) {
  MutexLock lock(mu_);
  return stripes_.Open(key, connector_.connected_to(),
                       {weak_from_this(), pool_, receiver_,
                        static_cast<uint64_t>(options_.max_element_bytes), target_});
}

absl::StatusOr<bool> ReceiveSocket::ReceiveAwaited() {
  if (!stripes_.awaits()) return true;
  ASSIGN_OR_RETURN(std::optional<ReceiveStripe::Came> came, stripes_.Take());
  if (!came.has_value()) return false;
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
      if ((events & EPOLLOUT) != 0) writer_.SetWritable();
      writer_.WriteAndShutDown(socket_.fd());
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
  stripes_.Close();
  stripes_.HangUp();
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
  return writer_.closed();
}

void ReceiveSocket::Write() {
  if (connected_) writer_.Write(socket_.fd());
}

}  // namespace penstock::transfer::tcp
