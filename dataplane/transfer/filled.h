// SPDX-License-Identifier: Apache-2.0
// How elements of 64 KiB and more got into memory that a worker and a client share.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)
namespace penstock::transfer {

enum class Filled : uint8_t {
  kInPlace = 0,     // made in that memory
  kNoSlot = 1,      // copied by the worker: no slot was free when the element was made
  kForAnother = 2,  // copied: made in the memory of a different client
  kElsewhere = 3,   // copied: made in the memory of a node that keeps elements, such as a cache
};
inline constexpr size_t kWaysFilled = 4;

// Returns the count of such elements over all links of this process so far
// (penstock_client_filled_total). Any thread.
int64_t FilledOfProcess(Filled how);

// Counts elements by how they got into shared memory. Any thread.
class FilledCounts {
 public:
  // Also counts the element for the process.
  void Add(Filled how);
  int64_t Of(Filled how) const {
    return counts_[static_cast<size_t>(how)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<int64_t>, kWaysFilled> counts_{};
};

}  // namespace penstock::transfer
#pragma GCC visibility pop
