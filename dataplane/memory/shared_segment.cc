// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/shared_segment.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "dataplane/element/block.h"
#include "dataplane/memory/huge_pages.h"
#include "dataplane/memory/numa.h"
#include "dataplane/memory/shared_limit.h"
#include "dataplane/memory/usable_memory.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr int64_t kBlockUnit = 512;  // bytes; the unit of st_blocks, see stat(2)

struct Counts {
  std::atomic<int64_t> created{0};
  std::atomic<int64_t> opened{0};
};

Counts& TheCounts() {
  static Counts& counts = *new Counts;  // segments may live in other statics
  return counts;
}

}  // namespace

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : in_creator_(other.in_creator_),
      fd_(std::move(other.fd_)),
      memory_(std::exchange(other.memory_, {})),
      reserved_(std::exchange(other.reserved_, 0)) {}

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  if (this != &other) {
    Unmap();
    in_creator_ = other.in_creator_;
    fd_ = std::move(other.fd_);
    memory_ = std::exchange(other.memory_, {});
    reserved_ = std::exchange(other.reserved_, 0);
  }
  return *this;
}

SharedSegment::~SharedSegment() {
  Unmap();
}

void SharedSegment::Unmap() {
  if (!memory_.empty() && in_creator_) ::munmap(memory_.data(), memory_.size());
  memory_ = {};
  ReleaseShared(std::exchange(reserved_, 0));
}

absl::Status SharedSegment::Map(int fd, size_t bytes, bool writable) {
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* memory = MapAligned(bytes, protection, MAP_SHARED, fd);
  if (memory == MAP_FAILED && errno == EPERM) {
    return absl::PermissionDeniedError("a shared segment can be mapped only for reading");
  }
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map a shared segment of ", bytes, " bytes: errno ", errno));
  }
  memory_ = absl::MakeSpan(static_cast<std::byte*>(memory), bytes);
  ::madvise(memory, bytes, MADV_DONTFORK);
  // Takes effect if the machine gives huge pages on the first touch.
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  return absl::OkStatus();
}

absl::Status SharedSegment::MakePresent(absl::Span<std::byte> pages) const {
  // If a control group's limit is exceeded, no call fails; the system kills a process instead.
  if (const int64_t unused = UnusedMemory(); static_cast<int64_t>(pages.size()) > unused) {
    return absl::ResourceExhaustedError(
        absl::StrCat(pages.size(), " bytes of shared memory do not fit: ", unused,
                     " bytes of the machine's or container's memory are left"));
  }
  MakeHuge(pages);
  int error = EINVAL;
#ifdef MADV_POPULATE_WRITE
  if (::madvise(pages.data(), pages.size(), MADV_POPULATE_WRITE) == 0) return absl::OkStatus();
  error = errno;
#endif
  if (error == EINVAL) {  // Linux before 5.14: allocated here, mapped on the first touch
    const auto at = static_cast<off_t>(pages.data() - memory_.data());
    do {
      error = ::fallocate(fd(), 0, at, static_cast<off_t>(pages.size())) == 0 ? 0 : errno;
    } while (error == EINTR);
  }
  if (error == 0) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("the system could not provide ", pages.size(),
                                                   " bytes of shared memory: errno ", error));
}

absl::StatusOr<SharedSegment> SharedSegment::Create(size_t bytes, Writers writers) {
  bytes = AlignUp(bytes, kPageBytes);
  SharedSegment segment;
  RETURN_IF_ERROR(ReserveShared(static_cast<int64_t>(bytes)));
  segment.reserved_ = static_cast<int64_t>(bytes);
  segment.fd_ = Descriptor(::memfd_create("penstock", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!segment.fd_ || ::ftruncate(segment.fd(), static_cast<off_t>(bytes)) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the system could not create a shared segment of ", bytes, " bytes: errno ", errno));
  }
  RETURN_IF_ERROR(segment.Map(segment.fd(), bytes, /*writable=*/true));
  PreferMemoryNode(segment.memory_);
  if (writers == Writers::kAll) RETURN_IF_ERROR(segment.MakePresent(segment.memory_));
  int seals = kSizeSeals | F_SEAL_SEAL;
  if (writers == Writers::kOwner) seals |= F_SEAL_FUTURE_WRITE;  // existing mappings stay writable
  if (::fcntl(segment.fd(), F_ADD_SEALS, seals) != 0) {
    return absl::InternalError(absl::StrCat("cannot seal a shared segment: errno ", errno));
  }
  TheCounts().created.fetch_add(1, std::memory_order_relaxed);
  return segment;
}

absl::StatusOr<SharedSegment> SharedSegment::Open(const Descriptor& fd, size_t bytes,
                                                  Writers writers) {
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals) {
    return absl::InvalidArgumentError("a descriptor is not a shared segment with a sealed size");
  }
  struct stat status;
  struct statfs system;
  // On other file systems (reserved huge pages, for example) a page may be missing when it is
  // touched.
  if (::fstat(fd.get(), &status) != 0 || ::fstatfs(fd.get(), &system) != 0 ||
      system.f_type != TMPFS_MAGIC || bytes == 0 || bytes % kPageBytes != 0 || status.st_size < 0 ||
      static_cast<uint64_t>(status.st_size) != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a shared segment does not have the announced size of ", bytes, " bytes"));
  }
  SharedSegment segment;
  RETURN_IF_ERROR(segment.Map(fd.get(), bytes, writers == Writers::kAll));
  if (writers == Writers::kAll) {
    if (status.st_blocks * kBlockUnit < status.st_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("a shared segment of ", bytes, " bytes has holes: only ",
                       status.st_blocks * kBlockUnit, " bytes of it are allocated"));
    }
    RETURN_IF_ERROR(ReserveShared(static_cast<int64_t>(bytes)));
    segment.reserved_ = static_cast<int64_t>(bytes);
  }
  TheCounts().opened.fetch_add(1, std::memory_order_relaxed);
  return segment;
}

SharedCounters CountShared() {
  Counts& counts = TheCounts();
  return {.segments_created = counts.created.load(),
          .segments_opened = counts.opened.load(),
          .bytes_reserved = ReservedSharedBytes()};
}

}  // namespace penstock
