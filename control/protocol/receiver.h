// SPDX-License-Identifier: Apache-2.0
// The client's side of one partition. A value; one thread at a time.
#pragma once

#include <optional>

#include "control/protocol/messages.h"
#include "control/protocol/rules.h"

namespace penstock::protocol {

enum class Landing : uint8_t {
  kAccepted,      // hand it to the reader
  kOldPlacement,  // drop it: the partition moved, its index comes again elsewhere
  kAlreadyHere,   // drop it: this client has it
};

class Receiver {
 public:
  // `taken`: what the state that the process took up contains.
  explicit Receiver(PartitionId partition, IndexSet taken = {}, Broken broken = Broken::kNone);

  PartitionId partition() const { return partition_; }
  Placement lowest() const { return lowest_; }  // accepted
  const IndexSet& taken() const { return taken_; }
  const IndexSet& landed() const { return landed_; }  // not taken yet
  const IndexSet& handed() const { return handed_; }  // of landed()

  // --- Elements ---

  Landing OnElement(Placement placement, Index index);
  // Nodes behind Distribute have it now, and have not given it on: it is this client's as long as
  // it lives, and nobody else's; it is not taken yet. REQUIRES: landed() has it.
  void OnHanded(Index index);
  // The outermost Next() returned it. REQUIRES: landed() has it.
  void OnTaken(Index index);
  // Taken or landed: for a worker whose earlier link broke.
  IndexSet Has() const;

  // --- The dispatcher ---

  // Sets the lowest placement accepted and says what is here; both in one step,
  // with no element landing in between. Send the answer even if it says nothing
  // new. An older fence than the lowest is answered for the lowest.
  // `returns`, of landed() and not of handed(), is given back in the same step: it comes again
  // under this placement or a later one, to anybody. Nothing is given back to a fence that does not
  // raise the lowest.
  Report OnFence(Placement placement, const IndexSet& returns = {});
  // From Welcome.
  void OnWelcome(Placement placement);
  // What was not said since the client last presented itself; nullopt: nothing.
  // The caller sends what it gets.
  std::optional<Report> News();
  // What landed and was not said yet, and nothing else but behind OnPresented(), where all goes
  // first; nullopt: nothing did.
  std::optional<Report> LandedNews();
  // The stream to the dispatcher is new: everything is news again, and at least
  // one report is owed.
  void OnPresented();

 private:
  Report Say();

  PartitionId partition_;
  Broken broken_;
  bool owes_report_ = true;
  bool whole_ = false;  // nothing was said on the present stream yet: all is unsaid
  Placement lowest_{1};
  IndexSet taken_;
  IndexSet landed_;
  IndexSet handed_;
  IndexSet unsaid_taken_;   // of taken_
  IndexSet unsaid_landed_;  // of landed_
  IndexSet unsaid_handed_;  // of handed_
};

}  // namespace penstock::protocol
