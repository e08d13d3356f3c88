// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "bench/interrupt.h"
#include "bench/limits.h"
#include "bench/measure.h"

namespace penstock::bench {
namespace {

constexpr uint64_t kSlots = 4;

class FillLimit final : public Side {
 public:
  explicit FillLimit(const Load& load)
      : load_(load), source_(load.source_bytes), roles_{{"limit", {::getpid()}}} {
    for (auto& slot : slots_) slot.resize(load.element_bytes);
  }

  std::string name() const override { return "fill1"; }
  const Roles& roles() const override { return roles_; }

  absl::StatusOr<Done> Read(double seconds) override {
    std::atomic<uint64_t> filled{number_}, read{number_};
    std::atomic<bool> stop{false};
    const uint64_t first = number_;
    std::thread filler([&] {
      for (uint64_t n = first; !stop; ++n) {
        while (n - read.load(std::memory_order_acquire) >= kSlots && !stop)
          std::this_thread::yield();
        source_.Fill(slots_[n % kSlots], n);
        filled.store(n + 1, std::memory_order_release);
      }
    });
    const double start = Now();
    double now = start;
    bool right = true;
    while (right && !Interrupted() && now < start + seconds) {
      while (filled.load(std::memory_order_acquire) <= number_) std::this_thread::yield();
      const std::vector<std::byte>& slot = slots_[number_ % kSlots];
      sum_ += SumOf(slot, load_.touch);
      right = IsStamped(slot, number_);
      read.store(++number_, std::memory_order_release);
      now = Now();
    }
    stop = true;
    filler.join();
    if (!right) return absl::DataLossError("fill1 read an element that was not due");
    const uint64_t elements = number_ - first;
    return Done{.seconds = now - start,
                .elements = static_cast<double>(elements),
                .bytes = static_cast<int64_t>(elements) * load_.element_bytes};
  }

 private:
  const Load load_;
  Source source_;
  Roles roles_;
  uint64_t number_ = 0;
  uint64_t sum_ = 0;
  std::vector<std::byte> slots_[kSlots];
};

}  // namespace

absl::StatusOr<std::unique_ptr<Side>> MakeFillLimit(const Load& load) {
  return std::make_unique<FillLimit>(load);
}

}  // namespace penstock::bench
