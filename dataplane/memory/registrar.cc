// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/registrar.h"

#include <atomic>

namespace penstock {
namespace {

std::atomic<int64_t> made{0};
std::atomic<int64_t> bytes{0};

}  // namespace

Registration::Registration(absl::Span<std::byte> memory) : memory_(memory) {
  made.fetch_add(1, std::memory_order_relaxed);
  bytes.fetch_add(static_cast<int64_t>(memory_.size()), std::memory_order_relaxed);
}

Registration::~Registration() {
  bytes.fetch_sub(static_cast<int64_t>(memory_.size()), std::memory_order_relaxed);
}

RegistrationCounters CountRegistrations() {
  return {.made = made.load(std::memory_order_relaxed),
          .bytes = bytes.load(std::memory_order_relaxed)};
}

}  // namespace penstock
