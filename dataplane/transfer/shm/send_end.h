// SPDX-License-Identifier: Apache-2.0
// The worker's end of a shm link.
//
// Sending moves an element into a slot of the client, if it was not made there or
// in a SharedPool that the client reads, and puts a word into the ring: on the thread that sends,
// or by whoever serves the loop when slots had to be waited for; never on two at a time, so that
// the order stays. What is sent waits in a SendQueue until received; small elements are packed
// there. A frame that is not full waits until it was open for 1 ms at least and 2 ms at most, or
// until Flush().
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
  // `accept` is called at most once, by whoever serves.
  SendEnd(Loop& loop, PacketSocket socket, Listener::Accept accept);
  void Join();  // begins

  // Any thread:
  const Hello& hello() const { return hello_; }  // constant once accepted
  int64_t credits() const;
  absl::Status Send(Sent&& sent);
  void Flush();
  void Close(const absl::Status& reason);
  // For a client that does not read: ends the link now.
  void Break();
  const std::shared_ptr<SendSlots>& slots() const { return slots_; }

  // By whoever serves the loop:
  bool Poll(Loop::Nanoseconds now) override;
  void OnSocket() override;
  void OnPeerEnd() override;
  void SetSleeps(bool sleeps) override;
  Loop::Nanoseconds deadline() const override;
  bool over() const override { return over_; }
  void OnDropped() override;

  // Set before Join(); called when OnClosed has returned, or nobody was let in.
  std::function<void()> on_over;

 private:
  // What a message takes of a slot, and how it is announced.
  struct Room {
    WordKind kind = WordKind::kBlock;
    size_t bytes = 0;         // in the place of the body
    uint32_t head_bytes = 0;  // before it
  };
  // Taken from the queue, and with a slot once one is found.
  struct PendingMessage {
    SendQueue::OutgoingMessage message;
    Room room;
    std::optional<SharedPool::Place> shared;  // lies for several readers
    std::optional<SlotWord> in_place;         // made there, and the client's now
    std::optional<SendSlots::Place> place;    // or to be copied
  };

  static Room RoomFor(const SendQueue::OutgoingMessage& message);

  // By whoever serves:
  absl::Status HandlePacket(Packet packet);
  absl::Status HandleGreeting(Packet packet);
  absl::Status LetIn(Packet packet);
  absl::StatusOr<Hello> ReadGreeting(Packet packet);
  bool ReadRing();
  // What words said that need not be handled one by one.
  struct PendingCounts {
    int64_t received = 0;
    int64_t granted = 0;
    bool returned = false;  // slots
  };
  absl::Status HandleWord(uint64_t word, PendingCounts& pending);
  // Tells it to the worker.
  absl::Status Settle(PendingCounts& pending);
  absl::Status OnReturnedShared(const SlotWord& word);
  void FlushFrame(Loop::Nanoseconds now);
  void SendReason(const absl::Status& reason);
  void SendClosed(Loop::Nanoseconds now);
  void DrainRing();
  void MoveOut(Sent& sent) const;  // of the client's memory
  void Finish();
  void Fail(const absl::Status& status);

  bool HasNext() const REQUIRES(mu_) { return next_.has_value() || !queue_.empty(); }
  // Both let go of the lock where they copy.
  void Pump() REQUIRES(mu_);
  uint64_t Announce(const PendingMessage& next) REQUIRES(mu_);
  // False: none is free, or the client is mapping it. To be announced if not.
  bool FindSlot(PendingMessage& next) REQUIRES(mu_);
  // For `more` slots; 0: as many as may be on their way.
  void Ask(const Room& room, uint64_t more = 0) REQUIRES(mu_);
  void AskFor(const Room& room, uint64_t slots) REQUIRES(mu_);
  void AskForMissed(const Sent& sent) REQUIRES(mu_);

  Loop& loop_;
  PacketSocket socket_;
  Descriptor pidfd_;
  Listener::Accept accept_;
  const Loop::Nanoseconds greeting_deadline_;
  const std::shared_ptr<SendSlots> slots_ = std::make_shared<SendSlots>();
  std::shared_ptr<Channel> channel_;  // from the greeting on

  // Of whoever serves.
  bool sleeps_ = false;
  Hello hello_;
  std::shared_ptr<SendEvents> events_;
  std::vector<Acknowledged> received_;  // reported by words that were read together
  bool accepted_ = false;
  bool closed_sent_ = false;
  Loop::Nanoseconds end_by_ = Loop::kNever;

  std::atomic<bool> over_{false};
  std::atomic<bool> gone_{false};            // the client, or the link: nothing more is sent
  std::atomic<bool> closing_{false};         // queue_ is closed, which is to be said
  std::atomic<bool> waits_for_slot_{false};  // next_
  std::atomic<Loop::Nanoseconds> flush_at_{Loop::kNever};

  mutable Mutex mu_;
  SendQueue queue_ GUARDED_BY(mu_);
  std::optional<PendingMessage> next_ GUARDED_BY(mu_);  // not announced yet
  bool pumping_ GUARDED_BY(mu_) = false;                // a thread is at it
  // Slots that the client was asked for, and has not made yet. It may make fewer at a time.
  struct Asked {
    Room room;
    uint64_t slots = 0;
    size_t most_bytes = 0;  // that the next segment may have
  };
  std::optional<Asked> asked_ GUARDED_BY(mu_);
  uint64_t most_credits_ GUARDED_BY(mu_) = 0;           // that it had at a time
  std::map<size_t, int> asks_on_miss_ GUARDED_BY(mu_);  // by bytes of a body
  uint64_t flush_frame_ GUARDED_BY(mu_) = 0;            // what flush_at_ is about
  SendShared shared_ GUARDED_BY(mu_);
};

}  // namespace penstock::transfer
