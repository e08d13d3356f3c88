// SPDX-License-Identifier: Apache-2.0
// A placed partition's way to the clients that read its iteration.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "control/protocol/sender.h"
#include "control/protocol/session_messages.h"
#include "dataplane/transfer/transport.h"
#include "dataplane/worker/permits.h"

namespace penstock::worker {

class Outlet;

// What a placed partition sends, and to whom.
struct LaneOptions {
  control::PlacedPartition of;
  IndexSet skip;    // not to be sent
  Index first = 0;  // where production begins
  std::vector<control::Reader> readers;
  Permit* permit = nullptr;  // given up in waits; used only inside Send(), End() and Linger()
};

// A placed partition's way out. Send(), Pass(), End() and Linger() are for its
// runner's thread, the rest for any.
class Lane {
 public:
  // Use Outlet::Open.
  Lane(std::shared_ptr<Outlet> outlet, const LaneOptions& options);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  const control::PlacedPartition& of() const { return of_; }

  // Sends an element or an error that stands in its place, with its identity,
  // to a reader with a credit; waits for one, with the permit given up. Before
  // it goes what must be sent again. Cancelled.
  absl::Status Send(transfer::Sent sent);
  // `index` was produced and is not to be sent, nor is any before it.
  void Pass(Index index);
  // Everything was produced. Waits until nothing is in doubt; Ended may then be
  // said. Cancelled.
  absl::Status End(Index elements);
  // Goes on sending again what does not land, until cancelled.
  void Linger();

  // Where an element that is sent next is best made; nullptr: anywhere. Any thread.
  std::shared_ptr<Pool> NextSlots();

  // Sends to this session too, from now on.
  void AddReader(const control::Reader& reader);
  // Sends nothing more; ends all waits.
  void Cancel();

 private:
  friend class Outlet;
  transfer::Sent TakeAgainLocked();  // REQUIRES: !again_.empty()
  bool Serves(const control::Reader& reader) const;

  const std::shared_ptr<Outlet> outlet_;
  const control::PlacedPartition of_;
  Permit* const permit_;

  // Guarded by outlet_->mu_.
  protocol::Sender sender_;
  std::vector<control::Reader> readers_;
  // Sent on links that broke, by the client that alone can settle it.
  std::map<ClientId, std::vector<transfer::Sent>> in_doubt_;
  std::map<Index, transfer::Sent> again_;  // settled: did not land
  bool cancelled_ = false;
};

}  // namespace penstock::worker
