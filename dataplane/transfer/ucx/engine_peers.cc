// SPDX-License-Identifier: Apache-2.0
// Connects peers, handles their failures, and sends to them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "control/observe/event_log.h"
#include "dataplane/element/block.h"
#include "dataplane/transfer/ucx/address.h"
#include "dataplane/transfer/ucx/engine_work.h"
#include "dataplane/transfer/ucx/lanes_used.h"
#include "include/status_macros.h"

namespace penstock::transfer::ucx {
namespace {

// A receiver gives up on an announced element after 60 s; until then it may read the element.
constexpr std::chrono::seconds kHoldTime(61);
// Replaces UCX's own timeout, which must never expire (module/fabric.cc).
constexpr std::chrono::seconds kAnswerTimeout(30);
// How often ports are checked while the engine is busy; while it sleeps, kMaxSleep applies. UCX
// handles shorter failures.
constexpr std::chrono::milliseconds kPortsEvery(100);
// The time limit for elements that were in transit when the last link to a worker was destroyed.
constexpr std::chrono::seconds kLastFetchTimeout(5);

bool Belongs(Lanes lanes, std::string_view transport) {
  switch (lanes) {
    case Lanes::kRdma:
      return transport.starts_with("rc_") || transport.starts_with("dc_") ||
             transport.starts_with("ud_");
    case Lanes::kTcp:
      return transport == "tcp";
    case Lanes::kAny:
      break;
  }
  return true;
}

}  // namespace

void Engine::Peer::OnDone(const absl::Status&) {
  engine.closed_.push_back(number);
}

absl::StatusOr<Worker::Peer> Engine::PeerAt(const std::string& name, std::string_view address) {
  if (const auto found = open_.find(name); found != open_.end()) return found->second;
  // If all ports are down, a peer that connects could not be closed (MayClose).
  if (ports_.AllAreDown()) return absl::UnavailableError("no RDMA port of this machine is up");
  ASSIGN_OR_RETURN(const Worker::Peer number, worker_->Connect(address));
  auto peer = std::make_unique<Peer>(*this);
  peer->number = number;
  peer->name = name;
  peer->lanes = worker_->LanesOf(number);
  peer->connection = ++last_connection_;
  peer->answer_by = Clock::now() + kAnswerTimeout;
  next_deadline_ = std::min(next_deadline_, peer->answer_by);
  Peer& its = *peers_.emplace(number, std::move(peer)).first->second;
  if (absl::Status lanes = CheckLanes(its); !lanes.ok()) {
    Close(its);
    return lanes;
  }
  NoteLanes(its.lanes);
  open_.emplace(name, number);
  return number;
}

absl::Status Engine::CheckLanes(const Peer& peer) const {
  const bool fit = !peer.lanes.empty() &&
                   std::all_of(peer.lanes.begin(), peer.lanes.end(), [&](const Worker::Lane& lane) {
                     return Belongs(lanes_, lane.transport);
                   });
  if (!fit) {
    auto transport = [](std::string* out, const Worker::Lane& lane) { *out += lane.transport; };
    return absl::FailedPreconditionError(absl::StrCat(
        "UCX would use ",
        peer.lanes.empty() ? "unknown lanes" : absl::StrJoin(peer.lanes, ", ", transport),
        ", but ucx_lanes is '", std::string(NameOf(lanes_)),
        "'; unset UCX_TLS and PENSTOCK_UCX_TLS"));
  }
  for (const Worker::Lane& lane : peer.lanes) {
    if (!ports_.IsDown(lane.device)) continue;
    return absl::UnavailableError(absl::StrCat("the port ", lane.device, " is down"));
  }
  return absl::OkStatus();
}

bool Engine::MayClose(const Peer& peer) const {
  return peer.answered || resources_.fabric.closes_unanswered();
}

void Engine::Close(Peer& peer) {
  if (std::exchange(peer.closing, true) || !MayClose(peer)) return;
  if (worker_->Close(peer.number, peer)) closed_.push_back(peer.number);
}

void Engine::FailUnanswered(Clock::time_point now) {
  for (const auto& [number, peer] : peers_) {
    if (peer->answered || peer->closing) continue;
    if (peer->answer_by <= now) {
      Fail(number, absl::UnavailableError("it does not answer"));
    } else {
      next_deadline_ = std::min(next_deadline_, peer->answer_by);
    }
  }
}

void Engine::LookAtPorts(Clock::time_point now) {
  if (ports_.none() || now < next_look_at_ports_) return;
  next_look_at_ports_ = now + kPortsEvery;
  for (const Ports::Change& change : ports_.Look()) {
    std::vector<Worker::Peer> behind;
    for (const auto& [number, peer] : peers_) {
      const bool uses = std::any_of(peer->lanes.begin(), peer->lanes.end(),
                                    [&](const auto& lane) { return lane.device == change.port; });
      if (uses && !peer->closing && !change.active) behind.push_back(number);
    }
    StderrEventLog()->Write({change.active ? "port_up" : "port_down",
                             {{"port", change.port},
                              {"reason", change.reason},
                              {"peers_closed", absl::StrCat(behind.size())}}});
    for (const Worker::Peer number : behind) Fail(number, absl::UnavailableError(change.reason));
  }
}

void Engine::Fail(Worker::Peer number, const absl::Status& status) {
  const auto found = peers_.find(number);
  if (found == peers_.end() || found->second->closing) return;
  open_.erase(found->second->name);
  Close(*found->second);
  std::vector<std::shared_ptr<Link>> lost;
  for (const auto& [key, link] : links_) {
    if (link->peer_ == number) lost.push_back(link);
  }
  for (const std::shared_ptr<Link>& link : lost) {
    if (link->number_ != 0) link->OnLost(status);
  }
}

void Engine::Attach(const std::shared_ptr<Link>& link, Key key, Worker::Peer peer) {
  link->dialler_ = key.first;
  link->number_ = key.second;
  link->peer_ = peer;
  links_.emplace(key, link);
}

absl::Status Engine::Dial(const std::shared_ptr<Link>& link, std::string_view address,
                          std::string_view hello, uint32_t greeting_flags) {
  ASSIGN_OR_RETURN(const std::string bytes, DecodeAddress(address));
  ASSIGN_OR_RETURN(const Worker::Peer peer, PeerAt(std::string(address), bytes));
  Attach(link, {number_, ++last_link_}, peer);
  Sending& sending = NewSending(*link, Head::kGreeting);
  sending.text = Encode(
      Greeting{.connection = peers_.at(peer)->connection, .address = address_, .hello = hello});
  if (greeting_flags != 0) {
    std::memcpy(sending.head.data() + sizeof(Head), &greeting_flags, sizeof greeting_flags);
    sending.head_bytes += sizeof greeting_flags;
  }
  Post(sending, {});
  return absl::OkStatus();
}

void Engine::Remove(Link& link) {
  const uint64_t number = std::exchange(link.number_, 0);
  if (number == 0) return;
  link.waiting_ = {};
  link.deadline_ = Clock::time_point::max();
  const auto found = links_.find({link.dialler_, number});
  const std::shared_ptr<Link> last = found->second;
  links_.erase(found);
  for (const auto& [key, other] : links_) {
    if (other->peer_ == link.peer_) return;
  }
  const Clock::time_point by = Clock::now() + kLastFetchTimeout;
  for (const std::unique_ptr<Fetching>& fetching : fetchings_) {
    if (!fetching->active || fetching->peer != link.peer_) continue;
    fetching->deadline = std::min(fetching->deadline, by);
    next_deadline_ = std::min(next_deadline_, by);
  }
}

// --- Sending -----------------------------------------------------------------------

Engine::Sending& Engine::NewSending(Link& link, uint32_t kind) {
  if (idle_sendings_.empty()) {
    sendings_.push_back(std::make_unique<Sending>(*this));
    idle_sendings_.push_back(sendings_.back().get());
  }
  Sending& sending = *idle_sendings_.back();
  idle_sendings_.pop_back();
  const Head head{
      .kind = kind, .dialler = link.dialler_, .link = link.number_, .sequence = link.sent_++};
  std::memcpy(sending.head.data(), &head, sizeof head);
  sending.head_bytes = sizeof head;
  sending.peer = link.peer_;
  return sending;
}

void Engine::Send(Link& link, std::string_view text) {
  if (link.number_ == 0) return;
  Sending& sending = NewSending(link, Head::kText);
  if (text.size() <= kMaxInlineText) {
    std::memcpy(sending.head.data() + sizeof(Head), text.data(), text.size());
    sending.head_bytes += text.size();
  } else {
    sending.text = text;
  }
  Post(sending, {});
}

void Engine::Send(Link& link, MessageType type, absl::Span<const std::byte> block, Loan loan) {
  if (link.number_ == 0) return;
  Worker::Message message;
  message.data = block;
  size_t head_bytes = 0;
  if (link.two_pieces_ && type == MessageType::kElement) {
    head_bytes = PrefixOf(block.data()).head_bytes;
    const bool fits = sizeof(Head) + head_bytes <= worker_->max_head_bytes();
    if (!fits || block.size() - head_bytes < kAnnounceFrom) head_bytes = 0;
  }
  Sending& sending =
      NewSending(link, head_bytes > 0 ? Head::kTwoPieces : static_cast<uint32_t>(type));
  if (head_bytes > 0) {
    sending.long_head.assign(sending.head.data(), sizeof(Head));
    sending.long_head.append(reinterpret_cast<const char*>(block.data()), head_bytes);
    message.data.remove_prefix(head_bytes);
  }
  sending.loan = std::move(loan);
  message.announce = block.size() >= kAnnounceFrom;
  if (message.announce) message.handle = resources_.memory->Find(message.data);
  Post(sending, message);
}

void Engine::SendBroken(Link& link) {
  if (link.number_ != 0) Post(NewSending(link, Head::kBroken), {});
}

void Engine::Post(Sending& sending, Worker::Message message) {
  message.head = sending.long_head.empty()
                     ? std::string_view(sending.head.data(), sending.head_bytes)
                     : std::string_view(sending.long_head);
  if (!sending.text.empty()) {
    message.data = {reinterpret_cast<const std::byte*>(sending.text.data()), sending.text.size()};
  }
  sending.announced = message.announce;
  ++under_way_;
  const auto peer = peers_.find(sending.peer);
  if (peer == peers_.end() || peer->second->closing) {
    return sending.OnDone(absl::CancelledError("the peer is gone"));
  }
  const absl::StatusOr<bool> done = worker_->Send(sending.peer, message, sending);
  if (!done.ok() || *done) sending.OnDone(done.status());
}

void Engine::Sending::OnDone(const absl::Status& status) {
  --engine.under_way_;
  if (!status.ok()) {
    engine.failed_.emplace_back(peer, status);
    if (announced) {
      engine.held_.push_back({std::move(loan), Clock::now() + kHoldTime});
      engine.next_deadline_ = std::min(engine.next_deadline_, engine.held_.back().until);
    }
  }
  loan = Loan();
  text.clear();
  long_head.clear();
  engine.idle_sendings_.push_back(this);
}

}  // namespace penstock::transfer::ucx
