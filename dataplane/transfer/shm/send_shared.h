// SPDX-License-Identifier: Apache-2.0
// The slots of this process's own SharedPool that one link offers to its client: the segments that
// the client has mapped, and the slots that the client has. A loan keeps such a slot until the
// client has returned the slot or, after the link's end, until the client has released all of its
// slots or is dead.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/env/descriptor.h"
#include "dataplane/memory/shared_pool.h"
#include "dataplane/transfer/shm/loop.h"
#include "dataplane/transfer/shm/socket.h"
#include "dataplane/transfer/shm/word.h"
#include "penstock/loan.h"

namespace penstock::transfer::shm {

// Not thread-safe.
class SendShared {
 public:
  // Call this if the client can answer kShared. Until then every element is copied.
  void Allow() { wanted_ = true; }

  enum class Way {
    kWord,   // send the word that GiveAway() returns
    kLater,  // the client is mapping the segment: ask again after OnMapped()
    kCopy,   // copy into a slot of the client, because the client maps no segments, has that slot
             // already, or has as many bytes of such slots as a reader may hold (SharedPool)
  };
  // Returns the way in which to send an element to the client. Announces a segment that is new to
  // the client.
  Way WayFor(const SharedPool::Place& place, const PacketSocket& socket);
  // Returns the word that lends the slot to the client; `loan` keeps the slot. REQUIRES: WayFor()
  // was kWord.
  SlotWord GiveAway(const SharedPool::Place& place, Loan loan);

  // Handles the client's answer to a kShared. A refusal is logged with its reason
  // ("shared_segment_refused"). DataLoss if the client was not asked.
  absl::Status OnMapped(const Packet& packet);
  // Returns the loan of a slot that the client has given back. DataLoss if the client does not have
  // the slot, or if the generation differs.
  absl::StatusOr<Loan> OnReturned(const SlotWord& word);

  // Called at the link's end. The loop then keeps the slots that the client has, until the client
  // releases them or `peer` (the client's pidfd) reports the client's death.
  void HandOver(Loop& loop, const Descriptor& peer);

 private:
  struct Shown {
    Loan loan;  // kept while the client has the slot
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
  std::map<uint32_t, Known> segments_;  // by their number on this link
  int64_t bytes_at_client_ = 0;
  Descriptor hold_;    // readable once the client has released all slots
  Descriptor theirs_;  // the other end: sent with each kShared, shut down by the client
};

}  // namespace penstock::transfer::shm
