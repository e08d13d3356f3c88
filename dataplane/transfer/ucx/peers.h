// SPDX-License-Identifier: Apache-2.0
// The worker objects at the other ends of an engine's links: connecting to them, checking their
// lanes and ports, and closing them. Used on the engine's thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dataplane/transfer/ucx/active_worker.h"
#include "dataplane/transfer/ucx/link_table.h"
#include "dataplane/transfer/ucx/ports.h"
#include "dataplane/transfer/ucx/settings.h"

namespace penstock::transfer::ucx {

class Peers {
 public:
  Peers(ActiveWorker& active, Lanes lanes, LinkTable& links);

  // Returns the open peer called `name`, or connects to the worker object at `address` (bytes, for
  // UCX).
  absl::StatusOr<Worker::Peer> At(const std::string& name, std::string_view address);
  // Returns the peer that sent a greeting. Fails the dialler's older connections; returns an error
  // if the greeting is from an older connection.
  absl::StatusOr<Worker::Peer> Accept(uint64_t dialler, const Greeting& greeting);
  // Returns the number of the peer's connection, as counted by the dialler.
  uint64_t ConnectionOf(Worker::Peer peer) const { return peers_.at(peer)->connection; }
  // Returns false once the peer has failed or is closed: nothing more is sent to it then.
  bool IsOpen(Worker::Peer peer) const;
  // Call this when a message from the peer has arrived.
  void NoteAnswer(Worker::Peer peer);

  // Closes the peer, and tells its links that the peer is lost.
  void Fail(Worker::Peer peer, const absl::Status& status);
  // Call this when a receive from the peer has failed. Fails the peer, and keeps the slot until the
  // peer is closed.
  void FailReceive(Worker::Peer peer, const absl::Status& status, Loan slot);
  // Inside Progress(): fails the peer in HandleEnded().
  void FailLater(Worker::Peer peer, const absl::Status& status);
  // After Progress(). Returns false if no peer has failed or been closed.
  bool HandleEnded();
  // Fails the peers that did not answer in time.
  void FailUnanswered(Clock::time_point now);
  // Fails the peers whose ports have gone down.
  void LookAtPorts(Clock::time_point now);

  // Begins to close all peers; returns the number of peers that UCX can close.
  size_t BeginClosingAll();
  // The number of all peers, and the number of peers that have been closed since HandleEnded().
  size_t size() const { return peers_.size(); }
  size_t closed() const { return closed_.size(); }
  // Releases the peers' slots. Call this after the worker object has been destroyed.
  void Clear() { peers_.clear(); }

 private:
  struct Peer final : Work {
    explicit Peer(std::vector<Worker::Peer>& its) : closed(its) {}
    void OnDone(const absl::Status&) override { closed.push_back(number); }

    std::vector<Worker::Peer>& closed;
    Worker::Peer number = 0;
    std::string name;
    std::vector<Worker::Lane> lanes;
    uint64_t dialler = 0;     // set for a peer that sent a greeting
    uint64_t connection = 0;  // the dialler's count of connections
    bool answered = false;    // a message from it has arrived
    Clock::time_point answer_by;
    bool closing = false;
    std::vector<Loan> quarantined;  // kept until the peer is closed
  };

  absl::Status CheckLanes(const Peer& peer) const;
  // Stops sending to the peer. Closes the peer if UCX can close it; otherwise the peer stays until
  // the engine's end.
  void Close(Peer& peer);
  bool MayClose(const Peer& peer) const;

  ActiveWorker& active_;
  const Lanes lanes_;
  LinkTable& links_;
  Ports ports_;  // none if the lanes are not RDMA
  Clock::time_point next_look_at_ports_;
  uint64_t last_connection_ = 0;
  std::map<Worker::Peer, std::unique_ptr<Peer>> peers_;
  std::map<std::string, Worker::Peer> open_;  // by name
  // Noted inside Progress(), handled after it.
  std::vector<std::pair<Worker::Peer, absl::Status>> failed_;
  std::vector<Worker::Peer> closed_;
};

}  // namespace penstock::transfer::ucx
