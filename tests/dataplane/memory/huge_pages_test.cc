// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/huge_pages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <future>
#include <string>

#include "dataplane/memory/pool.h"
#include "dataplane/memory/shared_segment.h"
#include "dataplane/memory/slot_segment.h"

namespace penstock {
namespace {

// Returns how many bytes of `memory` this process has mapped by huge pages: smaps, see proc(5).
size_t MappedHuge(absl::Span<const std::byte> memory) {
  std::ifstream smaps("/proc/self/smaps");
  const auto begin = reinterpret_cast<uintptr_t>(memory.data());
  bool inside = false;
  size_t bytes = 0;
  for (std::string line; std::getline(smaps, line);) {
    uintptr_t from = 0, to = 0;
    size_t kib = 0;
    char name[32];
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2) {
      inside = from < begin + memory.size() && begin < to;
    } else if (inside && std::sscanf(line.c_str(), "%31[^:]: %zu kB", name, &kib) == 2 &&
               (std::string(name) == "ShmemPmdMapped" || std::string(name) == "AnonHugePages")) {
      bytes += kib << 10;
    }
  }
  return bytes;
}

bool GivesHugePages() {
  const Descriptor file(::memfd_create("tried", MFD_CLOEXEC));
  if (!file || ::ftruncate(file.get(), kHugePageBytes) != 0) return false;
  void* memory = MapAligned(kHugePageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get());
  if (memory == MAP_FAILED) return false;
  *static_cast<std::byte*>(memory) = std::byte{1};
  const bool given = ::madvise(memory, kHugePageBytes, 25 /* MADV_COLLAPSE */) == 0;
  ::munmap(memory, kHugePageBytes);
  return given;
}

// Maps that many bytes for good; returns 0 or errno.
int ErrorOfMapping(size_t bytes) {
  void* const memory = MapAligned(bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  return memory == MAP_FAILED ? errno : 0;
}

// Runs in a process that may take 128 MiB more than it has. Returns the number of the failed
// expectation, or 0.
int MapNearTheLimit() {
  constexpr size_t kMiB = 1 << 20;
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t limit = pages * ::sysconf(_SC_PAGESIZE) + 128 * kMiB;
  const rlimit limits{.rlim_cur = limit, .rlim_max = limit};
  if (::setrlimit(RLIMIT_AS, &limits) != 0) return 1;
  if (ErrorOfMapping(120 * kMiB) != ENOMEM) return 2;
  if (ErrorOfMapping(64 * kMiB) != 0) return 3;
  // Other mappings may take the part that MapAligned() leaves.
  if (::mmap(nullptr, 50 * kMiB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
    return 4;
  if (ErrorOfMapping(kHugePageBytes) != ENOMEM) return 5;
  if (ErrorOfMapping(kHugePageBytes - 1) != 0) return 6;
  return 0;
}

TEST(MapAligned, LeavesTheLastOfTheAddressSpace) {
  EXPECT_EXIT(::_exit(MapNearTheLimit()), testing::ExitedWithCode(0), "");
}

// Maps the file that many times; returns how many mappings did not begin at a huge page.
int CountUnaligned(const Descriptor& file, int times) {
  int count = 0;
  for (int i = 0; i < times; ++i) {
    void* const memory = MapAligned(kHugePageBytes, PROT_READ, MAP_SHARED, file.get());
    count += reinterpret_cast<uintptr_t>(memory) % kHugePageBytes != 0;
    ::munmap(memory, kHugePageBytes);
  }
  return count;
}

TEST(MapAligned, BeginsAtAHugePageWhileAnotherThreadMaps) {
  constexpr int kTimes = 20'000;
  const Descriptor file(::memfd_create("mapped", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), kHugePageBytes), 0);
  std::future<int> other =
      std::async(std::launch::async, [&] { return CountUnaligned(file, kTimes); });
  EXPECT_EQ(CountUnaligned(file, kTimes), 0);
  EXPECT_EQ(other.get(), 0);
}

TEST(HugePages, ASharedSegmentHasThemOnBothSides) {
  if (!GivesHugePages()) GTEST_SKIP() << "this system gives no huge pages to a memfd";
  const SlotLayout layout{.slots = 3, .body_bytes = 3 * kHugePageBytes};
  const absl::StatusOr<SharedSegment> segment = SharedSegment::Create(layout.bytes());
  ASSERT_TRUE(segment.ok()) << segment.status();
  const size_t whole = layout.bytes() / kHugePageBytes * kHugePageBytes;
  EXPECT_GE(MappedHuge(segment->memory()), whole / 2);  // a full machine gives fewer
  const absl::StatusOr<SlotView> view = SlotView::Map(segment->fd(), layout);
  ASSERT_TRUE(view.ok()) << view.status();
  // A private page precedes each body; the huge pages of the file that it interrupts are mapped by
  // small ones.
  EXPECT_GE(MappedHuge(view->memory()), layout.slots * kHugePageBytes);
}

TEST(HugePages, AnOwnersPagesComeHugeWhenTheyAreMadePresent) {
  if (!GivesHugePages()) GTEST_SKIP() << "this system gives no huge pages to a memfd";
  const absl::StatusOr<SharedSegment> segment =
      SharedSegment::Create(8 * kHugePageBytes, SharedSegment::Writers::kOwner);
  ASSERT_TRUE(segment.ok()) << segment.status();
  EXPECT_EQ(MappedHuge(segment->memory()), 0u);
  // From the middle of one huge page to the middle of another: two whole ones are between them.
  ASSERT_TRUE(
      segment->MakePresent(segment->memory().subspan(kHugePageBytes / 2, 3 * kHugePageBytes)).ok());
  EXPECT_EQ(MappedHuge(segment->memory()), 2 * kHugePageBytes);
  struct stat status;
  ASSERT_EQ(::fstat(segment->fd(), &status), 0);
  EXPECT_EQ(status.st_blocks * 512, static_cast<int64_t>(3 * kHugePageBytes));
}

TEST(HugePages, AReadersWritesArePrivateUntilDropped) {
  const SlotLayout layout{.slots = 2, .body_bytes = 3 * kHugePageBytes};
  const absl::StatusOr<SharedSegment> segment =
      SharedSegment::Create(layout.bytes(), SharedSegment::Writers::kOwner);
  ASSERT_TRUE(segment.ok()) << segment.status();
  ASSERT_TRUE(segment->MakePresent(segment->memory()).ok());
  std::memset(segment->memory().data(), 3, layout.bytes());
  const Descriptor passed(::fcntl(segment->fd(), F_DUPFD_CLOEXEC, 0));
  const absl::StatusOr<SlotView> view = SlotView::MapPrivate(passed, layout);
  ASSERT_TRUE(view.ok()) << view.status();
  for (uint32_t slot = 0; slot < layout.slots; ++slot) {
    const std::byte* const theirs = segment->memory().data() + layout.body_offset(slot);
    std::byte* const body = view->body(slot);
    ASSERT_EQ(std::memcmp(body, theirs, layout.body_bytes), 0);
    const size_t middle = layout.body_bytes / 2;
    body[middle] = std::byte{4};
    EXPECT_EQ(theirs[middle], std::byte{3});
    view->DropWritten(slot);
    EXPECT_EQ(std::memcmp(body, theirs, layout.body_bytes), 0);
  }
}

// Runs in a child, because the change cannot be undone.
TEST(HugePages, WithoutThemAllPagesAreThereToo) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) ::_exit(2);
    const absl::StatusOr<SharedSegment> segment = SharedSegment::Create(4 * kHugePageBytes);
    struct stat status;
    const bool present = segment.ok() && ::fstat(segment->fd(), &status) == 0 &&
                         status.st_blocks * 512 >= static_cast<int64_t>(4 * kHugePageBytes);
    ::_exit(present && MappedHuge(segment->memory()) == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(HugePages, AMappingOfThemBeginsAtOne) {
  for (const size_t bytes : {kHugePageBytes, kHugePageBytes + 1, 5 * kHugePageBytes - kPageBytes}) {
    void* memory = MapAligned(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    ASSERT_NE(memory, MAP_FAILED);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % kHugePageBytes, 0u);
    static_cast<std::byte*>(memory)[bytes - 1] = std::byte{1};
    ::munmap(memory, bytes);
  }
  EXPECT_EQ(MapAligned(kHugePageBytes, PROT_READ, MAP_SHARED, -1), MAP_FAILED);
}

TEST(HugePages, ALargeSlotOnTheHeapBeginsAtOne) {
  const std::shared_ptr<Pool> pool = Pool::Create();
  const absl::StatusOr<Loan> loan = pool->Lend(16 << 20);
  ASSERT_TRUE(loan.ok()) << loan.status();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(loan->bytes().data()) % kHugePageBytes, 0u);
}

}  // namespace
}  // namespace penstock
