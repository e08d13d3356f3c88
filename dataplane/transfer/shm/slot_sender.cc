// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/shm/slot_sender.h"

#include <utility>

#include "control/sync/mutex.h"
#include "dataplane/element/block.h"
#include "dataplane/element/error_block.h"
#include "dataplane/memory/copied.h"
#include "dataplane/transfer/message.h"
#include "include/status_macros.h"

namespace penstock::transfer::shm {
namespace {

// Returns the kind of word for a block that had to be copied.
WordKind WhyCopied(const SlotOwner* made_by) {
  if (SendSlots::IsMissed(made_by)) return WordKind::kCopiedNoSlot;
  if (dynamic_cast<const SendSlots*>(made_by) != nullptr) return WordKind::kCopiedForAnother;
  return WordKind::kCopiedElsewhere;
}

}  // namespace

SlotSender::SlotSender(Loop& loop, const PacketSocket& socket)
    : loop_(loop), socket_(socket), queue_(DefaultPool(), kFrameBytes), demand_(socket, *slots_) {}

// --- Sending ---------------------------------------------------------------------

int64_t SlotSender::credits() const {
  MutexLock lock(mu_);
  return queue_.credits();
}

absl::Status SlotSender::Send(Sent&& sent) {
  MutexLock lock(mu_);
  if (gone_) return absl::UnavailableError("the link is closed");
  if (queue_.credits() > 0 && !queue_.closed()) demand_.AskForMissed(sent);
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

void SlotSender::Flush() {
  MutexLock lock(mu_);
  queue_.Seal();
  Pump();
}

void SlotSender::FlushFrame(Loop::Nanoseconds now) {
  if (now < flush_at()) return;
  MutexLock lock(mu_);
  flush_at_.store(Loop::kNever, std::memory_order_seq_cst);
  if (!queue_.has_open_frame() || queue_.frame() != flush_frame_) return;
  queue_.Seal();
  Pump();
}

void SlotSender::Pump() {
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
      const SlotRoom room = RoomFor(message);
      next_.emplace(
          PendingMessage{std::move(message), room, std::nullopt, std::nullopt, std::nullopt});
      if (room.kind == WordKind::kElement) next_->shared = SharedPool::Find(next_->message.bytes);
    }
    if (!FindSlot(*next_)) {
      if (!next_->shared.has_value()) demand_.Ask(next_->room, queue_.size());
      break;
    }
    const PendingMessage next = *std::exchange(next_, std::nullopt);
    channel_->Send(Announce(next));
  }
  pumping_ = false;
  if (gone_ || queue_.close_sent()) loop_.Wake();
}

SlotRoom SlotSender::RoomFor(const SendQueue::OutgoingMessage& message) {
  if (message.error.has_value()) return {WordKind::kError, ErrorBlockBytes(message.error->error)};
  // All frames take slots of the size of the largest frame, so that all frames use the same slots.
  if (message.type == MessageType::kFrame) return {WordKind::kFrame, kFrameBytes};
  const uint32_t head_bytes = PrefixOf(message.bytes.data()).head_bytes;
  if (head_bytes > kHeadRoom) return {WordKind::kBlock, message.bytes.size()};
  return {WordKind::kElement, message.bytes.size() - head_bytes, head_bytes};
}

bool SlotSender::FindSlot(PendingMessage& next) {
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

uint64_t SlotSender::Announce(const PendingMessage& next) {
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

void SlotSender::Close(const absl::Status& reason) {
  MutexLock lock(mu_);
  queue_.Close(reason);
  Pump();
}

void SlotSender::Break(const absl::Status& reason) {
  MutexLock lock(mu_);
  queue_.Close(reason);
  gone_ = true;
}

// --- From the client ---------------------------------------------------------------

void SlotSender::Start(std::shared_ptr<Channel> channel, bool reads_shared) {
  MutexLock lock(mu_);
  channel_ = std::move(channel);
  if (reads_shared) shared_.Allow();
  queue_.Welcome();
  Pump();
}

absl::Status SlotSender::OnCounts(const Counts& counts, std::vector<Acknowledged>& received) {
  const bool sends_on = counts.returned && waits_for_slot_.exchange(false);
  if (counts.received == 0 && counts.granted == 0 && !sends_on) return absl::OkStatus();
  MutexLock lock(mu_);
  RETURN_IF_ERROR(queue_.OnReceived(counts.received, received));
  RETURN_IF_ERROR(queue_.Grant(counts.granted));
  demand_.NoteCredits(queue_.credits());
  if (sends_on) Pump();  // now that received elements are released and slots are free
  return absl::OkStatus();
}

void SlotSender::OnRecall() {
  MutexLock lock(mu_);
  queue_.Recall();
  Pump();
}

absl::Status SlotSender::OnReturnedShared(const SlotWord& word) {
  Loan returned;  // destroyed outside the lock
  MutexLock lock(mu_);
  ASSIGN_OR_RETURN(returned, shared_.OnReturned(word));
  return absl::OkStatus();
}

absl::Status SlotSender::OnSegment(const Packet& packet) {
  if (packet.descriptors.size() != 1) {
    return absl::DataLossError("the client sent a shared segment without its descriptor");
  }
  MutexLock lock(mu_);
  const std::optional<SlotDemand::Asked> asked = demand_.asked();
  lock.unlock();
  if (!asked.has_value())
    return absl::DataLossError("the client sent a shared segment that was not requested");
  RETURN_IF_ERROR(
      slots_->Add(packet.a, packet.b, packet.c, asked->most_bytes, packet.descriptors[0]));
  lock.lock();
  demand_.Answered();
  Pump();  // first asks for the slots needed now
  demand_.AskForRest(*asked, packet.b);
  return absl::OkStatus();
}

absl::Status SlotSender::OnMapped(const Packet& packet) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(shared_.OnMapped(packet));
  Pump();
  return absl::OkStatus();
}

// --- The end -----------------------------------------------------------------------

std::optional<absl::Status> SlotSender::ClosedFor() const {
  MutexLock lock(mu_);
  if (!queue_.close_sent() || pumping_ || !channel_->flushed()) return std::nullopt;
  return queue_.reason();
}

std::optional<absl::Status> SlotSender::End() {
  MutexLock lock(mu_);
  if (pumping_) return std::nullopt;
  next_.reset();
  return queue_.reason();
}

std::vector<Sent> SlotSender::TakeUnconfirmed(const Descriptor& peer) {
  MutexLock lock(mu_);
  shared_.HandOver(loop_, peer);
  return queue_.TakeUnconfirmed();
}

}  // namespace penstock::transfer::shm
