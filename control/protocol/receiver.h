// SPDX-License-Identifier: Apache-2.0
// The client's side of one partition. A value; one thread at a time.
#pragma once

#include <optional>

#include "control/protocol/messages.h"
#include "control/protocol/rules.h"

namespace penstock::protocol {

enum class ReceiveResult : uint8_t {
  kAccepted,      // hand it to the reader
  kOldPlacement,  // drop it: the partition moved; the index is sent again
  kAlreadyHere,   // drop it: this client has it
};

class Receiver {
 public:
  // `delivered`: the content of the state that the process took up.
  explicit Receiver(PartitionId partition, IndexSet delivered = {}, Broken broken = Broken::kNone);

  PartitionId partition() const { return partition_; }
  Placement lowest() const { return lowest_; }  // the lowest accepted
  const IndexSet& delivered() const { return delivered_; }
  const IndexSet& received() const { return received_; }  // not delivered yet
  const IndexSet& handed() const { return handed_; }      // of received()

  // --- Elements ---

  ReceiveResult OnElement(Placement placement, Index index);
  // Nodes after Distribute have the element and have not passed it on. It belongs to this client as
  // long as it lives, and is not delivered yet. REQUIRES: received() has it.
  void OnHanded(Index index);
  // The outermost Next() returned the element. REQUIRES: received() has it.
  void OnDelivered(Index index);
  // Returns the delivered and received indices, for a worker whose earlier link broke.
  IndexSet AllIndices() const;

  // --- The dispatcher ---

  // Sets the lowest accepted placement and reports all elements, in one step, with no element
  // received in between. Send the answer even if it contains nothing new. A fence below the lowest
  // placement is answered for the lowest. `returns`, a part of received() outside handed(), is
  // given back in the same step: it is sent again, under this placement or a later one, to any
  // reader. A fence that does not raise the lowest placement gets nothing back.
  Report OnFence(Placement placement, const IndexSet& returns = {});
  // Takes the placement from Welcome.
  void OnWelcome(Placement placement);
  // Returns everything not yet reported since the client last connected; nullopt: nothing. The
  // caller must send it.
  std::optional<Report> News();
  // Returns only received elements that are not reported yet; nullopt: none. After OnConnected()
  // the first call returns everything.
  std::optional<Report> ReceivedNews();
  // The stream to the dispatcher is new: everything counts as unreported again, and at least one
  // report is owed.
  void OnConnected();

 private:
  Report TakeReport();

  PartitionId partition_;
  Broken broken_;
  bool owes_report_ = true;
  bool whole_ = false;  // nothing has been reported on the present stream
  Placement lowest_{1};
  IndexSet delivered_;
  IndexSet received_;
  IndexSet handed_;
  IndexSet unreported_delivered_;  // of delivered_
  IndexSet unreported_received_;   // of received_
  IndexSet unreported_handed_;     // of handed_
};

}  // namespace penstock::protocol
