// SPDX-License-Identifier: Apache-2.0
#include "control/observe/fail_point.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace penstock {
namespace {

struct Armed {
  Armed(std::string name, int64_t left) : name(std::move(name)), left(left) {}
  std::string name;
  std::atomic<int64_t> left;  // after this many further passes, the process is killed
};

// Returns the fail points from the environment, which are read once. Usually empty.
std::deque<Armed>& AllArmed() {
  static auto* const all = [] {
    auto* armed = new std::deque<Armed>;
    const char* setting = std::getenv("PENSTOCK_FAIL_POINT");
    if (setting == nullptr) return armed;
    for (absl::string_view one : absl::StrSplit(setting, ',', absl::SkipEmpty())) {
      std::pair<std::string, std::string> parts = absl::StrSplit(one, absl::MaxSplits(':', 1));
      int64_t pass = 1;
      if (!parts.second.empty() && !absl::SimpleAtoi(parts.second, &pass)) {
        std::fprintf(stderr, "PENSTOCK_FAIL_POINT: \"%s\" is not name:number\n", setting);
        std::exit(2);
      }
      armed->emplace_back(parts.first, pass);
    }
    return armed;
  }();
  return *all;
}

}  // namespace

void FailPoint(std::string_view name) {
  static std::deque<Armed>& armed = AllArmed();
  for (Armed& point : armed) {
    if (point.name == name && --point.left == 0) std::raise(SIGKILL);
  }
}

}  // namespace penstock
