// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <utility>

#include "control/sync/clock.h"
#include "dataplane/element/block.h"
#include "dataplane/memory/shared_segment.h"
#include "dataplane/memory/usable_memory.h"

namespace penstock {
namespace {

using Clock = SteadyClock;

constexpr int kCollapse = 25;  // MADV_COLLAPSE, which older headers lack
// One call collapses this much, because each call causes work on all CPUs.
constexpr size_t kAtOnce = 16 << 20;  // bytes
constexpr std::chrono::seconds kPause(10);
// The address space that memory for elements must leave free for other uses: for thread stacks, and
// for libraries such as gRPC, which end the process if they get no memory.
constexpr int64_t kLeft = 16 << 20;  // bytes

// MapAligned() looks for a free address range this many times, because another thread may take it.
constexpr int kAttempts = 16;

size_t BytesToNext(const void* address) {
  return -reinterpret_cast<uintptr_t>(address) % kHugePageBytes;
}

}  // namespace

void* MapAligned(size_t bytes, int protection, int flags, int fd) {
  if (bytes < kHugePageBytes) return ::mmap(nullptr, bytes, protection, flags, fd, 0);
  if (std::cmp_greater(bytes, UnusedAddressSpace() - kLeft)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  const size_t room = AlignUp(bytes, kPageBytes) + kHugePageBytes;
  for (int attempt = 1;; ++attempt) {
    void* where = nullptr;
    void* const found =
        ::mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found != MAP_FAILED) {
      ::munmap(found, room);
      where = static_cast<std::byte*>(found) + BytesToNext(found);
    }
    // `where` is only a hint: if another thread takes that address range first, the system picks a
    // different range. With MAP_FIXED, a mapping that fails would leave a hole that this process no
    // longer owns. mremap() is no alternative: it ignores the new address if UCX has hooked it.
    void* const memory = ::mmap(where, bytes, protection, flags, fd, 0);
    if (memory == MAP_FAILED || BytesToNext(memory) == 0 || where == nullptr) return memory;
    if (attempt == kAttempts) return memory;
    ::munmap(memory, bytes);
  }
}

int MakeHuge(absl::Span<std::byte> pages) {
#ifdef MADV_POPULATE_WRITE
  // While memory is fragmented, requests are postponed, because the system searches all memory for
  // each request.
  static std::atomic<Clock::rep> asked_again_at{0};
  static std::atomic<int> refusal{0};
  const Clock::rep now = Clock::now().time_since_epoch().count();
  if (now < asked_again_at.load(std::memory_order_relaxed)) return refusal;
  std::byte* at = pages.data() + BytesToNext(pages.data());
  std::byte* const end = pages.data() + pages.size();
  while (at < end && static_cast<size_t>(end - at) >= kHugePageBytes) {
    const size_t bytes = std::min<size_t>(end - at, kAtOnce) / kHugePageBytes * kHugePageBytes;
    bool made = true;
    // A range without any page cannot be collapsed.
    for (size_t page = 0; made && page < bytes; page += kHugePageBytes) {
      made = ::madvise(at + page, kPageBytes, MADV_POPULATE_WRITE) == 0;
    }
    if (!made || ::madvise(at, bytes, kCollapse) != 0) {
      const int error = errno;
      if (error != ENOMEM) return error;  // not supported here or for this range
      refusal = error;
      asked_again_at = now + std::chrono::duration_cast<Clock::duration>(kPause).count();
      return error;
    }
    at += bytes;
  }
  return 0;
#else
  return EINVAL;
#endif
}

void PreferHuge(absl::Span<std::byte> memory) {
  ::madvise(memory.data(), memory.size() / kPageBytes * kPageBytes, MADV_HUGEPAGE);
}

}  // namespace penstock
