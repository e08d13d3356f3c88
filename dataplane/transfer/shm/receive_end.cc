// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/shm/receive_end.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "dataplane/element/block.h"
#include "dataplane/element/error_block.h"
#include "dataplane/element/frame.h"
#include "dataplane/memory/copied.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/shm/send_end.h"
#include "include/status_macros.h"

namespace penstock::transfer::shm {
namespace {

// How many words are read before other links are served.
constexpr int kWordsOfWorkerAtOnce = 64;

uint64_t BytesOfBlock(const HeadPrefix& prefix) {
  const uint64_t most = std::numeric_limits<int64_t>::max();
  return prefix.body_bytes > most ? most : prefix.head_bytes + prefix.body_bytes;
}

Loop::Nanoseconds After(absl::Duration timeout) {
  return Loop::Now() + absl::ToInt64Nanoseconds(std::min(timeout, absl::Hours(24 * 365)));
}

}  // namespace

ReceiveEnd::ReceiveEnd(Loop& loop, std::string address, DialOptions options,
                       std::shared_ptr<ReceiveEvents> events)
    : loop_(loop),
      address_(std::move(address)),
      options_(std::move(options)),
      pool_(options_.pool != nullptr ? *options_.pool : DefaultPool()),
      open_by_(After(options_.timeout)),
      events_(std::move(events)) {}

// --- The client's calls ------------------------------------------------------------------

void ReceiveEnd::Dial(std::string_view name) {
  const absl::Status connected = Connect(name);
  if (connected.ok()) return loop_.Add(shared_from_this(), socket_.fd(), pidfd_.get());
  over_ = true;
  std::exchange(events_, nullptr)->OnClosed(Annotate(connected, "worker at ", address_));
}

absl::Status ReceiveEnd::Connect(std::string_view name) {
  ASSIGN_OR_RETURN(socket_, PacketSocket::Connect(name));
  pidfd_ = socket_.OpenPeerPidfd();
  const std::string hello = Encode(options_.hello);
  ASSIGN_OR_RETURN(SharedSegment control,
                   SharedSegment::Create(sizeof(ControlMemory) + hello.size()));
  std::memcpy(control.memory().data() + sizeof(ControlMemory), hello.data(), hello.size());
  RETURN_IF_ERROR(socket_.Send(PacketKind::kGreeting, transfer::Pack(kShmVersions), hello.size(),
                               kReadsShared, {}, {control.fd()}));
  channel_ = std::make_shared<Channel>(std::move(control), Channel::Side::kClient);
  slots_ = std::make_shared<ReceiveSlots>(channel_);
  shared_ =
      std::make_shared<ReceiveSlots>(channel_, PageLocking::ForProcess(), WordKind::kReturnShared);
  return absl::OkStatus();
}

void ReceiveEnd::Grant(Credits credits) {
  if (credits.count > 0 && channel_ != nullptr && in_creator_) {
    channel_->Send(Pack(WordKind::kGranted, credits.count));
  }
}

void ReceiveEnd::Recall() {
  if (channel_ != nullptr && in_creator_) channel_->Send(Pack(WordKind::kRecall, int64_t{0}));
}

void ReceiveEnd::Close() {
  if (!in_creator_) return;
  gate_.Close();
  closed_ = true;
  loop_.Wake();
}

// --- The loop's calls --------------------------------------------------------------------

bool ReceiveEnd::Poll(Loop::Nanoseconds now) {
  channel_->Flush();
  if (closed_) {
    socket_.Send(PacketKind::kGoodbye).IgnoreError();  // fails if the worker is gone
    End();
    return true;
  }
  if (!open_) {
    if (now >= open_by_) {
      EndWith(absl::DeadlineExceededError(
          absl::StrCat("it did not answer within ", absl::FormatDuration(options_.timeout))));
    }
    if (!ending_.has_value()) return false;
  }
  const bool found = ReadRing(kWordsOfWorkerAtOnce);
  if (ending_.has_value() && !found) End();
  return found;
}

void ReceiveEnd::OnSocket() {
  for (int packets = 0; packets < kPacketsAtOnce && !ending_.has_value(); ++packets) {
    absl::StatusOr<Packet> packet = socket_.Receive();
    if (absl::IsNotFound(packet.status())) return;
    if (absl::IsUnavailable(packet.status())) return OnPeerEnd();
    EndWith(packet.ok() ? HandlePacket(*std::move(packet)) : packet.status());
  }
}

void ReceiveEnd::OnPeerEnd() {
  EndWith(absl::UnavailableError("the worker's connection broke"));
}

absl::Status ReceiveEnd::HandlePacket(Packet packet) {
  switch (packet.kind) {
    case PacketKind::kWelcome:
      if (open_) return absl::DataLossError("the worker sent its welcome twice");
      channel_->SetDoorbell(socket_);
      open_ = true;
      if (gate_.Enter()) {
        events_->OnOpen();
        gate_.Leave();
      }
      return absl::OkStatus();
    case PacketKind::kRing:
      return absl::OkStatus();  // the ring is read after this
    case PacketKind::kNeed:
      return MakeSegment(packet);
    case PacketKind::kRetire:
      return slots_->Retire(packet.a);
    case PacketKind::kShared:
      return MapShared(std::move(packet));
    case PacketKind::kGiveUp:
      return shared_->Retire(packet.a);
    case PacketKind::kClosed: {
      const absl::Status reason(static_cast<absl::StatusCode>(packet.a), packet.text);
      ending_ = reason;
      return absl::OkStatus();
    }
    default:
      return absl::DataLossError("the worker sent an unexpected packet");
  }
}

absl::Status ReceiveEnd::MakeSegment(const Packet& need) {
  const auto largest = static_cast<uint64_t>(options_.max_element_bytes);
  if (need.a > std::max<uint64_t>(largest, kFrameBytes)) {
    return absl::DataLossError(
        absl::StrCat("an element of ", need.a, " bytes is above max_element_bytes = ", largest));
  }
  ASSIGN_OR_RETURN(const ReceiveSlots::NewSegment segment, slots_->Add(need.a, need.b));
  return socket_.Send(PacketKind::kSegment, segment.number, segment.layout.slots,
                      segment.layout.body_bytes, {}, {segment.fd});
}

absl::Status ReceiveEnd::MapShared(Packet packet) {
  if (packet.descriptors.size() != 2) {
    return absl::DataLossError("the worker announced a shared segment without its descriptors");
  }
  const absl::Status mapped = shared_->Adopt(packet.a, packet.b, packet.c, packet.descriptors[0],
                                             std::move(packet.descriptors[1]));
  if (absl::IsDataLoss(mapped)) return mapped;
  // If the segment cannot be mapped, the worker copies.
  return socket_.Send(PacketKind::kMapped, packet.a, static_cast<uint64_t>(mapped.raw_code()), 0,
                      std::string(mapped.message()));
}

bool ReceiveEnd::ReadRing(int words) {
  int read = 0;
  while (read < words && !corrupt_ && !channel_->empty() && gate_.Enter()) {
    uint64_t word;
    const RingReader::Found found = channel_->Read(word);
    absl::Status handled;
    if (found == RingReader::Found::kNonsense) {
      handled = absl::DataLossError("the worker's ring contains an invalid word");
    } else if (found == RingReader::Found::kWord) {
      handled = HandleWord(word);
    }
    gate_.Leave();
    if (!handled.ok()) {
      corrupt_ = true;
      ending_ = handled;
      return false;
    }
    if (found != RingReader::Found::kWord) break;
    ++read;
  }
  return read > 0;
}

// --- Receiving ---------------------------------------------------------------------

namespace {

// Returns nullopt if the word announces no element, or small elements.
std::optional<Filled> FilledBy(WordKind kind) {
  switch (kind) {
    case WordKind::kElement:
    case WordKind::kShared:
      return Filled::kInPlace;
    case WordKind::kCopiedNoSlot:
      return Filled::kNoSlot;
    case WordKind::kCopiedForAnother:
      return Filled::kForAnother;
    case WordKind::kCopiedElsewhere:
    case WordKind::kBlock:
      return Filled::kElsewhere;
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::Status ReceiveEnd::HandleWord(uint64_t word) {
  absl::Status status;
  if (options_.filled != nullptr) {
    if (const std::optional<Filled> how = FilledBy(KindOf(word))) options_.filled->Add(*how);
  }
  switch (KindOf(word)) {
    case WordKind::kElement:
    case WordKind::kCopiedNoSlot:
    case WordKind::kCopiedForAnother:
    case WordKind::kCopiedElsewhere:
      status = ReceiveElement(*slots_, SlotOf(word));
      break;
    case WordKind::kShared:
      status = ReceiveElement(*shared_, SlotOf(word));
      break;
    case WordKind::kBlock:
      status = ReceiveBlock(SlotOf(word));
      break;
    case WordKind::kFrame:
      status = ReceiveFrame(SlotOf(word));
      break;
    case WordKind::kError:
      status = ReceiveError(SlotOf(word));
      break;
    case WordKind::kRecalled:
      events_->OnRecalled({CountOf(word)});
      break;
    default:
      status = absl::DataLossError("the worker wrote an unexpected word");
  }
  return status.ok() ? status : absl::DataLossError(status.message());
}

absl::Status ReceiveEnd::ReceiveElement(ReceiveSlots& slots, const SlotWord& word) {
  ASSIGN_OR_RETURN(ReceiveSlots::Arrived arrived, slots.Arrive(word));
  if (word.head_bytes < sizeof(HeadPrefix) || word.head_bytes > kHeadRoom) {
    return absl::DataLossError(absl::StrCat("the worker wrote a head of ", word.head_bytes,
                                            " bytes, which is not a valid size"));
  }
  std::byte* block = arrived.body - word.head_bytes;
  std::memcpy(block, arrived.shared - word.head_bytes, word.head_bytes);
  // From here on the head is private, so the worker can no longer change it. The checks use only
  // this head and the size of the body.
  if (PrefixOf(block).head_bytes != word.head_bytes) {
    return absl::DataLossError("a head's length differs from the length that the worker reported");
  }
  RETURN_IF_ERROR(
      CheckBlock(absl::MakeConstSpan(block, word.head_bytes + arrived.body_bytes), options_.spec)
          .status());
  return Receive(Element(std::move(arrived.loan), block, options_.spec));
}

template <class Prefix, class BytesOf>
absl::StatusOr<absl::Span<std::byte>> ReceiveEnd::CopyOut(const SlotWord& word, size_t max_bytes,
                                                          BytesOf bytes_of, Loan& loan) {
  ASSIGN_OR_RETURN(ReceiveSlots::Arrived arrived, slots_->Arrive(word));
  Prefix prefix;
  std::memcpy(&prefix, arrived.shared, sizeof(prefix));
  const uint64_t bytes = bytes_of(prefix);
  if (bytes < sizeof(Prefix) || bytes > std::min(max_bytes, arrived.body_bytes)) {
    return absl::DataLossError(
        absl::StrCat("the worker wrote ", bytes, " bytes into a slot of ", arrived.body_bytes));
  }
  ASSIGN_OR_RETURN(loan, pool_.Lend(bytes));
  const absl::Span<std::byte> copy = loan.bytes().first(bytes);
  CopyCounted(copy.data(), arrived.shared, bytes);
  return copy;
}

absl::Status ReceiveEnd::ReceiveBlock(const SlotWord& word) {
  Loan loan;
  ASSIGN_OR_RETURN(const absl::Span<std::byte> block,
                   CopyOut<HeadPrefix>(word, static_cast<size_t>(options_.max_element_bytes),
                                       BytesOfBlock, loan));
  RETURN_IF_ERROR(CheckBlock(block, options_.spec).status());
  return Receive(Element(std::move(loan), block.data(), options_.spec));
}

absl::Status ReceiveEnd::Receive(Element element) {
  RETURN_IF_ERROR(Check(element));
  // Sent before the event, because the reader may overwrite the slot from the event on. When a link
  // breaks, the worker copies the elements that were not reported as received out of their slots
  // (SendEnd::MoveOut).
  channel_->Send(Pack(WordKind::kReceived, int64_t{1}));
  events_->OnElements(absl::MakeSpan(&element, 1));
  return absl::OkStatus();
}

absl::Status ReceiveEnd::ReceiveFrame(const SlotWord& word) {
  Loan loan;
  ASSIGN_OR_RETURN(
      const absl::Span<std::byte> bytes,
      CopyOut<FramePrefix>(
          word, kFrameBytes, [](const FramePrefix& prefix) { return prefix.frame_bytes; }, loan));
  ASSIGN_OR_RETURN(FrameReader frame,
                   FrameReader::Open(std::move(loan), bytes.size(), options_.spec));
  absl::Status status;
  while (status.ok()) {
    absl::StatusOr<std::optional<Element>> element = frame.Next();
    if (element.ok() && !element->has_value()) break;
    status = element.ok() ? Check(**element) : element.status();
    if (status.ok()) frame_elements_.push_back(std::move(**element));
  }
  if (!frame_elements_.empty()) {
    channel_->Send(Pack(WordKind::kReceived, static_cast<int64_t>(frame_elements_.size())));
    events_->OnElements(absl::MakeSpan(frame_elements_));
    frame_elements_.clear();
  }
  return status;
}

absl::Status ReceiveEnd::ReceiveError(const SlotWord& word) {
  Loan loan;
  ASSIGN_OR_RETURN(const absl::Span<std::byte> block,
                   CopyOut<HeadPrefix>(word, kMaxErrorBlockBytes, BytesOfBlock, loan));
  RETURN_IF_ERROR(CheckBlock(block, Spec()).status());
  const Element error(std::move(loan), block.data(), Spec());
  if (!IsError(error))
    return absl::DataLossError("the worker sent an error that is not an error element");
  channel_->Send(Pack(WordKind::kReceived, int64_t{1}));
  events_->OnError(error.identity(), ReadErrorBlock(error));
  return absl::OkStatus();
}

absl::Status ReceiveEnd::Check(const Element& element) const {
  const uint64_t bytes = element.block().size();
  if (bytes > static_cast<uint64_t>(options_.max_element_bytes)) {
    return absl::DataLossError(
        absl::StrCat("an element of ", bytes,
                     " bytes is above max_element_bytes = ", options_.max_element_bytes));
  }
  return absl::OkStatus();
}

// --- The end -----------------------------------------------------------------------

void ReceiveEnd::EndWith(const absl::Status& reason) {
  if (!reason.ok() && !ending_.has_value()) ending_ = reason;
}

void ReceiveEnd::End() {
  if (!closed_ && gate_.Enter()) {
    events_->OnClosed(Annotate(*ending_, "worker at ", address_));
    gate_.Leave();
  }
  slots_->Close();
  shared_->Close();
  events_.reset();
  over_ = true;
}

void ReceiveEnd::OnDropped() {
  channel_->ClearDoorbell();
  socket_ = PacketSocket();
  pidfd_.Reset();
}

}  // namespace penstock::transfer::shm
