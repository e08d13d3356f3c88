// SPDX-License-Identifier: Apache-2.0
// Memory that several processes of one host have mapped. It is a memfd: it has
// no name that could be left behind, and is gone with the last process that maps
// it or holds its descriptor.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/memory/descriptor.h"
#include "dataplane/memory/fork_guard.h"

namespace penstock {

// A process's mapping of such a segment. Its size never changes: sealed, so that
// no process can make another fault by cutting it short. Not mapped in forked
// children (fork_guard.h).
class SharedSegment {
 public:
  enum class Writers {
    // Every process that has the descriptor. Present from the beginning, so that the first touch
    // costs nothing.
    kAll,
    // The one that created it; others can map it for reading only. A page is there when it is
    // first touched, or from MakePresent() on: the owner has many, most of them for later.
    kOwner,
  };

  SharedSegment() = default;
  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  ~SharedSegment();

  // A new one, zeroed. `bytes` is rounded up to whole pages. ResourceExhausted if
  // the process's bound for shared memory (SetMaxSharedBytes) or the system does
  // not allow it, or, with Writers::kAll, as MakePresent().
  static absl::StatusOr<SharedSegment> Create(size_t bytes, Writers writers = Writers::kAll);
  // Maps what another process created and passed on; the descriptor is not needed any
  // more then. InvalidArgument unless it is a segment of exactly `bytes` whose size is
  // sealed and, with Writers::kAll, all of which is there: pages that are missing would be
  // made, and paid for, by this process. PermissionDenied if it was created with Writers::kOwner
  // and is opened without. What any process may write counts here too: ResourceExhausted above
  // this process's bound.
  static absl::StatusOr<SharedSegment> Open(const Descriptor& fd, size_t bytes,
                                            Writers writers = Writers::kAll);

  // The owner's, to be passed on.
  int fd() const { return fd_.get(); }
  // Readable; writable for the owner, and for others unless Writers::kOwner.
  absl::Span<std::byte> memory() const { return memory_; }

  // Has those pages there, zeroed if they are new: about a millisecond for a megabyte of new ones.
  // ResourceExhausted if the machine, or a control group's limit (UnusedMemory), has no room for
  // them. The owner's. REQUIRES: `pages` of memory(), from a page's beginning on. Any thread.
  absl::Status MakePresent(absl::Span<std::byte> pages) const;

 private:
  absl::Status Map(int fd, size_t bytes, bool writable);
  void Unmap();

  ForkGuard in_creator_;
  Descriptor fd_;
  absl::Span<std::byte> memory_;
  int64_t reserved_ = 0;  // of the process's bound
};

inline constexpr size_t kPageBytes = 4096;

// What the segments that this process created, or opened with Writers::kAll, may take together.
// Unless set, half of UsableMemory() by the number of processes that LOCAL_WORLD_SIZE or
// OMPI_COMM_WORLD_LOCAL_SIZE says were started here together.
void SetMaxSharedBytes(int64_t bytes);

struct SharedCounters {
  int64_t segments_created = 0;  // since the process began
  int64_t segments_opened = 0;
  int64_t bytes_reserved = 0;  // of the bound, in segments not let go of yet
};
SharedCounters CountShared();

}  // namespace penstock
