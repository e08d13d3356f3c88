// SPDX-License-Identifier: Apache-2.0
// Elements and frames as they come from a network: checked, then handed on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer {

// Of one link. Not thread-safe but for Grant(). Keeps its memory, so that it allocates
// nothing in a steady state.
class ElementReceiver {
 public:
  ElementReceiver(Spec spec, int64_t max_element_bytes)
      : spec_(std::move(spec)), max_element_bytes_(max_element_bytes) {}

  // Any thread, before the worker is told: so many more may come.
  void Grant(int64_t count) {
    credits_.fetch_add(count, std::memory_order_relaxed);
    room_.fetch_add(count, std::memory_order_relaxed);
  }
  // So many have come, or are given back, or (1) a message with at least one is about to, for which
  // there is no room yet. DataLoss if the worker has not so many credits left.
  absl::Status Use(int64_t count);

  // For a link over several connections, over which elements begin to come before it is their turn.
  // BeginEarly(), on any thread: one begins. UseInTurn(): it is the turn of one that began so, or
  // will. Both are DataLoss if more come than there are credits for.
  absl::Status BeginEarly();
  absl::Status UseInTurn();

  // The block in the first `bytes` of the loan, or the frame, whose message was paid for by
  // Use(1). `received` is how many OnElements was given. DataLoss, behind what was good of a frame:
  // no element of the spec, above max_element_bytes, not as long as the message, or, of a frame,
  // more than there were credits for.
  absl::Status Element(Loan loan, size_t bytes, ReceiveEvents& events, int64_t& received);
  // The block whose head is all of the loan and whose body, of so many bytes, is on a device:
  // the loan is of a DevicePlace (dataplane/memory/gpu_direct_pool.h).
  absl::Status OnDevice(Loan loan, size_t body_bytes, ReceiveEvents& events, int64_t& received);
  absl::Status Frame(Loan loan, size_t bytes, ReceiveEvents& events, int64_t& received);
  // Either of them, compressed (codec.h); made whole in a slot of `pool`.
  absl::Status Compressed(const Loan& loan, size_t bytes, Pool& pool, ReceiveEvents& events,
                          int64_t& received);

 private:
  absl::Status Check(size_t block_bytes) const;

  std::atomic<int64_t> credits_{0};  // granted, and not used
  std::atomic<int64_t> room_{0};     // the same, less what began early
  const Spec spec_;
  const int64_t max_element_bytes_;
  std::vector<penstock::Element> frame_elements_;  // those of a frame; empty between two events
};

}  // namespace penstock::transfer
