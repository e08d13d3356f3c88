// SPDX-License-Identifier: Apache-2.0
// Slots of this process's own (SharedPool) as one link tells its client of them:
// which segments the client has mapped, and which slots it has. A slot that it has
// is kept by a loan until the client gave it back, or, once the link is over, until
// it has let go of all of them or is dead.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dataplane/memory/descriptor.h"
#include "dataplane/memory/shared_pool.h"
#include "dataplane/transfer/shm/loop.h"
#include "dataplane/transfer/shm/socket.h"
#include "dataplane/transfer/shm/word.h"
#include "penstock/loan.h"

namespace penstock::transfer {

// Not thread-safe.
class SendShared {
 public:
  // The client answers kShared. Nothing goes this way before.
  void Allow() { wanted_ = true; }

  enum class Way {
    kWord,   // GiveAway()
    kLater,  // the client is mapping the segment: ask again behind OnMapped()
    kCopy,   // through a slot of the client's: it maps none, has that slot already, or has as
             // many bytes of such slots as a reader may hold (SharedPool)
  };
  // How an element goes there; tells the client of a segment it does not know.
  Way WayFor(const SharedPool::Place& place, const PacketSocket& socket);
  // The word that lends the slot to the client, which `loan` keeps. REQUIRES: kWord.
  SlotWord GiveAway(const SharedPool::Place& place, Loan loan);

  // The client's answer to a kShared. If it says no, why is an event
  // ("shared_segment_refused"). DataLoss if it was not asked.
  absl::Status OnMapped(const Packet& packet);
  // The client has given it back; what kept it. DataLoss if the client has not got it,
  // or not from now.
  absl::StatusOr<Loan> OnReturned(const SlotWord& word);

  // The link is over. What keeps the slots that the client has, to be served by the loop
  // until the client lets go or, as `peer` (its pidfd) tells, is dead.
  void HandOver(Loop& loop, const Descriptor& peer);

 private:
  struct Shown {
    Loan loan;  // while the client has it
    uint32_t generation = 0;
  };
  struct Known {
    std::shared_ptr<const SharedPool::Segment> segment;
    std::unique_ptr<Shown[]> slots;
    bool mapped = false;
  };
  using KnownPtr = std::map<uint32_t, Known>::iterator;

  KnownPtr Find(const SharedPool::Segment& segment);
  absl::Status Announce(const SharedPool::Place& place, const PacketSocket& socket);
  void Refuse(const absl::Status& why);

  bool wanted_ = false;
  std::map<uint32_t, Known> segments_;  // by the number they have on this link
  int64_t bytes_at_client_ = 0;
  Descriptor hold_;    // readable when the client has let go of all,
  Descriptor theirs_;  // by shutting this down, which each kShared carries
};

}  // namespace penstock::transfer
