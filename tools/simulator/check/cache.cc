// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/check/cache.h"

#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::simulator {
namespace {

std::string CheckWindow(const History& history, const ExpectedElements& expected, bool calm) {
  std::set<std::tuple<IterationId, PartitionId, Placement, Index>> seen;
  std::map<std::pair<IterationId, PartitionId>, Index> latest;
  for (const Got& got : history.got) {
    const ElementKey& key = got.key;
    const std::string element =
        absl::StrCat(history.name, " got ", ToString(key.partition), ", index ", key.index);
    if (!seen.emplace(key.iteration, key.partition, got.placement, key.index).second) {
      return absl::StrCat("doubled: ", element, " twice under ", ToString(got.placement));
    }
    if (got.value != expected.value(key.index % expected.count)) {
      return absl::StrCat("wrong: ", element, " with the value ", got.value, " instead of ",
                          expected.value(key.index % expected.count));
    }
    const auto [at, is_new] = latest.emplace(std::pair(key.iteration, key.partition), key.index);
    if (calm && !is_new && key.index < at->second) {
      return absl::StrCat("wrong order: ", element, " after index ", at->second);
    }
    at->second = key.index;
  }
  return "";
}

}  // namespace

std::vector<std::string> CheckCache(const Histories& histories, const ExpectedElements& expected,
                                    bool calm) {
  std::vector<std::string> violations;
  for (const History& history : histories) {
    std::string violation = CheckWindow(history, expected, calm);
    if (!violation.empty()) violations.push_back(std::move(violation));
  }
  return violations;
}

}  // namespace penstock::simulator
