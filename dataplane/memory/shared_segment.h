// SPDX-License-Identifier: Apache-2.0
// Memory that several processes on one host map. It is a memfd: it has no name in a file system,
// and is freed when no process maps it or holds its descriptor.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/env/descriptor.h"
#include "dataplane/memory/fork_guard.h"

namespace penstock {

// A process's mapping of such a segment. Its size is sealed, so that no process can crash another
// process by truncating the segment. Not mapped in forked children (fork_guard.h).
class SharedSegment {
 public:
  enum class Writers {
    // Every process that has the segment's descriptor. All pages are present from the start, so
    // that the first touch costs nothing.
    kAll,
    // Only the process that created the segment; others can map it only for reading. Pages become
    // present when first touched or by MakePresent(), because the owner needs most of its many
    // pages only later.
    kOwner,
  };

  SharedSegment() = default;
  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  ~SharedSegment();

  // Creates a zeroed segment. `bytes` is rounded up to whole pages. ResourceExhausted if the
  // process's limit on shared memory (shared_limit.h) or the system does not allow the segment, or
  // if, with Writers::kAll, MakePresent() would fail.
  static absl::StatusOr<SharedSegment> Create(size_t bytes, Writers writers = Writers::kAll);
  // Maps a segment that another process created and passed on. The descriptor is not needed after
  // this call. InvalidArgument unless the segment has exactly `bytes` and a sealed size. With
  // Writers::kAll all its pages must also be present; otherwise this process would be charged for
  // the missing ones. PermissionDenied if the segment was created with Writers::kOwner and is
  // opened with Writers::kAll. Memory that any process may write counts towards this process's
  // limit on shared memory; ResourceExhausted above that limit.
  static absl::StatusOr<SharedSegment> Open(const Descriptor& fd, size_t bytes,
                                            Writers writers = Writers::kAll);

  // The owner's descriptor, to be passed on.
  int fd() const { return fd_.get(); }
  // Readable; writable for the owner, and for others unless Writers::kOwner.
  absl::Span<std::byte> memory() const { return memory_; }

  // Makes these pages present, and zeroes new ones; this takes about a millisecond per megabyte of
  // new pages. ResourceExhausted if the machine has no memory for them, or a control group's limit
  // (UnusedMemory) does not allow them. Only the owner may call this method. REQUIRES: `pages` is
  // part of memory() and begins on a page boundary. Any thread.
  absl::Status MakePresent(absl::Span<std::byte> pages) const;

 private:
  absl::Status Map(int fd, size_t bytes, bool writable);
  void Unmap();

  ForkGuard in_creator_;
  Descriptor fd_;
  absl::Span<std::byte> memory_;
  int64_t reserved_ = 0;  // bytes counted in the process's limit
};

inline constexpr size_t kPageBytes = 4096;

struct SharedCounters {
  int64_t segments_created = 0;  // since the process began
  int64_t segments_opened = 0;
  int64_t bytes_reserved = 0;  // of existing segments, counted in the limit
};
SharedCounters CountShared();

}  // namespace penstock
