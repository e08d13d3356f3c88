// SPDX-License-Identifier: Apache-2.0
// The client's side of one partition. A value; one thread at a time.
#pragma once

#include <optional>

#include "control/protocol/messages.h"
#include "control/protocol/rules.h"

namespace penstock::protocol {

enum class ReceiveResult : uint8_t {
  kAccepted,      // hand it to the reader
  kOldPlacement,  // drop it: the partition moved, its index comes again elsewhere
  kAlreadyHere,   // drop it: this client has it
};

class Receiver {
 public:
  // `delivered`: what the state that the process took up contains.
  explicit Receiver(PartitionId partition, IndexSet delivered = {}, Broken broken = Broken::kNone);

  PartitionId partition() const { return partition_; }
  Placement lowest() const { return lowest_; }  // accepted
  const IndexSet& delivered() const { return delivered_; }
  const IndexSet& received() const { return received_; }  // not delivered yet
  const IndexSet& handed() const { return handed_; }      // of received()

  // --- Elements ---

  ReceiveResult OnElement(Placement placement, Index index);
  // Nodes behind Distribute have it now, and have not given it on: it is this client's as long as
  // it lives, and nobody else's; it is not delivered yet. REQUIRES: received() has it.
  void OnHanded(Index index);
  // The outermost Next() returned it. REQUIRES: received() has it.
  void OnDelivered(Index index);
  // Delivered or received: for a worker whose earlier link broke.
  IndexSet AllIndices() const;

  // --- The dispatcher ---

  // Sets the lowest placement accepted and says what is here; both in one step,
  // with no element received in between. Send the answer even if it says nothing
  // new. An older fence than the lowest is answered for the lowest.
  // `returns`, of received() and not of handed(), is given back in the same step: it comes again
  // under this placement or a later one, to anybody. Nothing is given back to a fence that does not
  // raise the lowest.
  Report OnFence(Placement placement, const IndexSet& returns = {});
  // From Welcome.
  void OnWelcome(Placement placement);
  // What was not reported since the client last connected; nullopt: nothing.
  // The caller sends what it gets.
  std::optional<Report> News();
  // What was received and not reported yet, and nothing else; after OnConnected() all goes
  // first; nullopt: nothing did.
  std::optional<Report> ReceivedNews();
  // The stream to the dispatcher is new: everything is news again, and at least
  // one report is owed.
  void OnConnected();

 private:
  Report TakeReport();

  PartitionId partition_;
  Broken broken_;
  bool owes_report_ = true;
  bool whole_ = false;  // nothing was reported on the present stream yet
  Placement lowest_{1};
  IndexSet delivered_;
  IndexSet received_;
  IndexSet handed_;
  IndexSet unreported_delivered_;  // of delivered_
  IndexSet unreported_received_;   // of received_
  IndexSet unreported_handed_;     // of handed_
};

}  // namespace penstock::protocol
