// SPDX-License-Identifier: Apache-2.0
// The messages of a shm link on their way to the client: from a SendQueue, through a slot, to a
// word in the ring.
//
// To send an element, a thread copies it into a slot of the client, unless it was made there or in
// a SharedPool that the client reads. The thread then puts a word into the ring. This thread is the
// one that calls Send(), or the serving thread if the element had to wait for a slot. Only one
// thread at a time does this, which keeps the order. A message waits in the queue until it has been
// received; small elements are packed there. A frame that is not full waits until it has been open
// for 1 to 2 ms, or until Flush().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "control/sync/mutex.h"
#include "dataplane/transfer/send_queue.h"
#include "dataplane/transfer/shm/channel.h"
#include "dataplane/transfer/shm/loop.h"
#include "dataplane/transfer/shm/send_shared.h"
#include "dataplane/transfer/shm/send_slots.h"
#include "dataplane/transfer/shm/slot_demand.h"
#include "dataplane/transfer/shm/socket.h"

namespace penstock::transfer::shm {

class SlotSender {
 public:
  // `socket` belongs to the link, and outlives this object.
  SlotSender(Loop& loop, const PacketSocket& socket);

  // Any thread:
  int64_t credits() const;
  absl::Status Send(Sent&& sent);
  void Flush();
  void Close(const absl::Status& reason);
  // Nothing more is sent: the client or the link is gone.
  void Break() { gone_ = true; }
  void Break(const absl::Status& reason);  // sets the reason, if none is set yet
  bool gone() const { return gone_; }
  const std::shared_ptr<SendSlots>& slots() const { return slots_; }

  // On the serving thread of the loop:
  // The client is admitted: begins to send. `reads_shared`: the client maps segments of this
  // process.
  void Start(std::shared_ptr<Channel> channel, bool reads_shared);
  // Sends the open frame if its time limit has passed.
  void FlushFrame(Loop::Nanoseconds now);
  // Returns the time by which FlushFrame() must be called.
  Loop::Nanoseconds flush_at() const { return flush_at_.load(std::memory_order_seq_cst); }

  // The sums of the counts in several words of the client.
  struct Counts {
    int64_t received = 0;
    int64_t granted = 0;
    bool returned = false;  // slots
  };
  // Appends to `received` the elements and errors that the client has received.
  absl::Status OnCounts(const Counts& counts, std::vector<Acknowledged>& received);
  void OnRecall();
  absl::Status OnReturnedShared(const SlotWord& word);
  // The client's answers to requests for slots, and to segments of this process.
  absl::Status OnSegment(const Packet& packet);
  absl::Status OnMapped(const Packet& packet);

  // Returns the reason given to Close() once everything before it is in the ring; else nullopt.
  std::optional<absl::Status> ClosedFor() const;
  // REQUIRES: gone(). Returns the reason for the end; nullopt while a thread is still sending,
  // which then wakes the loop.
  std::optional<absl::Status> End();
  // Returns the elements and errors that the client has not received. The loop keeps the slots of
  // this process's segments that the client has, until `peer` (the client's pidfd) reports the
  // client's death or the client releases them.
  std::vector<Sent> TakeUnconfirmed(const Descriptor& peer);

 private:
  // A message taken from the queue, and its slot once one has been found.
  struct PendingMessage {
    SendQueue::OutgoingMessage message;
    SlotRoom room;
    std::optional<SharedPool::Place> shared;  // in a segment for several readers
    std::optional<SlotWord> in_place;         // made there; the slot is now the client's
    std::optional<SendSlots::Place> place;    // otherwise a slot to copy into
  };

  static SlotRoom RoomFor(const SendQueue::OutgoingMessage& message);
  bool HasNext() const REQUIRES(mu_) { return next_.has_value() || !queue_.empty(); }
  // Pump() and Announce() release the lock while they copy.
  void Pump() REQUIRES(mu_);
  uint64_t Announce(const PendingMessage& next) REQUIRES(mu_);
  // Returns false if no slot is free, or if the client is still mapping the slot's segment.
  // Otherwise call Announce().
  bool FindSlot(PendingMessage& next) REQUIRES(mu_);

  Loop& loop_;
  const PacketSocket& socket_;
  const std::shared_ptr<SendSlots> slots_ = std::make_shared<SendSlots>();

  std::atomic<bool> gone_{false};
  std::atomic<bool> waits_for_slot_{false};  // next_ waits for a slot
  std::atomic<Loop::Nanoseconds> flush_at_{Loop::kNever};

  mutable Mutex mu_;
  std::shared_ptr<Channel> channel_ GUARDED_BY(mu_);  // from Start() on
  SendQueue queue_ GUARDED_BY(mu_);
  std::optional<PendingMessage> next_ GUARDED_BY(mu_);  // not announced yet
  bool pumping_ GUARDED_BY(mu_) = false;                // a thread is in Pump()
  uint64_t flush_frame_ GUARDED_BY(mu_) = 0;            // the frame that flush_at_ is for
  SlotDemand demand_ GUARDED_BY(mu_);
  SendShared shared_ GUARDED_BY(mu_);
};

}  // namespace penstock::transfer::shm
