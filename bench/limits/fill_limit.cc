// SPDX-License-Identifier: Apache-2.0
#include "bench/limits/limits.h"
#include "bench/limits/slot_limit.h"

namespace penstock::bench {
namespace {

class FillWork {
 public:
  explicit FillWork(const Load& load)
      : source_(std::make_unique<Source>(load.source_bytes)), touch_(load.touch) {}

  absl::Status Fill(std::span<std::byte> slot, uint64_t number) {
    source_->Fill(slot, number);
    return absl::OkStatus();
  }
  absl::Status Take(std::span<const std::byte> slot, uint64_t number) {
    sum_ += SumOf(slot, touch_);
    if (IsStamped(slot, number)) return absl::OkStatus();
    return absl::DataLossError("fill1 read an unexpected element");
  }

 private:
  std::unique_ptr<Source> source_;
  Touch touch_;
  uint64_t sum_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Side>> MakeFillLimit(const Load& load) {
  return std::make_unique<SlotLimit<FillWork>>("fill1", load.element_bytes, FillWork(load));
}

}  // namespace penstock::bench
