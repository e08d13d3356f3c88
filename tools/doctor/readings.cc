// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/readings.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace penstock::doctor {
namespace {

struct Group {
  bool version2 = false;
  std::string mount;  // folder of the topmost visible group
  std::string path;   // path of this process's group below it: "/a/b", or "" for the topmost
};

// Returns the control group that limits `controller`: of version 1 if the controller is mounted
// there, else of version 2. In a container the path may be the host's, which is not below the
// mount. The limits are then in the topmost folder.
std::optional<Group> GroupOf(const Probe& probe, const std::string& controller) {
  std::optional<Group> found;
  for (absl::string_view line :
       absl::StrSplit(probe.Read("/proc/self/cgroup").value_or(""), '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::string path = parts[2] == "/" ? "" : parts[2];
    if (parts[0] == "0" && parts[1].empty()) {
      if (!found) found = Group{.version2 = true, .mount = "/sys/fs/cgroup", .path = path};
      continue;
    }
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    if (std::find(controllers.begin(), controllers.end(), controller) == controllers.end()) {
      continue;
    }
    found = Group{.mount = absl::StrCat("/sys/fs/cgroup/", controller), .path = path};
  }
  return found;
}

// Returns the smallest value that `limit_of` returns for the group's folder and the folders above
// it.
template <class Value, class LimitOf>
std::optional<Value> Tightest(Group group, LimitOf limit_of) {
  std::optional<Value> least;
  while (true) {
    const std::optional<Value> here = limit_of(absl::StrCat(group.mount, group.path));
    if (here && (!least || *here < *least)) least = here;
    if (group.path.empty()) return least;
    const size_t slash = group.path.rfind('/');
    group.path.resize(slash == std::string::npos ? 0 : slash);
  }
}

std::optional<double> Quota(int64_t quota_us, int64_t period_us) {
  if (quota_us <= 0 || period_us <= 0) return std::nullopt;
  return static_cast<double>(quota_us) / static_cast<double>(period_us);
}

}  // namespace

std::string BytesText(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  std::string number = absl::StrFormat("%.1f", bytes);
  if (absl::EndsWith(number, ".0")) number.resize(number.size() - 2);
  return absl::StrCat(number, " ", kUnits[unit]);
}

std::optional<int64_t> ReadNumber(const Probe& probe, const std::string& path) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(probe.Read(path).value_or(""), &number)) return std::nullopt;
  return number;
}

std::vector<std::string> ReadWords(const Probe& probe, const std::string& path) {
  return absl::StrSplit(probe.Read(path).value_or(""), absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
}

std::optional<std::string> ReadField(const Probe& probe, const std::string& path,
                                     const std::string& key) {
  const std::optional<std::string> text = probe.Read(path);
  if (!text) return std::nullopt;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (parts.size() == 2 && absl::StripAsciiWhitespace(parts[0]) == key) {
      return std::string(absl::StripAsciiWhitespace(parts[1]));
    }
  }
  return std::nullopt;
}

std::optional<std::string> ReadChoice(const Probe& probe, const std::string& path) {
  for (const std::string& word : ReadWords(probe, path)) {
    if (word.size() > 2 && word.front() == '[' && word.back() == ']') {
      return word.substr(1, word.size() - 2);
    }
  }
  return std::nullopt;
}

int CountOfList(const std::string& list) {
  int count = 0;
  for (absl::string_view range : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    const std::vector<absl::string_view> ends = absl::StrSplit(range, '-');
    int first = 0, last = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
        !absl::SimpleAtoi(ends.back(), &last) || last < first) {
      return 0;
    }
    count += last - first + 1;
  }
  return count;
}

int CountNumaNodes(const Probe& probe) {
  return CountOfList(probe.Read("/sys/devices/system/node/online").value_or("0"));
}

bool HasCapability(const Probe& probe, int bit) {
  const std::string mask = ReadField(probe, "/proc/self/status", "CapEff").value_or("");
  uint64_t bits = 0;
  return absl::SimpleHexAtoi(mask, &bits) && (bits >> bit & 1) != 0;
}

bool InFirstUserNamespace(const Probe& probe) {
  return ReadWords(probe, "/proc/self/uid_map") == std::vector<std::string>{"0", "0", "4294967295"};
}

std::optional<int64_t> GroupMemoryBytes(const Probe& probe) {
  const std::optional<Group> group = GroupOf(probe, "memory");
  if (!group) return std::nullopt;
  const char* file = group->version2 ? "/memory.max" : "/memory.limit_in_bytes";
  std::optional<int64_t> limit = Tightest<int64_t>(*group, [&](const std::string& folder) {
    return ReadNumber(probe, folder + file);  // "max" is not a number: no limit
  });
  // If there is no limit, version 1 shows the largest number of bytes in whole pages.
  if (limit && *limit >= int64_t{1} << 62) return std::nullopt;
  return limit;
}

std::optional<double> GroupCpus(const Probe& probe) {
  const std::optional<Group> group = GroupOf(probe, "cpu");
  if (!group) return std::nullopt;
  return Tightest<double>(*group, [&](const std::string& folder) -> std::optional<double> {
    if (!group->version2) {
      return Quota(ReadNumber(probe, folder + "/cpu.cfs_quota_us").value_or(0),
                   ReadNumber(probe, folder + "/cpu.cfs_period_us").value_or(0));
    }
    const std::vector<std::string> words = ReadWords(probe, folder + "/cpu.max");
    int64_t quota = 0, period = 0;
    if (words.size() != 2 || !absl::SimpleAtoi(words[0], &quota) ||
        !absl::SimpleAtoi(words[1], &period)) {
      return std::nullopt;
    }
    return Quota(quota, period);
  });
}

}  // namespace penstock::doctor
