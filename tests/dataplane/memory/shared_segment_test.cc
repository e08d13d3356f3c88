// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/shared_segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "dataplane/memory/shared_limit.h"
#include "dataplane/memory/slot_segment.h"

namespace penstock {
namespace {

// Returns the descriptor as another process would get it.
Descriptor Passed(const SharedSegment& segment) {
  return Descriptor(::fcntl(segment.fd(), F_DUPFD_CLOEXEC, 0));
}

TEST(SharedSegment, BothSidesSeeTheSameBytes) {
  absl::StatusOr<SharedSegment> mine = SharedSegment::Create(10'000);
  ASSERT_TRUE(mine.ok()) << mine.status();
  EXPECT_EQ(mine->memory().size(), 3 * kPageBytes);
  absl::StatusOr<SharedSegment> theirs = SharedSegment::Open(Passed(*mine), 3 * kPageBytes);
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  mine->memory()[9'999] = std::byte{42};
  EXPECT_EQ(theirs->memory()[9'999], std::byte{42});
  theirs->memory()[0] = std::byte{7};
  EXPECT_EQ(mine->memory()[0], std::byte{7});
}

TEST(SharedSegment, ItsSizeIsForGood) {
  absl::StatusOr<SharedSegment> segment = SharedSegment::Create(kPageBytes);
  ASSERT_TRUE(segment.ok()) << segment.status();
  EXPECT_NE(::ftruncate(segment->fd(), 0), 0);
  EXPECT_NE(::ftruncate(segment->fd(), 2 * kPageBytes), 0);
  EXPECT_NE(::fcntl(segment->fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(SharedSegment, OneThatMightShrinkIsRefused) {
  Descriptor unsealed(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), kPageBytes), 0);
  EXPECT_EQ(SharedSegment::Open(unsealed, kPageBytes).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SharedSegment::Open(Descriptor(::open("/dev/zero", O_RDWR | O_CLOEXEC)), kPageBytes)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(SharedSegment, OneOfAnotherSizeThanAnnouncedIsRefused) {
  absl::StatusOr<SharedSegment> segment = SharedSegment::Create(2 * kPageBytes);
  ASSERT_TRUE(segment.ok()) << segment.status();
  for (size_t bytes : {size_t{0}, size_t{1}, kPageBytes, 3 * kPageBytes}) {
    EXPECT_EQ(SharedSegment::Open(Passed(*segment), bytes).status().code(),
              absl::StatusCode::kInvalidArgument)
        << bytes;
  }
}

TEST(SharedSegment, OthersOnlyReadAnOwnersSegment) {
  absl::StatusOr<SharedSegment> mine =
      SharedSegment::Create(kPageBytes, SharedSegment::Writers::kOwner);
  ASSERT_TRUE(mine.ok()) << mine.status();
  EXPECT_EQ(SharedSegment::Open(Passed(*mine), kPageBytes).status().code(),
            absl::StatusCode::kPermissionDenied);
  absl::StatusOr<SharedSegment> theirs =
      SharedSegment::Open(Passed(*mine), kPageBytes, SharedSegment::Writers::kOwner);
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  mine->memory()[5] = std::byte{9};
  EXPECT_EQ(theirs->memory()[5], std::byte{9});
  const Descriptor passed = Passed(*mine);
  EXPECT_EQ(::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, passed.get(), 0),
            MAP_FAILED);
  EXPECT_EQ(errno, EPERM);
  EXPECT_LT(::pwrite(passed.get(), "x", 1, 0), 0);
}

TEST(SharedSegment, TheProcesssBoundHolds) {
  const int64_t before = CountShared().bytes_reserved;
  {
    SetMaxSharedBytes(before + 2 * static_cast<int64_t>(kPageBytes));
    absl::StatusOr<SharedSegment> fits = SharedSegment::Create(2 * kPageBytes);
    EXPECT_TRUE(fits.ok()) << fits.status();
    EXPECT_EQ(CountShared().bytes_reserved - before, 2 * static_cast<int64_t>(kPageBytes));
    EXPECT_EQ(SharedSegment::Create(1).status().code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(CountShared().bytes_reserved, before);
  EXPECT_TRUE(SharedSegment::Create(2 * kPageBytes).ok());
  SetMaxSharedBytes(int64_t{1} << 30);
}

TEST(SharedSegment, OpenedOnesCountAndAreNeverFilled) {
  const int64_t before = CountShared().bytes_reserved;
  Descriptor sparse(::memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(sparse.get(), 4 * kPageBytes), 0);
  ASSERT_EQ(::pwrite(sparse.get(), "x", 1, 0), 1);
  ASSERT_EQ(::fcntl(sparse.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  const absl::Status refused = SharedSegment::Open(sparse, 4 * kPageBytes).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  struct stat status;
  ASSERT_EQ(::fstat(sparse.get(), &status), 0);
  EXPECT_EQ(status.st_blocks * 512, static_cast<int64_t>(kPageBytes));
  EXPECT_EQ(CountShared().bytes_reserved, before);

  const absl::StatusOr<SharedSegment> mine = SharedSegment::Create(2 * kPageBytes);
  ASSERT_TRUE(mine.ok()) << mine.status();
  const int64_t with_mine = CountShared().bytes_reserved;
  SetMaxSharedBytes(with_mine + static_cast<int64_t>(kPageBytes));
  EXPECT_EQ(SharedSegment::Open(Passed(*mine), 2 * kPageBytes).status().code(),
            absl::StatusCode::kResourceExhausted);
  SetMaxSharedBytes(int64_t{1} << 30);
  const absl::StatusOr<SharedSegment> theirs = SharedSegment::Open(Passed(*mine), 2 * kPageBytes);
  EXPECT_EQ(CountShared().bytes_reserved, with_mine + 2 * static_cast<int64_t>(kPageBytes));
}

// Returns the result of `test` in a child whose madvise() of that kind fails with that error.
bool InAChildWhoseMadviseFails(int advice, int error, bool (*test)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(advice), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{.len = std::size(code), .filter = code};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
      ::_exit(2);
    }
    ::_exit(test() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(SharedSegment, PagesThatTheSystemDoesNotGiveAreAnError) {
  EXPECT_TRUE(InAChildWhoseMadviseFails(MADV_POPULATE_WRITE, ENOMEM, [] {
    return absl::IsResourceExhausted(SharedSegment::Create(kPageBytes).status());
  }));
  EXPECT_TRUE(InAChildWhoseMadviseFails(MADV_POPULATE_WRITE, EFAULT, [] {
    return absl::IsResourceExhausted(SharedSegment::Create(kPageBytes).status());
  }));
}

TEST(SharedSegment, AnOldKernelsPagesAreThereToo) {
  EXPECT_TRUE(InAChildWhoseMadviseFails(MADV_POPULATE_WRITE, EINVAL, [] {
    const absl::StatusOr<SharedSegment> segment = SharedSegment::Create(8 * kPageBytes);
    struct stat status;
    return segment.ok() && ::fstat(segment->fd(), &status) == 0 &&
           status.st_blocks * 512 >= static_cast<int64_t>(8 * kPageBytes);
  }));
}

TEST(SharedSegment, TheBoundIsDividedByTheProcessesOfALaunch) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("LOCAL_WORLD_SIZE", "1000000000", 1);
    ::execl("/proc/self/exe", "bounded", "--gtest_filter=SharedSegmentChild.HasNoRoom", nullptr);
    ::_exit(3);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(SharedSegmentChild, HasNoRoom) {
  if (std::getenv("LOCAL_WORLD_SIZE") == nullptr) GTEST_SKIP() << "this is the parent";
  EXPECT_EQ(SharedSegment::Create(kPageBytes).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(SharedSegment, AForkedChildHasNotGotIt) {
  absl::StatusOr<SharedSegment> segment = SharedSegment::Create(kPageBytes);
  ASSERT_TRUE(segment.ok()) << segment.status();
  const pid_t child = ::fork();
  if (child == 0) {
    unsigned char resident;
    const bool mapped = ::mincore(segment->memory().data(), kPageBytes, &resident) == 0;
    ::_exit(mapped ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(SlotView, SharesBodiesAndKeepsHeads) {
  const SlotLayout layout{.slots = 3, .body_bytes = 2 * kPageBytes};
  absl::StatusOr<SharedSegment> segment = SharedSegment::Create(layout.bytes());
  ASSERT_TRUE(segment.ok()) << segment.status();
  absl::StatusOr<SlotView> view = SlotView::Map(segment->fd(), layout);
  ASSERT_TRUE(view.ok()) << view.status();
  for (uint32_t slot = 0; slot < layout.slots; ++slot) {
    std::byte* written = segment->memory().data() + layout.body_offset(slot);
    std::memset(written, static_cast<int>(slot) + 1, layout.body_bytes);
    std::byte* head = view->body(slot) - kHeadRoom;
    std::memcpy(head, written - kHeadRoom, kHeadRoom);
    std::memset(written - kHeadRoom, 0xee, kHeadRoom);  // the writer changes it later
    EXPECT_EQ(head[0], std::byte{0});
    EXPECT_EQ(head[kHeadRoom - 1], std::byte{0});
    EXPECT_EQ(view->body(slot)[0], static_cast<std::byte>(slot + 1));
    EXPECT_EQ(view->body(slot)[layout.body_bytes - 1], static_cast<std::byte>(slot + 1));
  }
}

TEST(SlotView, WritesIntoAnothersSlotsArePrivateUntilDropped) {
  const SlotLayout layout{.slots = 2, .body_bytes = 3 * kPageBytes};
  absl::StatusOr<SharedSegment> segment =
      SharedSegment::Create(layout.bytes(), SharedSegment::Writers::kOwner);
  ASSERT_TRUE(segment.ok()) << segment.status();
  std::byte* const theirs = segment->memory().data();
  absl::StatusOr<SlotView> view = SlotView::MapPrivate(Passed(*segment), layout);
  ASSERT_TRUE(view.ok()) << view.status();
  for (uint32_t slot = 0; slot < layout.slots; ++slot) {
    const size_t last = layout.body_offset(slot) + layout.body_bytes - 1;
    theirs[last] = std::byte{3};
    EXPECT_EQ(view->memory()[last], std::byte{3});
    view->memory()[last] = std::byte{4};
    view->body(slot)[-1] = std::byte{5};  // in the head
    EXPECT_EQ(theirs[last], std::byte{3});
    theirs[last] = std::byte{6};
    EXPECT_EQ(view->memory()[last], std::byte{4});
    view->DropWritten(slot);
    EXPECT_EQ(view->memory()[last], std::byte{6});
    EXPECT_EQ(view->body(slot)[-1], std::byte{5});
    EXPECT_EQ(theirs[layout.body_offset(slot) - 1], std::byte{0});
  }
}

}  // namespace
}  // namespace penstock
