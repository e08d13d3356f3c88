// SPDX-License-Identifier: Apache-2.0
// The worker's end of a shm link: handles the greeting, the client's words and packets, and the end
// of the link. A SlotSender sends.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "dataplane/transfer/link_versions.h"
#include "dataplane/transfer/shm/channel.h"
#include "dataplane/transfer/shm/loop.h"
#include "dataplane/transfer/shm/slot_sender.h"
#include "dataplane/transfer/shm/socket.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer::shm {

// The versions of packets, words and rings that this release reads and writes.
inline constexpr LinkVersions kShmVersions = {.lowest = 2, .highest = 2};

class SendEnd : public Loop::Member, public std::enable_shared_from_this<SendEnd> {
 public:
  // `accept` is called at most once, on the serving thread.
  SendEnd(Loop& loop, PacketSocket socket, Listener::Accept accept);
  void Join();  // starts the link

  // Any thread:
  const Hello& hello() const { return hello_; }  // constant once accepted
  // Serving thread.
  bool awaits_greeting() const { return !accepted_ && !sender_.gone(); }
  int64_t credits() const { return sender_.credits(); }
  absl::Status Send(Sent&& sent);
  void Flush();
  void Close(const absl::Status& reason);
  // Ends the link immediately; for a client that does not read.
  void Break();
  const std::shared_ptr<SendSlots>& slots() const { return sender_.slots(); }

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
  // On the serving thread:
  absl::Status HandlePacket(Packet packet);
  absl::Status HandleGreeting(Packet packet);
  absl::Status LetIn(Packet packet);
  absl::StatusOr<Hello> ReadGreeting(Packet packet);
  bool ReadRing();
  absl::Status HandleWord(uint64_t word, SlotSender::Counts& pending);
  // Reports the counts to the worker.
  absl::Status Settle(SlotSender::Counts& pending);
  void SendReason(const absl::Status& reason);
  void SendClosed(Loop::Nanoseconds now);
  void DrainRing();
  void Finish();
  void Fail(const absl::Status& status);

  Loop& loop_;
  PacketSocket socket_;
  Descriptor pidfd_;
  Listener::Accept accept_;
  const Loop::Nanoseconds greeting_deadline_;
  std::shared_ptr<Channel> channel_;  // set by the greeting
  bool reads_shared_ = false;         // set by the greeting
  SlotSender sender_;

  // Used by the serving thread only.
  bool sleeps_ = false;
  Hello hello_;
  std::shared_ptr<SendEvents> events_;
  std::vector<Acknowledged> received_;  // reported by words that were read together
  bool accepted_ = false;
  bool closed_sent_ = false;
  Loop::Nanoseconds end_by_ = Loop::kNever;

  std::atomic<bool> over_{false};
  std::atomic<bool> closing_{false};  // the sender is closed, to be reported to the client
};

}  // namespace penstock::transfer::shm
