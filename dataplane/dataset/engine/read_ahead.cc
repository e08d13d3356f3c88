// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/engine/read_ahead.h"

#include <algorithm>

#include "dataplane/memory/usable_memory.h"

namespace penstock {
namespace {

constexpr int64_t kRound = 32;  // elements
// If the depth falls short this often in a round, the cause is neither the first element nor a
// single slow element.
constexpr int kOften = 3;

}  // namespace

ReadAheadBudget& ReadAheadBudget::OfProcess() {
  static ReadAheadBudget& budget = *new ReadAheadBudget(UsableMemory() / 4);
  return budget;  // outlives every static that may use it
}

bool ReadAheadBudget::Claim(int64_t bytes) {
  int64_t claimed = this->claimed();
  do {
    if (bytes > 0 && bytes > limit() - claimed) return false;
  } while (!claimed_.compare_exchange_weak(claimed, claimed + bytes, std::memory_order_relaxed));
  if (within_ == nullptr || within_->Claim(bytes)) return true;
  claimed_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

ReadAhead::ReadAhead(ReadAheadBudget& budget, int64_t least, int64_t most)
    : budget_(budget), least_(least), most_(std::max(least, most)), depth_(least) {}

ReadAhead::~ReadAhead() {
  budget_.Claim(-claimed_);
}

void ReadAhead::Gave(int64_t bytes) {
  if (most_ == least_) return;
  mean_bytes_ = mean_bytes_ == 0 ? bytes : mean_bytes_ + (bytes - mean_bytes_) / 8;
  if (++given_ % kRound == 0) fell_short_ = 0;
  const int64_t depth = this->depth();
  if (depth == least_) return;
  // Elements may have grown since the depth was chosen.
  if (Claim(depth) && !budget_.exceeded()) return;
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
  if (!budget_.Claim(wanted - claimed_)) return false;
  claimed_ = wanted;
  return true;
}

}  // namespace penstock
