// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/usable_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string_view>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace penstock {
namespace {

// The limit that a file holds; INT64_MAX for none ("max", or no such file).
int64_t LimitIn(const std::string& file) {
  std::ifstream in(file);
  std::string word;
  uint64_t bytes = 0;
  if (!(in >> word) || !absl::SimpleAtoi(word, &bytes)) return INT64_MAX;
  return static_cast<int64_t>(std::min<uint64_t>(bytes, INT64_MAX));
}

// The least limit of the group and of those that it is in. Where a container sees its own group
// as the uppermost, folders of the others are not there.
int64_t LeastLimit(const std::string& groups, std::string group, const std::string& file) {
  int64_t least = LimitIn(absl::StrCat(groups, "/", file));
  while (group.size() > 1) {
    least = std::min(least, LimitIn(absl::StrCat(groups, group, "/", file)));
    group.resize(group.rfind('/'));
  }
  return least;
}

}  // namespace

int64_t UsableMemoryOf(const std::string& root, int64_t machine_bytes) {
  int64_t usable = machine_bytes;
  const std::string groups = absl::StrCat(root, "/sys/fs/cgroup");
  std::ifstream in(absl::StrCat(root, "/proc/self/cgroup"));
  for (std::string line; std::getline(in, line);) {
    // "0::/group" of v2, "4:cpu,memory:/group" of v1.
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    // A group of another namespace ("/../…") has no folder here.
    if (parts.size() != 3 || !absl::StartsWith(parts[2], "/")) continue;
    const std::string group = absl::StrContains(parts[2], "/..") ? "/" : parts[2];
    if (parts[0] == "0" && parts[1].empty()) {
      usable = std::min(usable, LeastLimit(groups, group, "memory.max"));
    } else if (absl::c_linear_search(absl::StrSplit(parts[1], ','), "memory")) {
      usable = std::min(
          usable, LeastLimit(absl::StrCat(groups, "/memory"), group, "memory.limit_in_bytes"));
    }
  }
  return usable;
}

int64_t UsableMemory() {
  static const int64_t usable =
      UsableMemoryOf("", int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE));
  return usable;
}

}  // namespace penstock
