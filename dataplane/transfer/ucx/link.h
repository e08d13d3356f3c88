// SPDX-License-Identifier: Apache-2.0
// One end of a link as its engine sees it, and the messages that arrive for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dataplane/memory/device/gpu_direct_pool.h"
#include "dataplane/transfer/fifo.h"
#include "dataplane/transfer/ucx/active_worker.h"
#include "dataplane/transfer/ucx/call_queue.h"
#include "dataplane/transfer/ucx/fabric.h"
#include "dataplane/transfer/ucx/wire.h"
#include "penstock/loan.h"

namespace penstock::transfer::ucx {

// One message that has arrived for a link.
struct Incoming {
  Head head;
  uint32_t text_bytes = 0;
  std::array<char, kMaxInlineText> inline_text;
  std::string long_text;        // or a block's head, until the block is fetched
  uint32_t greeting_flags = 0;  // the client's requests (wire.h)
  Loan loan;  // has the block in its first `bytes`; with `on_device` only its head
  size_t bytes = 0;
  // Bytes of the body on a device; nullopt: the body is in the loan.
  std::optional<size_t> on_device;
  absl::Status status;  // the reason if the block is missing
  Offered offered = nullptr;
  enum { kMissing, kFetching, kReady } state = kMissing;

  std::string_view text() const {
    return long_text.empty() ? std::string_view(inline_text.data(), text_bytes) : long_text;
  }
};

// All methods are called on the engine's thread.
class Link : public std::enable_shared_from_this<Link> {
 public:
  using Key = std::pair<uint64_t, uint64_t>;  // dialler and number

  virtual ~Link() = default;

  // Admit() returns OK if the link accepts such a block. Room() then returns a slot for it. For
  // small blocks, these two methods are called inside Progress().
  virtual absl::Status Admit(uint32_t kind, size_t bytes) = 0;
  virtual absl::StatusOr<Loan> Room(size_t bytes) = 0;
  // Returns a place on a device for an announced body; nullopt: the body is received in Room(),
  // after its head.
  virtual std::optional<DevicePlace> RoomOnDevice(size_t /*head_bytes*/, size_t /*body_bytes*/) {
    return std::nullopt;
  }
  // Called in the order of sending.
  virtual void OnIncoming(Incoming incoming) = 0;
  virtual void OnCall() = 0;
  virtual void OnDeadline() = 0;
  // The peer is lost: nothing more is received or sent.
  virtual void OnLost(const absl::Status& reason) = 0;

 private:
  friend class CallQueue;
  friend class Engine;
  friend class Inbox;
  friend class LinkTable;
  friend class Outbox;

  uint64_t number_ = 0;  // 0: not attached
  uint64_t dialler_ = 0;
  Worker::Peer peer_ = 0;
  uint64_t sent_ = 0;     // number of messages
  uint64_t arrived_ = 0;  // number of messages received in order
  Fifo<Incoming> waiting_;
  bool two_pieces_ = false;  // the other end wants elements in two pieces
  Clock::time_point deadline_ = Clock::time_point::max();
  bool called_ GUARDED_BY(&CallQueue::mu_) = false;
};

}  // namespace penstock::transfer::ucx
