// SPDX-License-Identifier: Apache-2.0
// Pages of 2 MiB for shared memory. Making and mapping them takes a third to a sixth of the time
// that small pages take, and a NIC or a GPU pins 512 times fewer pages. Huge pages are requested
// with MADV_COLLAPSE, which needs Linux 6.1 but no system setting: shmem_enabled in
// /sys/kernel/mm/transparent_hugepage is `never` nearly everywhere. Source: madvise(2);
// measurements: docs/decisions/0006-huge-pages.md.
#pragma once

#include <cstddef>

#include "absl/types/span.h"

namespace penstock {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Maps like mmap(nullptr, bytes, protection, flags, fd, 0). A mapping of kHugePageBytes or more
// begins at a multiple of kHugePageBytes if the address space allows it, so that huge pages of the
// file can be mapped as such. ENOMEM if the mapping would leave less than 16 MiB of RLIMIT_AS.
void* MapAligned(size_t bytes, int protection, int flags, int fd);

// Makes all huge pages that fit into `pages` present as huge pages. `pages` is part of a shared
// mapping from MapAligned(). Stops once the system refuses, because its memory is fragmented or
// Linux is too old. After ENOMEM (fragmented) the process requests no more for 10 s. The caller
// must make the remaining pages present in another way. Returns the errno of the refusal, or 0. Any
// thread.
int MakeHuge(absl::Span<std::byte> pages);

// Asks the system to use huge pages when `memory`, which is private to this process, is first
// touched. REQUIRES: `memory` begins at a multiple of kHugePageBytes.
void PreferHuge(absl::Span<std::byte> memory);

}  // namespace penstock
