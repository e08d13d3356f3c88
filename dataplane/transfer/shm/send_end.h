// SPDX-License-Identifier: Apache-2.0
// The worker's end of a shm link.
//
// Sending moves an element into a slot of the client, unless it was made there or in a SharedPool
// that the client reads, and puts a word into the ring. The sending thread does this, or the
// serving thread if the element had to wait for a slot. Only one thread at a time does so, which
// keeps the order. A message waits in a SendQueue until it has been received; small elements are
// packed there. A frame that is not full waits until it has been open for 1 to 2 ms, or until
// Flush().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "control/sync/mutex.h"
#include "dataplane/transfer/send_queue.h"
#include "dataplane/transfer/shm/channel.h"
#include "dataplane/transfer/shm/loop.h"
#include "dataplane/transfer/shm/send_shared.h"
#include "dataplane/transfer/shm/send_slots.h"
#include "dataplane/transfer/shm/socket.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer {

inline constexpr uint64_t kShmVersion = 2;

class SendEnd : public Loop::Member, public std::enable_shared_from_this<SendEnd> {
 public:
  // `accept` is called at most once, on the serving thread.
  SendEnd(Loop& loop, PacketSocket socket, Listener::Accept accept);
  void Join();  // starts the link

  // Any thread:
  const Hello& hello() const { return hello_; }  // constant once accepted
  int64_t credits() const;
  absl::Status Send(Sent&& sent);
  void Flush();
  void Close(const absl::Status& reason);
  // Ends the link now, for a client that does not read.
  void Break();
  const std::shared_ptr<SendSlots>& slots() const { return slots_; }

  // On the serving thread of the loop:
  bool Poll(Loop::Nanoseconds now) override;
  void OnSocket() override;
  void OnPeerEnd() override;
  void SetSleeps(bool sleeps) override;
  Loop::Nanoseconds deadline() const override;
  bool over() const override { return over_; }
  void OnDropped() override;

  // Set before Join(). Called after OnClosed has returned, or if no client was admitted.
  std::function<void()> on_over;

 private:
  // The room that a message takes in a slot, and the kind of word that announces it.
  struct Room {
    WordKind kind = WordKind::kBlock;
    size_t bytes = 0;         // in the body's place
    uint32_t head_bytes = 0;  // before the body
  };
  // A message taken from the queue, with a slot once one was found.
  struct PendingMessage {
    SendQueue::OutgoingMessage message;
    Room room;
    std::optional<SharedPool::Place> shared;  // in a segment for several readers
    std::optional<SlotWord> in_place;         // it was made there; the slot is now the client's
    std::optional<SendSlots::Place> place;    // otherwise a slot to copy into
  };

  static Room RoomFor(const SendQueue::OutgoingMessage& message);

  // On the serving thread:
  absl::Status HandlePacket(Packet packet);
  absl::Status HandleGreeting(Packet packet);
  absl::Status LetIn(Packet packet);
  absl::StatusOr<Hello> ReadGreeting(Packet packet);
  bool ReadRing();
  // Counts of words that need not be handled one by one.
  struct PendingCounts {
    int64_t received = 0;
    int64_t granted = 0;
    bool returned = false;  // slots
  };
  absl::Status HandleWord(uint64_t word, PendingCounts& pending);
  // Reports the counts to the worker.
  absl::Status Settle(PendingCounts& pending);
  absl::Status OnReturnedShared(const SlotWord& word);
  void FlushFrame(Loop::Nanoseconds now);
  void SendReason(const absl::Status& reason);
  void SendClosed(Loop::Nanoseconds now);
  void DrainRing();
  void MoveOut(Sent& sent) const;  // copies it out of the client's memory
  void Finish();
  void Fail(const absl::Status& status);

  bool HasNext() const REQUIRES(mu_) { return next_.has_value() || !queue_.empty(); }
  // Pump() and Announce() release the lock while they copy.
  void Pump() REQUIRES(mu_);
  uint64_t Announce(const PendingMessage& next) REQUIRES(mu_);
  // Returns false if no slot is free or the client is still mapping its segment. Otherwise call
  // Announce().
  bool FindSlot(PendingMessage& next) REQUIRES(mu_);
  // Asks for `more` slots; 0: for as many as may be in transit.
  void Ask(const Room& room, uint64_t more = 0) REQUIRES(mu_);
  void AskFor(const Room& room, uint64_t slots) REQUIRES(mu_);
  void AskForMissed(const Sent& sent) REQUIRES(mu_);

  Loop& loop_;
  PacketSocket socket_;
  Descriptor pidfd_;
  Listener::Accept accept_;
  const Loop::Nanoseconds greeting_deadline_;
  const std::shared_ptr<SendSlots> slots_ = std::make_shared<SendSlots>();
  std::shared_ptr<Channel> channel_;  // set by the greeting

  // Used by the serving thread only.
  bool sleeps_ = false;
  Hello hello_;
  std::shared_ptr<SendEvents> events_;
  std::vector<Acknowledged> received_;  // reported by words that were read together
  bool accepted_ = false;
  bool closed_sent_ = false;
  Loop::Nanoseconds end_by_ = Loop::kNever;

  std::atomic<bool> over_{false};
  std::atomic<bool> gone_{false};     // the client or the link is gone, so nothing more is sent
  std::atomic<bool> closing_{false};  // queue_ is closed, to be reported to the client
  std::atomic<bool> waits_for_slot_{false};  // next_ waits for one
  std::atomic<Loop::Nanoseconds> flush_at_{Loop::kNever};

  mutable Mutex mu_;
  SendQueue queue_ GUARDED_BY(mu_);
  std::optional<PendingMessage> next_ GUARDED_BY(mu_);  // not announced yet
  bool pumping_ GUARDED_BY(mu_) = false;                // a thread is in Pump()
  // Slots that the client was asked for but has not made yet. It may make fewer at a time.
  struct Asked {
    Room room;
    uint64_t slots = 0;
    size_t most_bytes = 0;  // of the next segment
  };
  std::optional<Asked> asked_ GUARDED_BY(mu_);
  uint64_t most_credits_ GUARDED_BY(mu_) = 0;  // the most that the client has had at a time
  std::map<size_t, int> asks_on_miss_ GUARDED_BY(mu_);  // by bytes of a body
  uint64_t flush_frame_ GUARDED_BY(mu_) = 0;            // the frame that flush_at_ is for
  SendShared shared_ GUARDED_BY(mu_);
};

}  // namespace penstock::transfer
