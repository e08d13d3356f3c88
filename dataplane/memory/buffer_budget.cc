// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/buffer_budget.h"

#include <algorithm>

#include "control/sync/mutex.h"

namespace penstock {
namespace {

constexpr int64_t kMostAhead = int64_t{16} << 20;  // bytes that an account takes in advance
constexpr int64_t kMostUnused = int64_t{1} << 20;  // bytes that an account may have in advance

}  // namespace

bool BufferBudget::HasRoomForOptional(int64_t bytes) const {
  return taken() + bytes <= bytes_ / 4 * 3 &&
         (whole_ == nullptr || whole_->HasRoomForOptional(bytes));
}

const BufferBudget& BufferBudget::Refusing(int64_t held, int64_t bytes) const {
  return whole_ == nullptr || !Allows(taken(), held, bytes) ? *this : *whole_;
}

bool BufferBudget::Take(int64_t held, int64_t bytes) {
  if (!TakeOfThis(held, bytes)) return false;
  if (whole_ == nullptr || whole_->Take(held, bytes)) return true;
  taken_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

bool BufferBudget::TakeOfThis(int64_t held, int64_t bytes) {
  int64_t taken = this->taken();
  do {
    if (!Allows(taken, held, bytes)) return false;
  } while (!taken_.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
  return true;
}

bool BufferBudget::Allows(int64_t taken, int64_t held, int64_t bytes) const {
  const int64_t left = bytes_ - taken - bytes;
  return left >= 0 && (held + bytes) / kMostOfRest <= left;
}

void BufferBudget::Return(int64_t bytes) {
  taken_.fetch_sub(bytes, std::memory_order_relaxed);
  if (whole_ != nullptr) whole_->Return(bytes);
}

bool BufferAccount::Add(int64_t bytes) {
  while (!AddWithinTaken(bytes)) {
    MutexLock lock(mu_);
    const int64_t taken = taken_.load(std::memory_order_relaxed);
    const int64_t lacking = used() + bytes - taken;
    if (lacking <= 0) continue;
    int64_t more = lacking + std::min(taken / 8, kMostAhead);
    if (!budget_.Take(taken, more)) {
      more = lacking;
      if (!budget_.Take(taken, more)) return false;
    }
    taken_.store(taken + more, std::memory_order_relaxed);
  }
  return true;
}

bool BufferAccount::AddWithinTaken(int64_t bytes) {
  int64_t used = this->used();
  do {
    if (used + bytes > taken_.load(std::memory_order_relaxed)) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

void BufferAccount::Subtract(int64_t bytes) {
  const int64_t used = used_.fetch_sub(bytes, std::memory_order_relaxed) - bytes;
  if (used == 0 || taken_.load(std::memory_order_relaxed) > 2 * used + kMostUnused) ReturnIdle();
}

void BufferAccount::ReturnIdle() {
  MutexLock lock(mu_);
  const int64_t taken = taken_.load(std::memory_order_relaxed);
  const int64_t used = this->used();
  const int64_t idle = taken - used - (used == 0 ? 0 : kMostUnused / 2);
  if (idle <= 0) return;
  taken_.store(taken - idle, std::memory_order_relaxed);
  budget_.Return(idle);
}

bool BufferAccount::AddSlot(const void* slot, int64_t bytes, int64_t overhead) {
  MutexLock lock(slots_mu_);
  const auto found = slots_.find(slot);
  if (!Add(found == slots_.end() ? bytes + overhead : overhead)) return false;
  if (found == slots_.end()) {
    slots_[slot] = {1, bytes};
  } else {
    ++found->second.holders;
  }
  return true;
}

void BufferAccount::SubtractSlot(const void* slot, int64_t overhead) {
  MutexLock lock(slots_mu_);
  const auto found = slots_.find(slot);
  const bool last = --found->second.holders == 0;
  Subtract(overhead + (last ? found->second.bytes : 0));
  if (last) slots_.erase(found);
}

}  // namespace penstock
