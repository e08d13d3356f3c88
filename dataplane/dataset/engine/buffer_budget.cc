// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/engine/buffer_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/memory/catch_exhausted.h"
#include "penstock/element.h"

namespace penstock {
namespace {

constexpr int64_t kMostAtOnce = int64_t{16} << 20;  // bytes that an account takes in advance
constexpr int64_t kMayLieIdle = int64_t{1} << 20;   // bytes that an account may have in advance

int64_t BytesOf(const Element& element) {
  return element.IsShared() ? 0 : static_cast<int64_t>(element.loan().bytes().size());
}

}  // namespace

bool BufferBudget::Take(int64_t held, int64_t bytes) {
  int64_t taken = this->taken();
  do {
    const int64_t left = bytes_ - taken - bytes;
    if (left < 0 || (held + bytes) / kMostOfRest > left) return false;
  } while (!taken_.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
  return true;
}

bool BufferAccount::Add(int64_t bytes) {
  const int64_t used = used_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (used <= taken_.load(std::memory_order_relaxed) || TakeMore()) return true;
  used_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

void BufferAccount::Subtract(int64_t bytes) {
  const int64_t used = used_.fetch_sub(bytes, std::memory_order_relaxed) - bytes;
  if (taken_.load(std::memory_order_relaxed) > 2 * used + kMayLieIdle) ReturnSome();
}

bool BufferAccount::TakeMore() {
  MutexLock lock(mu_);
  const int64_t taken = taken_.load(std::memory_order_relaxed);
  const int64_t lacking = used() - taken;
  if (lacking <= 0) return true;
  const int64_t ahead = std::clamp<int64_t>(taken / 8, 0, kMostAtOnce);
  for (const int64_t more : {lacking + ahead, lacking}) {
    if (!budget_.Take(taken, more)) continue;
    taken_.store(taken + more, std::memory_order_relaxed);
    return true;
  }
  return false;
}

void BufferAccount::ReturnSome() {
  MutexLock lock(mu_);
  const int64_t taken = taken_.load(std::memory_order_relaxed);
  const int64_t idle = taken - used() - kMayLieIdle / 2;
  if (idle <= 0) return;
  taken_.store(taken - idle, std::memory_order_relaxed);
  budget_.Return(idle);
}

absl::Status BufferCharge::Add(const BuildSite& site, const Element& element) {
  return Add(site, BytesOf(element));
}

absl::Status BufferCharge::Add(const BuildSite& site, int64_t bytes) {
  if (TryAddBytes(site, bytes)) return absl::OkStatus();
  const BufferAccount& account = *site.run().buffers;
  return OfReading(absl::ResourceExhaustedError(absl::StrCat(
      site.name(), ": no room for ", bytes + kOverhead,
      " more bytes in buffers. The transforms of ", "this worker have ", account.budget().taken(),
      " of ", account.budget().bytes(), " bytes, ", account.used(),
      " of them in this partition. Use smaller buffers, or raise the worker's ",
      "buffer_budget_bytes")));
}

bool BufferCharge::TryAdd(const BuildSite& site, const Element& element) {
  return TryAddBytes(site, BytesOf(element));
}

bool BufferCharge::TryAddBytes(const BuildSite& site, int64_t bytes) {
  BufferAccount* account = site.run().buffers;
  if (account == nullptr) return true;
  if (!account->Add(bytes + kOverhead)) return false;
  account_ = account;
  bytes_ += bytes + kOverhead;
  return true;
}

}  // namespace penstock
