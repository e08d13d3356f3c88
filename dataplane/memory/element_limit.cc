// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/element_limit.h"

#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "dataplane/memory/usable_memory.h"

namespace penstock {
namespace {

std::atomic<int64_t>& Limit() {
  static std::atomic<int64_t> limit = UsableMemory() / 2;
  return limit;
}

}  // namespace

int64_t MostElementBytes() {
  return Limit().load(std::memory_order_relaxed);
}

void LimitElementBytes(int64_t bytes) {
  Limit().store(bytes, std::memory_order_relaxed);
}

absl::Status AboveElementLimit(std::string_view what) {
  return absl::ResourceExhaustedError(absl::StrCat(
      std::string(what), " is more than the ", MostElementBytes(),
      " bytes that one element may take in this process; make elements smaller, or allow more (a "
      "worker's --memory-budget-bytes; else half of the memory)"));
}

}  // namespace penstock
