// SPDX-License-Identifier: Apache-2.0
// Checks elements and frames that arrive from a network and passes them on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "dataplane/transfer/transport.h"

#pragma GCC visibility push(default)
namespace penstock::transfer {

// The receiver of one link. Not thread-safe except for Grant() and BeginEarly(). Reuses its memory,
// so that it allocates nothing in a steady state.
class ElementReceiver {
 public:
  ElementReceiver(Spec spec, int64_t max_element_bytes)
      : spec_(std::move(spec)), max_element_bytes_(max_element_bytes) {}

  // Allows `count` more elements. Any thread; call it before the worker learns of the credits.
  void Grant(int64_t count) {
    credits_.fetch_add(count, std::memory_order_relaxed);
    room_.fetch_add(count, std::memory_order_relaxed);
  }
  // Uses `count` credits. Call this for credits that were returned. Call it with a count of 1 for
  // each error that has arrived, and for each message of elements before taking memory for the
  // message. DataLoss if the worker has fewer than `count` credits left.
  absl::Status Use(int64_t count);

  // These two methods are for a link over several connections, where an element may begin to arrive
  // before its turn. Call BeginEarly(), on any thread, when such an element begins to arrive, and
  // UseInTurn() when the turn of such an element comes, even if the element has not begun to
  // arrive. Both methods return DataLoss if more elements arrive than there are credits.
  absl::Status BeginEarly();
  absl::Status UseInTurn();

  // Element() checks the block in the first `bytes` bytes of the loan; Frame() checks the frame
  // there. Both methods pass the elements to OnElements. Call Use(1) for the message first.
  // `received` is set to the number of elements passed. DataLoss if an element does not fit the
  // spec, is larger than max_element_bytes, or is not as long as the message. DataLoss too if a
  // frame has more elements than there are credits. Before an error, the valid elements that
  // precede the fault in a frame are passed.
  absl::Status Element(Loan loan, size_t bytes, ReceiveEvents& events, int64_t& received);
  // Does the same for a block whose head fills the loan, and whose body of `body_bytes` bytes is on
  // a device. The loan belongs to a DevicePlace (dataplane/memory/device/gpu_direct_pool.h).
  absl::Status OnDevice(Loan loan, size_t body_bytes, ReceiveEvents& events, int64_t& received);
  absl::Status Frame(Loan loan, size_t bytes, ReceiveEvents& events, int64_t& received);
  // Decompresses a block or a frame (codec.h) into a slot of `pool` and continues as above.
  absl::Status Compressed(const Loan& loan, size_t bytes, Pool& pool, ReceiveEvents& events,
                          int64_t& received);

 private:
  absl::Status Check(size_t block_bytes) const;

  std::atomic<int64_t> credits_{0};  // granted but not used
  std::atomic<int64_t> room_{0};     // same as credits_, minus elements that began early
  const Spec spec_;
  const int64_t max_element_bytes_;
  std::vector<penstock::Element> frame_elements_;  // of the current frame; empty between two events
};

}  // namespace penstock::transfer
#pragma GCC visibility pop
