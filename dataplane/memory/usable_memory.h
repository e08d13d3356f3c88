// SPDX-License-Identifier: Apache-2.0
// How much memory this process may use. Budgets that are not set are fractions of it.
#pragma once

#include <cstdint>
#include <string>

namespace penstock {

// Returns, in bytes, the least of these: the machine's memory, the limits of the control groups (v1
// and v2) that the process is in, and the limit of its address space (RLIMIT_AS). Determined at the
// first call. Any thread.
int64_t UsableMemory();

// Does the same for a machine with `machine_bytes` whose files are below `root`: proc/self/cgroup,
// and the limits in sys/fs/cgroup. A file that cannot be read sets no limit.
int64_t UsableMemoryOf(const std::string& root, int64_t machine_bytes);

// Returns the number of bytes that this process can still allocate: the memory that the machine has
// available, or the memory left below the limit of one of those control groups, if that is less.
// Pages of files count as available, because the system reclaims them on demand. INT64_MAX if this
// number is not known. Reads the current values from files. Any thread.
int64_t UnusedMemory();

// Does the same for a machine whose files are below `root`.
int64_t UnusedMemoryOf(const std::string& root);

// Returns the number of bytes of address space that this process has left below RLIMIT_AS;
// INT64_MAX where there is no such limit. Reads the current value from a file if there is a limit.
// Any thread.
int64_t UnusedAddressSpace();

}  // namespace penstock
