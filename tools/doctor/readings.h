// SPDX-License-Identifier: Apache-2.0
// What the files of /proc and /sys say, as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/doctor/probe.h"

namespace penstock::doctor {

// "8 MiB", "512 GiB", "100 B": rounded to one digit behind the point.
std::string BytesText(double bytes);

// The whole file as one number.
std::optional<int64_t> ReadNumber(const Probe& probe, const std::string& path);
// Words of a file, split at white space; none if it is not there.
std::vector<std::string> ReadWords(const Probe& probe, const std::string& path);
// What stands behind "key:" in a file of such lines.
std::optional<std::string> ReadField(const Probe& probe, const std::string& path,
                                     const std::string& key);
// The chosen one of "always [madvise] never".
std::optional<std::string> ReadChoice(const Probe& probe, const std::string& path);
// How many numbers a list as "0-3,8" names; 0 for what is no such list.
int CountOfList(const std::string& list);

// NUMA nodes of the machine; 1 where the kernel has no word for them.
int CountNumaNodes(const Probe& probe);

// Bits of capabilities(7).
inline constexpr int kCapNetAdmin = 12;
inline constexpr int kCapIpcLock = 14;
inline constexpr int kCapSysPtrace = 19;
// Whether this process has it in its own user namespace.
bool HasCapability(const Probe& probe, int bit);
// Whether that namespace is the machine's own; some rights count only there.
bool InFirstUserNamespace(const Probe& probe);

// Of this process's control group and those above it (version 1 or 2), the
// tightest; nothing where none is set.
std::optional<int64_t> GroupMemoryBytes(const Probe& probe);
std::optional<double> GroupCpus(const Probe& probe);

}  // namespace penstock::doctor
