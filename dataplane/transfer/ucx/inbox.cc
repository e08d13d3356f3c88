// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/inbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "dataplane/memory/copied.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/ucx/gpu_places.h"

namespace penstock::transfer::ucx {
namespace {

// An announced element that has not arrived within this time counts as lost. Once the last link to
// its worker ends, the limit is shorter (kLastFetchTimeout).
constexpr std::chrono::seconds kFetchTimeout(60);
// The time limit for elements that were in transit when the last link to a worker was destroyed.
constexpr std::chrono::seconds kLastFetchTimeout(5);

// The maximum number of messages of a link that may arrive ahead of a missing message.
constexpr uint64_t kMostWaiting = 1 << 16;

// Returns false for a head that Penstock does not send.
bool ReadHead(std::string_view bytes, Head& head) {
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  return head.magic == Head::kMagic;
}

bool HasBlock(uint32_t kind) {
  return kind == static_cast<uint32_t>(MessageType::kElement) ||
         kind == static_cast<uint32_t>(MessageType::kFrame) || kind == Head::kTwoPieces;
}

// Returns the head of a block, which follows the message's head; empty if the block is in one
// piece.
std::string_view BlockHead(const Head& head, std::string_view behind) {
  return head.kind == Head::kTwoPieces ? behind : std::string_view();
}

// Copies the head to the beginning of the loan; returns the memory for the rest of the block.
std::byte* CopyHead(std::string_view block_head, const Loan& loan) {
  const auto* bytes = reinterpret_cast<const std::byte*>(block_head.data());
  return std::copy_n(bytes, block_head.size(), loan.bytes().begin());
}

}  // namespace

// --- Inside Progress() -------------------------------------------------------------

void Inbox::OnMessage(std::string_view head, absl::Span<const std::byte> data) {
  Incoming incoming;
  if (!ReadHead(head, incoming.head)) return;
  head.remove_prefix(sizeof(Head));
  incoming.state = Incoming::kReady;
  if (HasBlock(incoming.head.kind)) {
    const std::shared_ptr<Link> link = links_.Find(incoming.head);
    if (link == nullptr) return;
    const std::string_view block_head = BlockHead(incoming.head, head);
    if (!block_head.empty()) incoming.head.kind = static_cast<uint32_t>(MessageType::kElement);
    incoming.bytes = block_head.size() + data.size();
    incoming.status = link->Admit(incoming.head.kind, incoming.bytes);
    if (incoming.status.ok()) {
      absl::StatusOr<Loan> loan = link->Room(incoming.bytes);
      incoming.status = loan.status();
      if (loan.ok()) {
        std::byte* const body = CopyHead(block_head, *loan);
        CopyCounted(body, data.data(), data.size());
        incoming.loan = *std::move(loan);
      }
    }
  } else if (!data.empty()) {
    const size_t most =
        incoming.head.kind == Head::kGreeting ? kMaxGreetingBytes : size_t{kMaxControlBytes};
    if (data.size() > most) return;
    if (incoming.head.kind == Head::kGreeting && head.size() >= sizeof incoming.greeting_flags)
      std::memcpy(&incoming.greeting_flags, head.data(), sizeof incoming.greeting_flags);
    incoming.long_text.assign(reinterpret_cast<const char*>(data.data()), data.size());
  } else {
    if (head.size() > kMaxInlineText) return;
    incoming.text_bytes = static_cast<uint32_t>(head.size());
    std::copy(head.begin(), head.end(), incoming.inline_text.begin());
  }
  arrived_.Push(std::move(incoming));
}

bool Inbox::OnOffered(std::string_view head, size_t bytes, Offered offered) {
  Incoming incoming;
  if (!ReadHead(head, incoming.head) || !HasBlock(incoming.head.kind)) return false;
  head.remove_prefix(sizeof(Head));
  incoming.long_text = BlockHead(incoming.head, head);
  incoming.bytes = incoming.long_text.size() + bytes;
  incoming.offered = offered;
  arrived_.Push(std::move(incoming));
  return true;
}

void Inbox::Fetching::OnDone(const absl::Status& its) {
  status = its;
  inbox.fetched_.Push(this);
}

// --- After Progress() ----------------------------------------------------------------

bool Inbox::HandleFetched() {
  const bool found = !fetched_.empty();
  while (!fetched_.empty()) Fetched(*fetched_.Pop());
  return found;
}

void Inbox::Sort(Incoming incoming) {
  const std::shared_ptr<Link> link = links_.Find(incoming.head);
  const uint64_t ahead = link == nullptr ? 0 : incoming.head.sequence - link->arrived_;
  const bool again = link != nullptr && ahead < link->waiting_.size() &&
                     link->waiting_[ahead].state != Incoming::kMissing;
  if (link == nullptr || ahead > kMostWaiting || again) {
    if (incoming.offered != nullptr) active_.worker->Release(incoming.offered);
    if (link != nullptr) {
      peers_.FailLater(link->peer_,
                       absl::DataLossError("messages arrived twice or too far out of order"));
    }
    return;
  }
  if (link->arrived_ == 0) peers_.NoteAnswer(link->peer_);
  if (ahead == 0 && link->waiting_.empty() && incoming.state == Incoming::kReady) {
    ++link->arrived_;
    return link->OnIncoming(std::move(incoming));
  }
  while (link->waiting_.size() <= ahead) link->waiting_.Push({});
  Incoming& place = link->waiting_[ahead];
  place = std::move(incoming);
  if (place.offered != nullptr) Fetch(*link, place);
  Deliver(link);
}

void Inbox::Fetch(Link& link, Incoming& incoming) {
  const Offered offered = std::exchange(incoming.offered, nullptr);
  const std::string block_head = std::exchange(incoming.long_text, {});
  const size_t body_bytes = incoming.bytes - block_head.size();
  if (!block_head.empty()) incoming.head.kind = static_cast<uint32_t>(MessageType::kElement);
  incoming.state = Incoming::kReady;
  incoming.status = link.Admit(incoming.head.kind, incoming.bytes);
  std::optional<DevicePlace> place;
  if (incoming.status.ok() && !block_head.empty())
    place = link.RoomOnDevice(block_head.size(), body_bytes);
  absl::StatusOr<Loan> loan = place.has_value()      ? std::move(place->loan)
                              : incoming.status.ok() ? link.Room(incoming.bytes)
                                                     : absl::StatusOr<Loan>(incoming.status);
  if (!loan.ok()) {
    incoming.status = loan.status();
    return active_.worker->Release(offered);
  }
  if (idle_.empty()) {
    fetchings_.push_back(std::make_unique<Fetching>(*this));
    idle_.push_back(fetchings_.back().get());
  }
  Fetching& fetching = *idle_.back();
  idle_.pop_back();
  fetching.peer = link.peer_;
  fetching.head = incoming.head;
  fetching.loan = *std::move(loan);
  fetching.place = std::move(place);
  fetching.active = true;
  fetching.deadline = Clock::now() + kFetchTimeout;
  active_.LookBy(fetching.deadline);
  incoming.state = Incoming::kFetching;
  ++active_.under_way;
  absl::Span<std::byte> into(CopyHead(block_head, fetching.loan), body_bytes);
  MemoryType type = MemoryType::kHost;
  Handle handle = nullptr;
  if (fetching.place.has_value()) {
    incoming.on_device = body_bytes;
    incoming.bytes = block_head.size();
    into = fetching.place->body;
    type = MemoryType::kCuda;
    handle = GpuPlacesOf(*fetching.place).handle();
  } else {
    handle = active_.resources.memory->Find(into);
  }
  absl::StatusOr<bool> done = false;
  const auto receive = [&] {
    done = active_.worker->Receive(offered, into, type, handle, fetching);
    return absl::OkStatus();
  };
  if (fetching.place.has_value()) {
    const absl::Status called = GpuPlacesOf(*fetching.place).WithContext(receive);
    if (!called.ok()) {  // the receive was not begun
      active_.worker->Release(offered);
      done = called;
    }
  } else {
    receive().IgnoreError();
  }
  if (!done.ok() || *done) fetching.OnDone(done.status());
}

void Inbox::Fetched(Fetching& fetching) {
  --active_.under_way;
  fetching.active = false;
  Loan loan = std::move(fetching.loan);
  std::optional<DevicePlace> place = std::exchange(fetching.place, std::nullopt);
  const Head head = fetching.head;
  const absl::Status status = fetching.status;
  idle_.push_back(&fetching);
  // A receive that fails because its peer is lost says nothing about the device.
  if (place.has_value() && (status.ok() || peers_.IsOpen(fetching.peer))) place->OnReceived(status);
  if (!status.ok()) return peers_.FailReceive(fetching.peer, status, std::move(loan));
  const std::shared_ptr<Link> link = links_.Find(head);
  if (link == nullptr) return;
  Incoming& incoming = link->waiting_[head.sequence - link->arrived_];
  // Flushes after the receive is complete and before the device may read.
  if (place.has_value() && GpuPlacesOf(*place).flush()) incoming.status = place->FlushWrites();
  incoming.loan = std::move(loan);
  incoming.state = Incoming::kReady;
  Deliver(link);
}

void Inbox::Deliver(const std::shared_ptr<Link>& link) {
  while (link->number_ != 0 && !link->waiting_.empty() &&
         link->waiting_.front().state == Incoming::kReady) {
    ++link->arrived_;
    link->OnIncoming(link->waiting_.Pop());
  }
}

void Inbox::FailLateFetches(Clock::time_point now) {
  for (const std::unique_ptr<Fetching>& fetching : fetchings_) {
    if (!fetching->active) continue;
    if (fetching->deadline <= now) {
      fetching->deadline = Clock::time_point::max();
      unusable_ = true;
      peers_.Fail(fetching->peer, absl::DeadlineExceededError("an element did not arrive in time"));
    }
    active_.LookBy(fetching->deadline);
  }
}

void Inbox::ShortenFetches(Worker::Peer peer) {
  const Clock::time_point by = Clock::now() + kLastFetchTimeout;
  for (const std::unique_ptr<Fetching>& fetching : fetchings_) {
    if (!fetching->active || fetching->peer != peer) continue;
    fetching->deadline = std::min(fetching->deadline, by);
    active_.LookBy(by);
  }
}

void Inbox::ReleaseOffered() {
  while (!arrived_.empty()) {
    const Incoming incoming = arrived_.Pop();
    if (incoming.offered != nullptr) active_.worker->Release(incoming.offered);
  }
}

void Inbox::Abandon() {
  for (std::unique_ptr<Fetching>& fetching : fetchings_) fetching.release();
}

void Inbox::Clear() {
  fetched_ = {};
  fetchings_.clear();
}

}  // namespace penstock::transfer::ucx
