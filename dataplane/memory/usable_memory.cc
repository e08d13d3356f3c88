// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/usable_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "control/env/disk.h"

namespace penstock {
namespace {

// The names of the files in one version of control groups, and the names under which the file
// `stat` lists memory that can be reclaimed.
struct Version {
  const char* limit;
  const char* usage;
  const char* active_file;
  const char* inactive_file;
};
constexpr Version kV1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_active_file",
                      "total_inactive_file"};
constexpr Version kV2{"memory.max", "memory.current", "active_file", "inactive_file"};

// Returns the lines of a kernel file (in /proc or /sys); none if there is no such file.
std::vector<std::string> LinesOf(const std::string& file) {
  return absl::StrSplit(LocalDisk().Read(file).value_or(""), '\n', absl::SkipEmpty());
}

// Returns the limit in a file; INT64_MAX for none ("max", or no such file).
int64_t LimitIn(const std::string& file) {
  const std::vector<std::string> lines = LinesOf(file);
  uint64_t bytes = 0;
  if (lines.empty() || !absl::SimpleAtoi(lines[0], &bytes)) return INT64_MAX;
  return static_cast<int64_t>(std::min<uint64_t>(bytes, INT64_MAX));
}

int64_t LimitOf(const std::string& folder, const Version& version) {
  return LimitIn(absl::StrCat(folder, "/", version.limit));
}

// Returns the sum in bytes of the values of `names`; a line is "name bytes" or "name: kilobytes
// kB".
int64_t SumIn(const std::string& file, std::initializer_list<std::string_view> names) {
  int64_t sum = 0;
  for (const std::string& line : LinesOf(file)) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t number = 0;
    if (words.size() < 2 || !absl::c_linear_search(names, words[0]) ||
        !absl::SimpleAtoi(words[1], &number)) {
      continue;
    }
    sum += words.size() > 2 ? 1024 * number : number;
  }
  return sum;
}

int64_t LeftIn(const std::string& folder, const Version& version) {
  const int64_t limit = LimitOf(folder, version);
  const int64_t used = LimitIn(absl::StrCat(folder, "/", version.usage));
  if (limit == INT64_MAX || used == INT64_MAX) return INT64_MAX;
  return limit - used +
         SumIn(absl::StrCat(folder, "/memory.stat"), {version.active_file, version.inactive_file});
}

// Returns the least value of `of` for the group and its ancestors. If a container sees its own
// group as the root, the folders of the ancestors do not exist.
template <class Of>
int64_t Least(const std::string& groups, std::string group, const Version& version, Of of) {
  int64_t least = of(groups, version);
  while (group.size() > 1) {
    least = std::min(least, of(absl::StrCat(groups, group), version));
    group.resize(group.rfind('/'));
  }
  return least;
}

// Returns the least value of `of` (folder, version) for the groups that this process is in;
// INT64_MAX if the process is in none.
template <class Of>
int64_t LeastOfGroups(const std::string& root, Of of) {
  int64_t least = INT64_MAX;
  const std::string groups = absl::StrCat(root, "/sys/fs/cgroup");
  for (const std::string& line : LinesOf(absl::StrCat(root, "/proc/self/cgroup"))) {
    // "0::/group" of v2, "4:cpu,memory:/group" of v1.
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    // A group of a different namespace ("/../…") has no folder here.
    if (parts.size() != 3 || !absl::StartsWith(parts[2], "/")) continue;
    const std::string group = absl::StrContains(parts[2], "/..") ? "/" : parts[2];
    if (parts[0] == "0" && parts[1].empty()) {
      least = std::min(least, Least(groups, group, kV2, of));
    } else if (absl::c_linear_search(absl::StrSplit(parts[1], ','), "memory")) {
      least = std::min(least, Least(absl::StrCat(groups, "/memory"), group, kV1, of));
    }
  }
  return least;
}

// Returns RLIMIT_AS; INT64_MAX for no limit.
int64_t AddressSpace() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur > INT64_MAX) return INT64_MAX;
  return static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace

int64_t UsableMemoryOf(const std::string& root, int64_t machine_bytes) {
  return std::min(machine_bytes, LeastOfGroups(root, LimitOf));
}

int64_t UnusedMemoryOf(const std::string& root) {
  const int64_t available = SumIn(absl::StrCat(root, "/proc/meminfo"), {"MemAvailable:"});
  return std::min(available > 0 ? available : INT64_MAX, LeastOfGroups(root, LeftIn));
}

int64_t UsableMemory() {
  static const int64_t usable =
      std::min(AddressSpace(),
               UsableMemoryOf("", int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE)));
  return usable;
}

int64_t UnusedMemory() {
  return UnusedMemoryOf("");
}

int64_t UnusedAddressSpace() {
  const int64_t limit = AddressSpace();
  if (limit == INT64_MAX) return INT64_MAX;
  const std::string sizes = LocalDisk().Read("/proc/self/statm").value_or("");  // "pages …"
  int64_t pages = 0;
  if (!absl::SimpleAtoi(sizes.substr(0, sizes.find(' ')), &pages)) return limit;
  return limit - pages * ::sysconf(_SC_PAGESIZE);
}

}  // namespace penstock
