// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/read_ahead.h"

#include <unistd.h>

#include <algorithm>

namespace penstock {
namespace {

constexpr int64_t kRound = 32;  // elements
// Falling short so often in a round is no accident of the first or a single slow element.
constexpr int kOften = 3;

}  // namespace

ReadAheadBudget& ReadAheadBudget::OfProcess() {
  static ReadAheadBudget& budget = *new ReadAheadBudget(
      static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) / 4 * ::sysconf(_SC_PAGESIZE));
  return budget;  // outlives every static that may use it
}

ReadAhead::ReadAhead(ReadAheadBudget& budget, int64_t least, int64_t most)
    : budget_(budget), least_(least), most_(std::max(least, most)), depth_(least) {}

ReadAhead::~ReadAhead() {
  budget_.claimed_.fetch_sub(claimed_, std::memory_order_relaxed);
}

void ReadAhead::Gave(int64_t bytes) {
  if (most_ == least_) return;
  mean_bytes_ = mean_bytes_ == 0 ? bytes : mean_bytes_ + (bytes - mean_bytes_) / 8;
  if (++given_ % kRound == 0) fell_short_ = 0;
  const int64_t depth = this->depth();
  if (depth == least_) return;
  // Elements may have grown since the depth was chosen.
  if (Claim(depth) && budget_.claimed() <= budget_.limit()) return;
  const int64_t less = std::max(least_, depth / 2);
  depth_.store(less, std::memory_order_relaxed);
  Claim(less);
}

void ReadAhead::FellShort() {
  if (most_ == least_ || ++fell_short_ < kOften) return;
  fell_short_ = 0;
  const int64_t more = std::min(most_, depth() * 2);
  if (Claim(more)) depth_.store(more, std::memory_order_relaxed);
}

bool ReadAhead::Claim(int64_t depth) {
  const int64_t wanted = (depth - least_) * mean_bytes_;
  const int64_t extra = wanted - claimed_;
  if (extra > 0 && budget_.claimed() + extra > budget_.limit()) return false;
  budget_.claimed_.fetch_add(extra, std::memory_order_relaxed);
  claimed_ = wanted;
  return true;
}

}  // namespace penstock
