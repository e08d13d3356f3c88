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
  return absl::ResourceExhaustedError(
      absl::StrCat(std::string(what), " exceeds the limit of ", MostElementBytes(),
                   " bytes for one element in this process; make elements smaller, or raise the "
                   "limit (a worker's --memory-budget-bytes; half of the memory by default)"));
}

}  // namespace penstock
