// SPDX-License-Identifier: Apache-2.0
// A limit of two threads: one fills 4 slots, the other reads them.
#pragma once

#include <unistd.h>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/interrupt.h"
#include "bench/measure.h"
#include "bench/side.h"

namespace penstock::bench {

// The work of the two threads on element `number`. Fill() and Take() run at the same time, each in
// its own thread. The first error of either ends the window.
template <class T>
concept SlotWork = requires(T work, std::span<std::byte> slot, uint64_t number) {
  { work.Fill(slot, number) } -> std::same_as<absl::Status>;
  { work.Take(slot, number) } -> std::same_as<absl::Status>;
};

template <SlotWork Work>
class SlotLimit final : public Side {
 public:
  SlotLimit(std::string name, int64_t element_bytes, Work work)
      : name_(std::move(name)), work_(std::move(work)), roles_{{"limit", {::getpid()}}} {
    for (auto& slot : slots_) slot.resize(element_bytes);
  }

  std::string name() const override { return name_; }
  const Roles& roles() const override { return roles_; }

  absl::StatusOr<Done> Read(double seconds) override {
    std::atomic<bool> stop{false}, failed{false};
    absl::Status filling, taking;
    const uint64_t first = taken_;
    const double start = Now();
    std::thread filler([&] {
      for (uint64_t n = filled_; !stop && filling.ok();) {
        if (n - taken_.load(std::memory_order_acquire) >= kSlots) {
          std::this_thread::yield();
          continue;
        }
        filling = work_.Fill(slots_[n % kSlots], n);
        if (filling.ok()) filled_.store(++n, std::memory_order_release);
      }
      failed = !filling.ok();
    });
    uint64_t n = first;
    do {  // at least one element, however late the filler starts
      while (filled_.load(std::memory_order_acquire) <= n && !failed) std::this_thread::yield();
      if (failed) break;
      taking = work_.Take(slots_[n % kSlots], n);
      taken_.store(++n, std::memory_order_release);
    } while (taking.ok() && !Interrupted() && Now() < start + seconds);
    stop = true;
    filler.join();  // its last element belongs to the next window, but its time to this one
    if (!filling.ok()) return filling;
    if (!taking.ok()) return taking;
    const uint64_t elements = n - first;
    return Done{.seconds = Now() - start,
                .elements = static_cast<double>(elements),
                .bytes = static_cast<int64_t>(elements * slots_[0].size())};
  }

 private:
  static constexpr uint64_t kSlots = 4;

  const std::string name_;
  Work work_;
  const Roles roles_;
  std::atomic<uint64_t> filled_{0}, taken_{0};  // elements
  std::vector<std::byte> slots_[kSlots];
};

}  // namespace penstock::bench
