// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/peers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "control/observe/event_log.h"
#include "dataplane/transfer/ucx/address.h"
#include "dataplane/transfer/ucx/lanes_used.h"
#include "include/status_macros.h"

namespace penstock::transfer::ucx {
namespace {

// How long a new peer may take to answer. Replaces UCX's own timeout, which must never expire
// (module/fabric.cc).
constexpr std::chrono::seconds kAnswerTimeout(30);
// How often ports are checked while the engine is busy; while it sleeps, kMaxSleep applies. UCX
// handles shorter failures.
constexpr std::chrono::milliseconds kPortsEvery(100);

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

Peers::Peers(ActiveWorker& active, Lanes lanes, LinkTable& links)
    : active_(active),
      lanes_(lanes),
      links_(links),
      ports_(lanes == Lanes::kTcp ? Ports({}) : Ports::OfThisMachine()) {}

absl::StatusOr<Worker::Peer> Peers::At(const std::string& name, std::string_view address) {
  if (const auto found = open_.find(name); found != open_.end()) return found->second;
  // If all ports are down, a peer that is still connecting could not be closed (MayClose).
  if (ports_.AllAreDown()) return absl::UnavailableError("no RDMA port of this machine is up");
  ASSIGN_OR_RETURN(const Worker::Peer number, active_.worker->Connect(address));
  auto peer = std::make_unique<Peer>(closed_);
  peer->number = number;
  peer->name = name;
  peer->lanes = active_.worker->LanesOf(number);
  peer->connection = ++last_connection_;
  peer->answer_by = Clock::now() + kAnswerTimeout;
  active_.LookBy(peer->answer_by);
  Peer& its = *peers_.emplace(number, std::move(peer)).first->second;
  if (absl::Status lanes = CheckLanes(its); !lanes.ok()) {
    Close(its);
    return lanes;
  }
  NoteLanes(its.lanes);
  open_.emplace(name, number);
  return number;
}

absl::StatusOr<Worker::Peer> Peers::Accept(uint64_t dialler, const Greeting& greeting) {
  std::vector<Worker::Peer> gone;
  for (const auto& [number, peer] : peers_) {
    if (peer->dialler != dialler || peer->closing) continue;
    if (peer->connection > greeting.connection) {
      return absl::FailedPreconditionError("the client has opened a newer connection");
    }
    if (peer->connection < greeting.connection) gone.push_back(number);
  }
  for (Worker::Peer peer : gone) {
    Fail(peer, absl::UnavailableError("the client has opened a newer connection"));
  }
  ASSIGN_OR_RETURN(const std::string address, DecodeAddress(greeting.address));
  ASSIGN_OR_RETURN(const Worker::Peer number,
                   At(absl::StrCat(dialler, "/", greeting.connection), address));
  Peer& peer = *peers_.at(number);
  peer.dialler = dialler;
  peer.answered = true;
  peer.connection = greeting.connection;
  return number;
}

bool Peers::IsOpen(Worker::Peer number) const {
  const auto found = peers_.find(number);
  return found != peers_.end() && !found->second->closing;
}

void Peers::NoteAnswer(Worker::Peer number) {
  if (const auto found = peers_.find(number); found != peers_.end()) found->second->answered = true;
}

absl::Status Peers::CheckLanes(const Peer& peer) const {
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

bool Peers::MayClose(const Peer& peer) const {
  return peer.answered || active_.resources.fabric.closes_unanswered();
}

void Peers::Close(Peer& peer) {
  if (std::exchange(peer.closing, true) || !MayClose(peer)) return;
  if (active_.worker->Close(peer.number, peer)) closed_.push_back(peer.number);
}

void Peers::FailUnanswered(Clock::time_point now) {
  for (const auto& [number, peer] : peers_) {
    if (peer->answered || peer->closing) continue;
    if (peer->answer_by <= now) {
      Fail(number, absl::UnavailableError("it does not answer"));
    } else {
      active_.LookBy(peer->answer_by);
    }
  }
}

void Peers::LookAtPorts(Clock::time_point now) {
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

void Peers::Fail(Worker::Peer number, const absl::Status& status) {
  const auto found = peers_.find(number);
  if (found == peers_.end() || found->second->closing) return;
  open_.erase(found->second->name);
  Close(*found->second);
  links_.Lose(number, status);
}

void Peers::FailReceive(Worker::Peer number, const absl::Status& status, Loan slot) {
  const auto found = peers_.find(number);
  if (found == peers_.end()) return;
  found->second->quarantined.push_back(std::move(slot));
  Fail(number, status);
}

void Peers::FailLater(Worker::Peer number, const absl::Status& status) {
  failed_.emplace_back(number, status);
}

bool Peers::HandleEnded() {
  bool found = false;
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

size_t Peers::BeginClosingAll() {
  size_t closing = 0;
  for (const auto& [number, peer] : peers_) {
    Close(*peer);
    closing += MayClose(*peer);
  }
  return closing;
}

}  // namespace penstock::transfer::ucx
