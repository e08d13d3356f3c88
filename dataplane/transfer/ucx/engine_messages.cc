// SPDX-License-Identifier: Apache-2.0
// Sorts incoming messages, fetches their data, and passes them on.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/memory/copied.h"
#include "dataplane/transfer/ucx/address.h"
#include "dataplane/transfer/ucx/engine_work.h"
#include "dataplane/transfer/ucx/gpu_places.h"

namespace penstock::transfer::ucx {
namespace {

// An announced element that has not arrived within this time never will. Once the last link to its
// worker ends, the limit is shorter (kLastFetchTimeout).
constexpr std::chrono::seconds kFetchTimeout(60);

// The maximum number of messages of a link that may arrive before a missing one.
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

// Copies the head to the beginning of the loan; returns the place for the rest of the block.
std::byte* CopyHead(std::string_view block_head, const Loan& loan) {
  const auto* bytes = reinterpret_cast<const std::byte*>(block_head.data());
  return std::copy_n(bytes, block_head.size(), loan.bytes().begin());
}

}  // namespace

// --- Inside Progress() -------------------------------------------------------------

void Engine::OnMessage(std::string_view head, absl::Span<const std::byte> data) {
  Incoming incoming;
  if (!ReadHead(head, incoming.head)) return;
  head.remove_prefix(sizeof(Head));
  incoming.state = Incoming::kReady;
  if (HasBlock(incoming.head.kind)) {
    const std::shared_ptr<Link> link = Find(incoming.head);
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
  inbox_.Push(std::move(incoming));
}

bool Engine::OnOffered(std::string_view head, size_t bytes, Offered offered) {
  Incoming incoming;
  if (!ReadHead(head, incoming.head) || !HasBlock(incoming.head.kind)) return false;
  head.remove_prefix(sizeof(Head));
  incoming.long_text = BlockHead(incoming.head, head);
  incoming.bytes = incoming.long_text.size() + bytes;
  incoming.offered = offered;
  inbox_.Push(std::move(incoming));
  return true;
}

void Engine::OnFailed(Worker::Peer peer, const absl::Status& status) {
  failed_.emplace_back(peer, status);
}

void Engine::Fetching::OnDone(const absl::Status& its) {
  status = its;
  engine.fetched_.Push(this);
}

// --- After Progress() ----------------------------------------------------------------

bool Engine::HandleArrived() {
  bool found = false;
  for (; !inbox_.empty(); found = true) Sort(inbox_.Pop());
  for (; !fetched_.empty(); found = true) Fetched(*fetched_.Pop());
  for (; !failed_.empty(); found = true) {
    const auto [peer, status] = std::move(failed_.back());
    failed_.pop_back();
    Fail(peer, status);
  }
  for (; !closed_.empty(); found = true) {
    peers_.erase(closed_.back());
    closed_.pop_back();
  }
  return found;
}

std::shared_ptr<Engine::Link> Engine::Find(const Head& head) const {
  const auto found = links_.find({head.dialler, head.link});
  return found == links_.end() ? nullptr : found->second;
}

void Engine::Sort(Incoming incoming) {
  if (incoming.head.kind == Head::kGreeting) return HandleGreeting(incoming);
  const std::shared_ptr<Link> link = Find(incoming.head);
  const uint64_t ahead = link == nullptr ? 0 : incoming.head.sequence - link->arrived_;
  const bool again = link != nullptr && ahead < link->waiting_.size() &&
                     link->waiting_[ahead].state != Incoming::kMissing;
  if (link == nullptr || ahead > kMostWaiting || again) {
    if (incoming.offered != nullptr) worker_->Release(incoming.offered);
    if (link != nullptr) {
      failed_.emplace_back(link->peer_,
                           absl::DataLossError("messages arrived twice or too far out of order"));
    }
    return;
  }
  if (link->arrived_ == 0) {
    if (const auto peer = peers_.find(link->peer_); peer != peers_.end()) {
      peer->second->answered = true;
    }
  }
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

void Engine::Fetch(Link& link, Incoming& incoming) {
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
    return worker_->Release(offered);
  }
  if (idle_fetchings_.empty()) {
    fetchings_.push_back(std::make_unique<Fetching>(*this));
    idle_fetchings_.push_back(fetchings_.back().get());
  }
  Fetching& fetching = *idle_fetchings_.back();
  idle_fetchings_.pop_back();
  fetching.peer = link.peer_;
  fetching.head = incoming.head;
  fetching.loan = *std::move(loan);
  fetching.place = std::move(place);
  fetching.active = true;
  fetching.deadline = Clock::now() + kFetchTimeout;
  next_deadline_ = std::min(next_deadline_, fetching.deadline);
  incoming.state = Incoming::kFetching;
  ++under_way_;
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
    handle = resources_.memory->Find(into);
  }
  absl::StatusOr<bool> done = false;
  const auto receive = [&] {
    done = worker_->Receive(offered, into, type, handle, fetching);
    return absl::OkStatus();
  };
  if (fetching.place.has_value()) {
    const absl::Status called = GpuPlacesOf(*fetching.place).WithContext(receive);
    if (!called.ok()) {  // the receive was not begun
      worker_->Release(offered);
      done = called;
    }
  } else {
    receive().IgnoreError();
  }
  if (!done.ok() || *done) fetching.OnDone(done.status());
}

void Engine::Fetched(Fetching& fetching) {
  --under_way_;
  fetching.active = false;
  Loan loan = std::move(fetching.loan);
  std::optional<DevicePlace> place = std::exchange(fetching.place, std::nullopt);
  const Head head = fetching.head;
  const absl::Status status = fetching.status;
  idle_fetchings_.push_back(&fetching);
  const auto peer = peers_.find(fetching.peer);
  const bool peer_is_lost = peer == peers_.end() || peer->second->closing;
  // A receive that fails because its peer is lost tells nothing about the device.
  if (place.has_value() && (status.ok() || !peer_is_lost)) place->OnReceived(status);
  if (!status.ok()) {
    if (peer == peers_.end()) return;
    peer->second->quarantined.push_back(std::move(loan));
    return Fail(fetching.peer, status);
  }
  const std::shared_ptr<Link> link = Find(head);
  if (link == nullptr) return;
  Incoming& incoming = link->waiting_[head.sequence - link->arrived_];
  // Flushes after the receive is complete and before the device may read.
  if (place.has_value() && GpuPlacesOf(*place).flush()) incoming.status = place->FlushWrites();
  incoming.loan = std::move(loan);
  incoming.state = Incoming::kReady;
  Deliver(link);
}

void Engine::Deliver(const std::shared_ptr<Link>& link) {
  while (link->number_ != 0 && !link->waiting_.empty() &&
         link->waiting_.front().state == Incoming::kReady) {
    ++link->arrived_;
    link->OnIncoming(link->waiting_.Pop());
  }
}

void Engine::HandleGreeting(const Incoming& incoming) {
  const std::optional<Greeting> greeting = DecodeGreeting(incoming.text());
  const Key key(incoming.head.dialler, incoming.head.link);
  if (!greeting.has_value() || link_factory_ == nullptr || key.second == 0 || links_.contains(key))
    return;
  std::vector<Worker::Peer> gone;
  for (const auto& [number, peer] : peers_) {
    if (peer->dialler != key.first || peer->closing) continue;
    if (peer->connection > greeting->connection) return;
    if (peer->connection < greeting->connection) gone.push_back(number);
  }
  for (Worker::Peer peer : gone) {
    Fail(peer, absl::UnavailableError("the client has opened a newer connection"));
  }
  const absl::StatusOr<std::string> address = DecodeAddress(greeting->address);
  if (!address.ok()) return;
  const absl::StatusOr<Worker::Peer> peer =
      PeerAt(absl::StrCat(key.first, "/", greeting->connection), *address);
  if (!peer.ok()) return;
  peers_.at(*peer)->dialler = key.first;
  peers_.at(*peer)->answered = true;
  peers_.at(*peer)->connection = greeting->connection;
  const std::shared_ptr<Link> link = link_factory_();
  if (link == nullptr) return;
  Attach(link, key, *peer);
  link->arrived_ = 1;
  link->two_pieces_ = (incoming.greeting_flags & kWantsTwoPieces) != 0;
  Incoming hello;
  hello.state = Incoming::kReady;
  hello.long_text = std::string(greeting->hello);
  link->OnIncoming(std::move(hello));
}

}  // namespace penstock::transfer::ucx
