// SPDX-License-Identifier: Apache-2.0
// How much memory there is for this process: what budgets that nobody sets are parts of.
#pragma once

#include <cstdint>
#include <string>

namespace penstock {

// Bytes: the machine's memory, or the least limit of the control groups (v1 and v2) that the
// process is in, as in a container, or of its address space (RLIMIT_AS), if that is less. As it is
// at the first call. Any thread.
int64_t UsableMemory();

// The same of a machine with so many bytes, whose files lie below `root`: proc/self/cgroup, and the
// limits in sys/fs/cgroup. What cannot be read there limits nothing.
int64_t UsableMemoryOf(const std::string& root, int64_t machine_bytes);

// Bytes that this process can still take: what the machine has available, or what is left below
// the limit of one of those control groups, if that is less. Memory of files' pages is left: the
// system gives it to whoever asks. INT64_MAX where it cannot be told. As it is now; reads some
// files. Any thread.
int64_t UnusedMemory();

// The same of a machine whose files lie below `root`.
int64_t UnusedMemoryOf(const std::string& root);

// Bytes of address space that this process has left below RLIMIT_AS; INT64_MAX where there is no
// such limit. As it is now; reads a file where there is one. Any thread.
int64_t UnusedAddressSpace();

}  // namespace penstock
