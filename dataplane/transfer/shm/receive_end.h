// SPDX-License-Identifier: Apache-2.0
// The client's end of a shm link. Elements are read in the memory where the worker wrote or keeps
// them: only their heads are copied, so that a head cannot change after its check. Frames, errors
// and elements with large heads are copied out, and their slots are returned.
//
// kReceived goes into the ring just before the event. From the event on, the reader may overwrite
// the element, and the worker must no longer treat the element as in doubt, even if this process
// ends at that moment.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/transfer/gate.h"
#include "dataplane/transfer/shm/channel.h"
#include "dataplane/transfer/shm/loop.h"
#include "dataplane/transfer/shm/receive_slots.h"
#include "dataplane/transfer/shm/socket.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer::shm {

class ReceiveEnd : public Loop::Member, public std::enable_shared_from_this<ReceiveEnd> {
 public:
  ReceiveEnd(Loop& loop, std::string address, DialOptions options,
             std::shared_ptr<ReceiveEvents> events);
  // Connects to the socket with that name and sends the hello, or calls OnClosed.
  void Dial(std::string_view name);

  // Any thread:
  void Grant(Credits credits);
  void Recall();
  void Close();  // no event runs after it

  // On the serving thread of the loop:
  bool Poll(Loop::Nanoseconds now) override;
  void OnSocket() override;
  void OnPeerEnd() override;
  void SetSleeps(bool sleeps) override { channel_->SetSleeps(sleeps); }
  Loop::Nanoseconds deadline() const override { return open_ ? Loop::kNever : open_by_; }
  bool over() const override { return over_; }
  void OnDropped() override;

 private:
  absl::Status Connect(std::string_view name);

  // On the serving thread:
  absl::Status HandlePacket(Packet packet);
  absl::Status MakeSegment(const Packet& need);
  absl::Status MapShared(Packet packet);
  bool ReadRing(int words);
  absl::Status HandleWord(uint64_t word);
  absl::Status ReceiveElement(ReceiveSlots& slots, const SlotWord& word);
  absl::Status ReceiveBlock(const SlotWord& word);
  absl::Status ReceiveFrame(const SlotWord& word);
  absl::Status ReceiveError(const SlotWord& word);
  absl::Status Receive(Element element);
  absl::Status Check(const Element& element) const;
  // Copies an object that begins with a `Prefix`; `bytes_of` reads the object's size from it.
  template <class Prefix, class BytesOf>
  absl::StatusOr<absl::Span<std::byte>> CopyOut(const SlotWord& word, size_t max_bytes,
                                                BytesOf bytes_of, Loan& loan);
  // Sets the reason for the end, which is reported once the ring is empty.
  void EndWith(const absl::Status& reason);
  void End();

  Loop& loop_;
  const std::string address_;
  const DialOptions options_;
  Pool& pool_;
  const Loop::Nanoseconds open_by_;
  PacketSocket socket_;
  Descriptor pidfd_;
  std::shared_ptr<Channel> channel_;      // nullptr if no worker was found
  std::shared_ptr<ReceiveSlots> slots_;   // of this client's segments
  std::shared_ptr<ReceiveSlots> shared_;  // of the worker's segments

  Gate gate_;                        // around events, and around use of the pool
  std::atomic<bool> closed_{false};  // by this client
  std::atomic<bool> over_{false};

  // Used by the serving thread only.
  std::shared_ptr<ReceiveEvents> events_;
  bool open_ = false;
  bool corrupt_ = false;  // the ring is no longer read
  std::optional<absl::Status> ending_;
  std::vector<Element> frame_elements_;  // of the current frame; empty between two events
};

}  // namespace penstock::transfer::shm
