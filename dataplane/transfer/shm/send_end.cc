// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/shm/send_end.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "dataplane/element/block.h"
#include "dataplane/element/error_block.h"
#include "dataplane/memory/copied.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/send_handle.h"
#include "include/status_macros.h"

namespace penstock::transfer {
namespace {

// The time limit for the greeting, which a client sends immediately after connecting.
constexpr Loop::Nanoseconds kGreetingTimeout = 10'000 * Loop::kMillisecond;
// How long a client may take to read the data sent before a link was closed.
constexpr Loop::Nanoseconds kClosingTimeout = 10'000 * Loop::kMillisecond;
// A segment may have this many times the bytes that this release would use for the requested slots,
// because a different release may round up differently.
constexpr size_t kAskedSlack = 2;
// How many words are read before other links are served.
constexpr int kWordsOfClientAtOnce = 256;

// A segment has few large slots. The client is asked for more segments until it has made as many
// slots as may be in use, or one of these bounds is reached.
constexpr uint64_t kAtFirst = 8;
constexpr size_t kAtFirstBytes = size_t{128} << 20;
// If no slot was free for blocks of a size, the link asks for more: at most kMostAsksOnMiss times,
// each time for at most kMostOnMiss missing slots and kSpareOnMiss spare ones. A node that reads
// ahead thus gets further step by step.
constexpr int kMostAsksOnMiss = 8;
constexpr uint64_t kMostOnMiss = 16;
constexpr uint64_t kSpareOnMiss = 2;

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

class ShmSendLink final : public SendHandle<SendEnd> {
 public:
  using SendHandle::SendHandle;
  std::shared_ptr<Pool> pool() override { return end_->slots(); }
  absl::Status Send(Sent&& sent) override {
    // A reader may write into its slot, so an element that others also read here is copied.
    Element& element = sent.element;
    if (element && element.IsShared() && end_->slots()->Owns(element.loan().bytes().data())) {
      ASSIGN_OR_RETURN(element, CopyChecked(DefaultPool(), element.block(), element.spec()));
    }
    return SendHandle::Send(std::move(sent));
  }
};

// Returns the kind of word for a block that had to be copied.
WordKind WhyCopied(const SlotOwner* made_by) {
  if (SendSlots::IsMissed(made_by)) return WordKind::kCopiedNoSlot;
  if (dynamic_cast<const SendSlots*>(made_by) != nullptr) return WordKind::kCopiedForAnother;
  return WordKind::kCopiedElsewhere;
}

}  // namespace

SendEnd::SendEnd(Loop& loop, PacketSocket socket, Listener::Accept accept)
    : loop_(loop),
      socket_(std::move(socket)),
      pidfd_(socket_.OpenPeerPidfd()),
      accept_(std::move(accept)),
      greeting_deadline_(Loop::Now() + kGreetingTimeout),
      queue_(DefaultPool(), kFrameBytes) {}

void SendEnd::Join() {
  loop_.Add(shared_from_this(), socket_.fd(), pidfd_.get());
}

int64_t SendEnd::credits() const {
  MutexLock lock(mu_);
  return queue_.credits();
}

// --- Sending ---------------------------------------------------------------------

absl::Status SendEnd::Send(Sent&& sent) {
  if (!in_creator_) return absl::UnavailableError("the link belongs to the parent process");
  MutexLock lock(mu_);
  if (gone_) return absl::UnavailableError("the link is closed");
  if (queue_.credits() > 0 && !queue_.closed()) AskForMissed(sent);
  RETURN_IF_ERROR(queue_.Send(std::move(sent)));
  Pump();
  if (queue_.has_open_frame() && flush_frame_ != queue_.frame()) {
    flush_frame_ = queue_.frame();
    const Loop::Nanoseconds at = Loop::Now() + std::chrono::nanoseconds(kFrameFlushDelay).count();
    flush_at_.store(at, std::memory_order_seq_cst);
    lock.unlock();
    loop_.WakeAt(at);
  }
  return absl::OkStatus();
}

void SendEnd::Flush() {
  if (!in_creator_) return;
  MutexLock lock(mu_);
  queue_.Seal();
  Pump();
}

void SendEnd::FlushFrame(Loop::Nanoseconds now) {
  if (now < flush_at_.load(std::memory_order_seq_cst)) return;
  MutexLock lock(mu_);
  flush_at_.store(Loop::kNever, std::memory_order_seq_cst);
  if (!queue_.has_open_frame() || queue_.frame() != flush_frame_) return;
  queue_.Seal();
  Pump();
}

void SendEnd::Pump() {
  if (pumping_) return;  // that thread also sends the messages added meanwhile
  pumping_ = true;
  while (HasNext() && !gone_) {
    if (!next_.has_value()) {
      SendQueue::OutgoingMessage message = queue_.Take();
      if (message.type == MessageType::kRecalled) {
        channel_->Send(Pack(WordKind::kRecalled, message.count));
        continue;
      }
      if (message.type == MessageType::kWelcome) {
        socket_.Send(PacketKind::kWelcome).IgnoreError();  // the socket reports its end
        continue;
      }
      // kClosed is sent after the client can see all earlier messages.
      if (message.type == MessageType::kClosed) break;
      const Room room = RoomFor(message);
      next_.emplace(
          PendingMessage{std::move(message), room, std::nullopt, std::nullopt, std::nullopt});
      if (room.kind == WordKind::kElement) next_->shared = SharedPool::Find(next_->message.bytes);
    }
    if (!FindSlot(*next_)) {
      if (!next_->shared.has_value()) Ask(next_->room);
      break;
    }
    const PendingMessage next = *std::exchange(next_, std::nullopt);
    channel_->Send(Announce(next));
  }
  pumping_ = false;
  if (gone_ || queue_.close_sent()) loop_.Wake();
}

SendEnd::Room SendEnd::RoomFor(const SendQueue::OutgoingMessage& message) {
  if (message.error.has_value()) return {WordKind::kError, ErrorBlockBytes(message.error->error)};
  // The size of the largest frame, so that all frames find the same slots.
  if (message.type == MessageType::kFrame) return {WordKind::kFrame, kFrameBytes};
  const uint32_t head_bytes = PrefixOf(message.bytes.data()).head_bytes;
  if (head_bytes > kHeadRoom) return {WordKind::kBlock, message.bytes.size()};
  return {WordKind::kElement, message.bytes.size() - head_bytes, head_bytes};
}

bool SendEnd::FindSlot(PendingMessage& next) {
  if (next.shared.has_value()) {
    const SendShared::Way way = shared_.WayFor(*next.shared, socket_);
    if (way != SendShared::Way::kCopy) return way == SendShared::Way::kWord;
    next.shared.reset();
  }
  if (next.room.kind == WordKind::kElement) {
    next.in_place = slots_->GiveInPlace(next.message.bytes);
    if (next.in_place.has_value()) return true;
  }
  next.place = slots_->Claim(next.room.bytes);
  if (next.place.has_value()) return true;
  waits_for_slot_ = true;  // set before the last check, so that later returns see it
  next.place = slots_->Claim(next.room.bytes);
  return next.place.has_value();
}

uint64_t SendEnd::Announce(const PendingMessage& next) {
  const absl::Span<const std::byte> bytes = next.message.bytes;
  if (next.shared.has_value()) {
    return Pack(WordKind::kShared, shared_.GiveAway(*next.shared, next.message.loan.Share()));
  }
  if (next.in_place.has_value()) return Pack(WordKind::kElement, *next.in_place);
  const SendSlots::Place& place = *next.place;
  mu_.unlock();
  if (const std::optional<ErrorMessage>& error = next.message.error; error.has_value()) {
    // Written in private memory: writing a block also reads it, and the client may write the slot.
    alignas(kBlockAlignment) std::byte block[kMaxErrorBlockBytes];
    WriteErrorBlock(block, error->identity, error->error);
    CopyCounted(place.body, block, next.room.bytes);
  }
  CopyCounted(place.body - next.room.head_bytes, bytes.data(), bytes.size());
  mu_.lock();
  const WordKind kind =
      next.room.kind == WordKind::kElement ? WhyCopied(next.message.loan.owner()) : next.room.kind;
  return Pack(kind, slots_->GiveAway(place.body, next.room.head_bytes));
}

// Blocks in other memory are copied into slots as these are returned. The next blocks then find no
// free slot either, and so on, until there are more slots.
void SendEnd::AskForMissed(const Sent& sent) {
  const uint64_t missed = slots_->TakeMissed();
  if (missed == 0 || !sent.element || asked_.has_value()) return;
  if (slots_->counters().segments_allocated == 0) return;  // this element will ask for the first
  const HeadPrefix prefix = PrefixOf(sent.element.block().data());
  if (prefix.head_bytes > kHeadRoom || prefix.head_bytes + prefix.body_bytes < kFrameBelow) return;
  int& asks = asks_on_miss_[LayoutFor(prefix.body_bytes, 1).body_bytes];
  if (asks >= kMostAsksOnMiss) return;
  ++asks;
  Ask({WordKind::kElement, prefix.body_bytes}, std::min(missed, kMostOnMiss) + kSpareOnMiss);
}

void SendEnd::Ask(const Room& room, uint64_t more) {
  if (asked_.has_value()) return;
  for (uint32_t number : slots_->TakeIdle(room.bytes)) {
    socket_.Send(PacketKind::kRetire, number).IgnoreError();  // the socket reports its end
  }
  // As many slots as may be sent before one must return, plus those being read meanwhile, and at
  // least enough bytes for each slot to rest (free_slots.h).
  const uint64_t in_use = room.kind == WordKind::kFrame
                              ? 4  // they return immediately
                              : std::max<uint64_t>(queue_.size(), most_credits_) + 3;
  const size_t slot_bytes = LayoutFor(room.bytes, 1).body_bytes;
  const uint64_t wanted = more > 0 ? more : std::max<uint64_t>(in_use, RestBytes() / slot_bytes);
  const uint64_t at_once = LayoutFor(room.bytes, wanted).slots;
  const uint64_t at_first = std::min<uint64_t>(kAtFirst, kAtFirstBytes / slot_bytes);
  AskFor(room, std::max(at_once, std::min(at_first, wanted)));
}

void SendEnd::AskFor(const Room& room, uint64_t slots) {
  // A client that does not read its socket is asked again by the next message that finds no slot.
  if (!socket_.Send(PacketKind::kNeed, room.bytes, slots).ok()) return;
  asked_ = {room, slots, kAskedSlack * LayoutFor(room.bytes, slots).bytes()};
}

// --- The client's words ------------------------------------------------------------

bool SendEnd::Poll(Loop::Nanoseconds now) {
  if (channel_ == nullptr) {
    if (now >= greeting_deadline_)
      Fail(absl::DeadlineExceededError("the client did not send a hello in time"));
    if (gone_) Finish();
    return false;
  }
  channel_->Flush();
  const bool found = accepted_ && ReadRing();
  FlushFrame(now);
  SendClosed(now);
  if (now >= end_by_) gone_ = true;
  if (gone_) Finish();
  return found;
}

bool SendEnd::ReadRing() {
  uint64_t word;
  int words = 0;
  PendingCounts pending;
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

absl::Status SendEnd::HandleWord(uint64_t word, PendingCounts& pending) {
  switch (KindOf(word)) {
    case WordKind::kReturn:
      pending.returned = true;
      return slots_->OnReturned(SlotOf(word));
    case WordKind::kReturnShared:
      return OnReturnedShared(SlotOf(word));
    case WordKind::kReceived:
      if (pending.received > kMaxCount) RETURN_IF_ERROR(Settle(pending));
      pending.received += CountOf(word);
      return absl::OkStatus();
    case WordKind::kGranted:
      if (pending.granted > kMaxCount) RETURN_IF_ERROR(Settle(pending));
      pending.granted += CountOf(word);
      return absl::OkStatus();
    case WordKind::kRecall: {
      RETURN_IF_ERROR(Settle(pending));
      MutexLock lock(mu_);
      queue_.Recall();
      Pump();
      return absl::OkStatus();
    }
    default:
      return absl::DataLossError("the client wrote an unexpected word");
  }
}

absl::Status SendEnd::Settle(PendingCounts& pending) {
  const auto [received, granted, returned] = std::exchange(pending, PendingCounts());
  const bool sends_on = returned && waits_for_slot_.exchange(false);
  if (received == 0 && granted == 0 && !sends_on) return absl::OkStatus();
  {
    MutexLock lock(mu_);
    RETURN_IF_ERROR(queue_.OnReceived(received, received_));
    RETURN_IF_ERROR(queue_.Grant(granted));
    most_credits_ = std::max(most_credits_, static_cast<uint64_t>(queue_.credits()));
    if (sends_on) Pump();  // now that received elements are released and slots are free
  }
  if (received > 0) events_->OnReceived(received_);
  received_.clear();
  if (granted > 0) events_->OnCredits({granted});
  return absl::OkStatus();
}

absl::Status SendEnd::OnReturnedShared(const SlotWord& word) {
  Loan returned;  // destroyed outside the lock
  MutexLock lock(mu_);
  ASSIGN_OR_RETURN(returned, shared_.OnReturned(word));
  return absl::OkStatus();
}

// --- The client's packets ----------------------------------------------------------

void SendEnd::OnSocket() {
  for (int packets = 0; packets < kPacketsAtOnce && !gone_; ++packets) {
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
    case PacketKind::kSegment: {
      if (packet.descriptors.size() != 1) {
        return absl::DataLossError("the client sent a shared segment without its descriptor");
      }
      MutexLock lock(mu_);
      const std::optional<Asked> asked = asked_;
      lock.unlock();
      if (!asked.has_value())
        return absl::DataLossError("the client sent a shared segment that was not requested");
      RETURN_IF_ERROR(
          slots_->Add(packet.a, packet.b, packet.c, asked->most_bytes, packet.descriptors[0]));
      lock.lock();
      asked_.reset();
      Pump();  // first asks for the slots needed now
      if (!asked_.has_value() && asked->slots > packet.b)
        AskFor(asked->room, asked->slots - packet.b);
      return absl::OkStatus();
    }
    case PacketKind::kMapped: {
      MutexLock lock(mu_);
      RETURN_IF_ERROR(shared_.OnMapped(packet));
      Pump();
      return absl::OkStatus();
    }
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
  if (packet.a != kShmVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("this worker speaks version ", kShmVersion,
                     " of the shm transfer protocol, but the client speaks version ", packet.a));
  }
  if (packet.b > kMaxControlBytes) {
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
  if ((packet.c & kReadsShared) != 0) {
    MutexLock lock(mu_);
    shared_.Allow();
  }
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
  MutexLock lock(mu_);
  queue_.Welcome();
  Pump();
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
  {
    MutexLock lock(mu_);
    queue_.Close(reason);
    closing_ = true;
    Pump();
  }
  loop_.Wake();
}

void SendEnd::Break() {
  gone_ = true;
  loop_.Wake();
}

void SendEnd::Fail(const absl::Status& status) {
  MutexLock lock(mu_);
  queue_.Close(status);
  gone_ = true;
}

void SendEnd::SendClosed(Loop::Nanoseconds now) {
  if (!closing_ || !accepted_ || closed_sent_) return;
  if (end_by_ == Loop::kNever) end_by_ = now + kClosingTimeout;
  MutexLock lock(mu_);
  if (!queue_.close_sent() || pumping_ || !channel_->flushed()) return;
  closed_sent_ = true;
  SendReason(queue_.reason());
}

void SendEnd::Finish() {
  absl::Status reason;
  {
    MutexLock lock(mu_);
    if (pumping_) return;  // that thread wakes the loop
    reason = queue_.reason();
    next_.reset();
  }
  std::vector<Sent> unconfirmed;
  if (events_ != nullptr) {
    DrainRing();
    MutexLock lock(mu_);
    unconfirmed = queue_.TakeUnconfirmed();
    shared_.HandOver(loop_, pidfd_);
  }
  for (Sent& sent : unconfirmed) MoveOut(sent);
  slots_->Close();
  if (auto events = std::exchange(events_, nullptr)) {
    events->OnClosed(reason, std::move(unconfirmed));
  }
  over_ = true;
}

void SendEnd::DrainRing() {
  uint64_t word;
  while (channel_->Read(word) == RingReader::Found::kWord) {
    if (KindOf(word) == WordKind::kReturnShared && !OnReturnedShared(SlotOf(word)).ok()) return;
    PendingCounts pending;
    if (KindOf(word) == WordKind::kReceived) pending.received = CountOf(word);
    if (!Settle(pending).ok()) return;
  }
}

void SendEnd::MoveOut(Sent& sent) const {
  if (!sent.element || !slots_->Owns(sent.element.loan().bytes().data())) return;
  absl::StatusOr<Element> moved =
      CopyChecked(DefaultPool(), sent.element.block(), sent.element.spec());
  if (moved.ok()) {
    sent.element = *std::move(moved);
  } else {
    sent.element = Element();
    sent.error = moved.status();
  }
}

void SendEnd::SetSleeps(bool sleeps) {
  sleeps_ = sleeps;
  if (channel_ != nullptr) channel_->SetSleeps(sleeps);
}

Loop::Nanoseconds SendEnd::deadline() const {
  if (!accepted_) return greeting_deadline_;
  return std::min(flush_at_.load(std::memory_order_seq_cst), end_by_);
}

void SendEnd::OnDropped() {
  if (channel_ != nullptr) channel_->ClearDoorbell();
  socket_ = PacketSocket();
  pidfd_.Reset();
  if (on_over) on_over();
}

}  // namespace penstock::transfer
