// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/shm/send_end.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/observe/refused.h"
#include "dataplane/element/block.h"
#include "dataplane/memory/copied.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/send_handle.h"
#include "dataplane/transfer/unauthenticated_limits.h"
#include "include/status_macros.h"

namespace penstock::transfer::shm {
namespace {

// The time limit for the greeting, which a client sends immediately after connecting.
constexpr Loop::Nanoseconds kGreetingTimeout = 10'000 * Loop::kMillisecond;
// How long a client may take to read the data sent before a link was closed.
constexpr Loop::Nanoseconds kClosingTimeout = 10'000 * Loop::kMillisecond;
// How many words are read before other links are served.
constexpr int kWordsOfClientAtOnce = 256;

constexpr char kBroke[] = "the client's connection broke";

// Copies a block whose body another process may write, and then checks the copy.
absl::StatusOr<Element> CopyChecked(Pool& pool, absl::Span<const std::byte> block,
                                    const Spec& spec) {
  ASSIGN_OR_RETURN(Loan loan, pool.Lend(block.size()));
  const absl::Span<std::byte> copy = loan.bytes().first(block.size());
  CopyCounted(copy.data(), block.data(), block.size());
  RETURN_IF_ERROR(CheckBlock(copy, spec).status());
  return Element(std::move(loan), copy.data(), spec);
}

// Copies an element out of the client's memory.
void MoveOut(Sent& sent, const SendSlots& slots) {
  if (!sent.element || !slots.Owns(sent.element.loan().bytes().data())) return;
  absl::StatusOr<Element> moved =
      CopyChecked(DefaultPool(), sent.element.block(), sent.element.spec());
  if (moved.ok()) {
    sent.element = *std::move(moved);
  } else {
    sent.element = Element();
    sent.error = moved.status();
  }
}

class ShmSendLink final : public SendHandle<SendEnd> {
 public:
  using SendHandle::SendHandle;
  std::shared_ptr<Pool> pool() override { return end_->slots(); }
  absl::Status Send(Sent&& sent) override {
    // The client may write into the slot, so an element that other readers in this process share is
    // copied.
    Element& element = sent.element;
    if (element && element.IsShared() && end_->slots()->Owns(element.loan().bytes().data())) {
      ASSIGN_OR_RETURN(element, CopyChecked(DefaultPool(), element.block(), element.spec()));
    }
    return SendHandle::Send(std::move(sent));
  }
};

}  // namespace

SendEnd::SendEnd(Loop& loop, PacketSocket socket, Listener::Accept accept)
    : loop_(loop),
      socket_(std::move(socket)),
      pidfd_(socket_.OpenPeerPidfd()),
      accept_(std::move(accept)),
      greeting_deadline_(Loop::Now() + kGreetingTimeout),
      sender_(loop, socket_) {}

void SendEnd::Join() {
  loop_.Add(shared_from_this(), socket_.fd(), pidfd_.get());
}

absl::Status SendEnd::Send(Sent&& sent) {
  if (!in_creator_) return absl::UnavailableError("the link belongs to the parent process");
  return sender_.Send(std::move(sent));
}

void SendEnd::Flush() {
  if (in_creator_) sender_.Flush();
}

// --- The client's words ------------------------------------------------------------

bool SendEnd::Poll(Loop::Nanoseconds now) {
  if (channel_ == nullptr) {
    if (now >= greeting_deadline_ && !sender_.gone()) {
      CountRefused(Port::kShm, Refused::kTooLate);
      Fail(absl::DeadlineExceededError("the client did not send a hello in time"));
    }
    if (sender_.gone()) Finish();
    return false;
  }
  channel_->Flush();
  const bool found = accepted_ && ReadRing();
  sender_.FlushFrame(now);
  SendClosed(now);
  if (now >= end_by_) sender_.Break();
  if (sender_.gone()) Finish();
  return found;
}

bool SendEnd::ReadRing() {
  uint64_t word;
  int words = 0;
  SlotSender::Counts pending;
  absl::Status handled;
  while (words < kWordsOfClientAtOnce && handled.ok()) {
    const RingReader::Found found = channel_->Read(word);
    if (found == RingReader::Found::kNothing) break;
    ++words;
    handled = found == RingReader::Found::kWord
                  ? HandleWord(word, pending)
                  : absl::DataLossError("the client's ring contains an invalid word");
  }
  const absl::Status settled = Settle(pending);
  if (handled.ok()) handled = settled;
  if (!handled.ok()) Fail(absl::DataLossError(handled.message()));
  return words > 0;
}

absl::Status SendEnd::HandleWord(uint64_t word, SlotSender::Counts& pending) {
  switch (KindOf(word)) {
    case WordKind::kReturn:
      pending.returned = true;
      return slots()->OnReturned(SlotOf(word));
    case WordKind::kReturnShared:
      return sender_.OnReturnedShared(SlotOf(word));
    case WordKind::kReceived:
      if (pending.received > kMaxCount) RETURN_IF_ERROR(Settle(pending));
      pending.received += CountOf(word);
      return absl::OkStatus();
    case WordKind::kGranted:
      if (pending.granted > kMaxCount) RETURN_IF_ERROR(Settle(pending));
      pending.granted += CountOf(word);
      return absl::OkStatus();
    case WordKind::kRecall:
      RETURN_IF_ERROR(Settle(pending));
      sender_.OnRecall();
      return absl::OkStatus();
    default:
      return absl::DataLossError("the client wrote an unexpected word");
  }
}

absl::Status SendEnd::Settle(SlotSender::Counts& pending) {
  const SlotSender::Counts counts = std::exchange(pending, SlotSender::Counts());
  RETURN_IF_ERROR(sender_.OnCounts(counts, received_));
  if (counts.received > 0) events_->OnReceived(received_);
  received_.clear();
  if (counts.granted > 0) events_->OnCredits({counts.granted});
  return absl::OkStatus();
}

// --- The client's packets ----------------------------------------------------------

void SendEnd::OnSocket() {
  for (int packets = 0; packets < kPacketsAtOnce && !sender_.gone(); ++packets) {
    absl::StatusOr<Packet> packet = socket_.Receive();
    if (absl::IsNotFound(packet.status())) return;
    if (absl::IsUnavailable(packet.status())) return Fail(absl::UnavailableError(kBroke));
    absl::Status handled =
        packet.ok() ? HandlePacket(*std::move(packet)) : std::move(packet).status();
    if (!handled.ok()) return Fail(handled);
  }
}

void SendEnd::OnPeerEnd() {
  Fail(absl::UnavailableError(kBroke));
}

absl::Status SendEnd::HandlePacket(Packet packet) {
  if (!accepted_) return HandleGreeting(std::move(packet));
  switch (packet.kind) {
    case PacketKind::kSegment:
      return sender_.OnSegment(packet);
    case PacketKind::kMapped:
      return sender_.OnMapped(packet);
    case PacketKind::kRing:
      return absl::OkStatus();  // the ring is read after this
    case PacketKind::kGoodbye:
      Fail(absl::OkStatus());
      return absl::OkStatus();
    default:
      return absl::DataLossError("the client sent an unexpected packet");
  }
}

absl::StatusOr<Hello> SendEnd::ReadGreeting(Packet packet) {
  if (packet.kind != PacketKind::kGreeting || packet.descriptors.size() != 1) {
    return absl::InvalidArgumentError("the first packet of a link must be a greeting");
  }
  RETURN_IF_ERROR(
      Agree(kShmVersions, UnpackLinkVersions(static_cast<uint32_t>(packet.a))).status());
  if (packet.b > kMaxHelloBytes) {
    CountRefused(Port::kShm, Refused::kTooLong);
    return absl::InvalidArgumentError("the hello in the client's greeting is too long");
  }
  ASSIGN_OR_RETURN(SharedSegment control,
                   SharedSegment::Open(packet.descriptors[0],
                                       AlignUp(sizeof(ControlMemory) + packet.b, kPageBytes)));
  const auto* text = reinterpret_cast<const char*>(control.memory().data()) + sizeof(ControlMemory);
  const std::string hello(text, packet.b);  // a copy: the client may still change the original
  channel_ = std::make_shared<Channel>(std::move(control), Channel::Side::kWorker);
  channel_->SetSleeps(sleeps_);
  channel_->SetDoorbell(socket_);
  reads_shared_ = (packet.c & kReadsShared) != 0;
  ASSIGN_OR_RETURN(Message message, DecodeFromClient(hello, /*hello_received=*/false));
  return std::get<Hello>(std::move(message));
}

absl::Status SendEnd::HandleGreeting(Packet packet) {
  absl::Status status = LetIn(std::move(packet));
  if (!status.ok()) {
    SendReason(status);
    return status;
  }
  accepted_ = true;
  sender_.Start(channel_, reads_shared_);
  return absl::OkStatus();
}

absl::Status SendEnd::LetIn(Packet packet) {
  ASSIGN_OR_RETURN(hello_, ReadGreeting(std::move(packet)));
  ASSIGN_OR_RETURN(events_, std::exchange(accept_, nullptr)(
                                hello_, std::make_shared<ShmSendLink>(shared_from_this())));
  return absl::OkStatus();
}

void SendEnd::SendReason(const absl::Status& reason) {
  // If the reason does not arrive, the client has gone and does not need it.
  socket_
      .Send(PacketKind::kClosed, static_cast<uint64_t>(reason.raw_code()), 0, 0,
            std::string(reason.message()))
      .IgnoreError();
}

// --- The end -----------------------------------------------------------------------

void SendEnd::Close(const absl::Status& reason) {
  if (!in_creator_) return;
  closing_ = true;
  sender_.Close(reason);
  loop_.Wake();
}

void SendEnd::Break() {
  sender_.Break();
  loop_.Wake();
}

void SendEnd::Fail(const absl::Status& status) {
  sender_.Break(status);
}

void SendEnd::SendClosed(Loop::Nanoseconds now) {
  if (!closing_ || !accepted_ || closed_sent_) return;
  if (end_by_ == Loop::kNever) end_by_ = now + kClosingTimeout;
  const std::optional<absl::Status> reason = sender_.ClosedFor();
  if (!reason.has_value()) return;
  closed_sent_ = true;
  SendReason(*reason);
}

void SendEnd::Finish() {
  const std::optional<absl::Status> reason = sender_.End();
  if (!reason.has_value()) return;
  std::vector<Sent> unconfirmed;
  if (events_ != nullptr) {
    DrainRing();
    unconfirmed = sender_.TakeUnconfirmed(pidfd_);
  }
  for (Sent& sent : unconfirmed) MoveOut(sent, *slots());
  slots()->Close();
  if (auto events = std::exchange(events_, nullptr)) {
    events->OnClosed(*reason, std::move(unconfirmed));
  }
  over_ = true;
}

void SendEnd::DrainRing() {
  uint64_t word;
  while (channel_->Read(word) == RingReader::Found::kWord) {
    if (KindOf(word) == WordKind::kReturnShared && !sender_.OnReturnedShared(SlotOf(word)).ok())
      return;
    SlotSender::Counts pending;
    if (KindOf(word) == WordKind::kReceived) pending.received = CountOf(word);
    if (!Settle(pending).ok()) return;
  }
}

void SendEnd::SetSleeps(bool sleeps) {
  sleeps_ = sleeps;
  if (channel_ != nullptr) channel_->SetSleeps(sleeps);
}

Loop::Nanoseconds SendEnd::deadline() const {
  if (!accepted_) return greeting_deadline_;
  return std::min(sender_.flush_at(), end_by_);
}

void SendEnd::OnDropped() {
  if (channel_ != nullptr) channel_->ClearDoorbell();
  socket_ = PacketSocket();
  pidfd_.Reset();
  if (on_over) on_over();
}

}  // namespace penstock::transfer::shm
