// SPDX-License-Identifier: Apache-2.0
// The client's side of one partition. A value; used by one thread at a time.
#pragma once

#include <optional>

#include "control/protocol/messages.h"
#include "control/protocol/rules.h"

namespace penstock::protocol {

enum class ReceiveResult : uint8_t {
  kAccepted,      // pass the element on to the reader
  kOldPlacement,  // drop the element: the partition moved; the index is sent again
  kAlreadyHere,   // drop the element: this client already has it
};

// Where a partition is, as far as a client knows: it may have moved since.
struct KnownPlacement {
  Placement placement;
  bool assigned = false;  // to a worker
};

// Returns whether a client may forget that a worker may not know of elements that the client
// received under `placement` (rule 5): under a later placement that is assigned, every reader
// refuses what the worker could send again.
inline bool MayForgetReceives(Placement placement, const KnownPlacement& known,
                              Broken broken = Broken::kNone) {
  return broken == Broken::kForgetUnplaced || (known.assigned && known.placement > placement);
}

class Receiver {
 public:
  // `delivered`: the elements of the partition in the state from which the process resumed.
  explicit Receiver(PartitionId partition, IndexSet delivered = {}, Broken broken = Broken::kNone);

  PartitionId partition() const { return partition_; }
  Placement lowest() const { return lowest_; }  // the lowest placement accepted
  const IndexSet& delivered() const { return delivered_; }
  const IndexSet& received() const { return received_; }  // not delivered yet
  const IndexSet& handed() const { return handed_; }      // of received()

  // --- Elements ---

  ReceiveResult OnElement(Placement placement, Index index);
  // Nodes after Distribute hold the element and have not passed it on. The element belongs to this
  // client while the client lives, but is not delivered yet. REQUIRES: received() has the index.
  void OnHanded(Index index);
  // The outermost Next() returned the element. REQUIRES: received() has the index.
  void OnDelivered(Index index);
  // Returns the delivered and received indices, for a worker whose earlier link broke.
  IndexSet AllIndices() const;

  // --- The dispatcher ---

  // Sets the lowest accepted placement and returns a report of all elements, in one step, so that
  // no element is received in between. Send the report even if it contains nothing new. A fence
  // below the lowest placement is answered for the lowest placement. `returns`, a part of
  // received() outside handed(), is given back in the same step: these elements are sent again,
  // under this placement or a later one, to any reader. If the fence does not raise the lowest
  // placement, nothing is given back.
  Report OnFence(Placement placement, const IndexSet& returns = {});
  // Sets the lowest accepted placement to the one in Welcome.
  void OnWelcome(Placement placement);
  // Returns all changes that have not been reported since the client last connected; nullopt if
  // there are none. The caller must send the report.
  std::optional<Report> News();
  // Returns only received elements that have not been reported yet; nullopt if there are none. But
  // the first call after OnConnected() returns all changes, as News() does.
  std::optional<Report> ReceivedNews();
  // The client has a new stream to the dispatcher. All elements count as unreported again, and at
  // least one report is owed.
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
