// SPDX-License-Identifier: Apache-2.0
// Values from the files of /proc and /sys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/doctor/probe.h"

namespace penstock::doctor {

// Returns "8 MiB", "512 GiB" or "100 B", rounded to one decimal place.
std::string BytesText(double bytes);

// Reads the whole file as one number.
std::optional<int64_t> ReadNumber(const Probe& probe, const std::string& path);
// Returns the words of a file, split at white space; none if it does not exist.
std::vector<std::string> ReadWords(const Probe& probe, const std::string& path);
// Returns the text after "key:" in a file of lines "key: text".
std::optional<std::string> ReadField(const Probe& probe, const std::string& path,
                                     const std::string& key);
// Returns the chosen word of a file such as "always [madvise] never".
std::optional<std::string> ReadChoice(const Probe& probe, const std::string& path);
// Returns the count of the numbers in a list such as "0-3,8"; 0 for other texts.
int CountOfList(const std::string& list);

// Returns the number of NUMA nodes; 1 if the kernel does not report them.
int CountNumaNodes(const Probe& probe);

// Bits of capabilities(7).
inline constexpr int kCapNetAdmin = 12;
inline constexpr int kCapIpcLock = 14;
inline constexpr int kCapSysPtrace = 19;
// Returns whether this process has the capability in its own user namespace.
bool HasCapability(const Probe& probe, int bit);
// Returns whether its user namespace is the machine's own. Some rights count only there.
bool InFirstUserNamespace(const Probe& probe);

// Return the tightest limit of this process's control group and its ancestors (version 1 or 2),
// or nullopt if none is set.
std::optional<int64_t> GroupMemoryBytes(const Probe& probe);
std::optional<double> GroupCpus(const Probe& probe);

}  // namespace penstock::doctor
