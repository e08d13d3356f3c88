// SPDX-License-Identifier: Apache-2.0
// Pages of 2 MiB for shared memory. To make and map them takes a third to a sixth of the time that
// small ones take, and a NIC or a GPU pins 512 times fewer. They are asked for with MADV_COLLAPSE,
// which needs Linux 6.1 and no setting of the machine's: shmem_enabled in
// /sys/kernel/mm/transparent_hugepage is `never` nearly everywhere.
// Source: madvise(2); measurements: docs/decisions/0006-huge-pages.md.
#pragma once

#include <cstddef>

#include "absl/types/span.h"

namespace penstock {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// As mmap(nullptr, bytes, protection, flags, fd, 0). Begins at a multiple of kHugePageBytes if it
// has that many bytes and there is room for that, so that huge pages of the file can be mapped as
// such; and fails with ENOMEM then if less than 16 MiB of RLIMIT_AS would be left.
void* MapAligned(size_t bytes, int protection, int flags, int fd);

// Makes the whole huge pages of `pages`, a part of a shared mapping from MapAligned(), present as
// such, until the system gives no more: memory is in small pieces, or Linux is too old. The
// process then asks for no more of them for 10 s. What it leaves is to be made present otherwise.
// Returns that refusal's errno, or 0. Any thread.
int MakeHuge(absl::Span<std::byte> pages);

// Has the system give huge pages where `memory`, which is this process's own, is first touched. For
// what begins at a multiple of kHugePageBytes.
void PreferHuge(absl::Span<std::byte> memory);

}  // namespace penstock
