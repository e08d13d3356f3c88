// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/check/order.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/protocol/positions.h"

namespace penstock::simulator {
namespace {

// Returns the position after `position` that has an element and belongs to the same consumer; -1:
// there is none.
int64_t NextPosition(int64_t position, const std::vector<std::optional<Index>>& ends,
                     int64_t consumers) {
  const auto partitions = static_cast<int64_t>(ends.size());
  int64_t last = -1;
  for (int64_t p = 0; p < partitions; ++p) {
    last = std::max(last, (*ends[static_cast<size_t>(p)] - 1) * partitions + p);
  }
  for (position += consumers; position <= last; position += consumers) {
    const auto partition = static_cast<size_t>(position % partitions);
    if (position / partitions < *ends[partition]) return position;
  }
  return -1;
}

std::string CheckHistory(const History& history, const std::vector<std::optional<Index>>& ends,
                         int64_t consumers) {
  const protocol::Positions positions{.partitions = static_cast<int64_t>(ends.size()),
                                      .consumers = consumers};
  std::optional<int64_t> last;
  for (const Got& got : history.got) {
    const int64_t position = positions.At(got.key.partition, got.key.index);
    const std::string element =
        absl::StrCat(history.name, " got ", ToString(got.key.partition), ", index ", got.key.index);
    if (consumers > 1 &&
        (got.consumer != position % consumers || got.round != position / consumers)) {
      return absl::StrCat("wrong place: ", element, " in step ", got.round, " as consumer ",
                          got.consumer, ", but its place is step ", position / consumers,
                          " of consumer ", position % consumers);
    }
    if (last.has_value() && position != NextPosition(*last, ends, consumers)) {
      return absl::StrCat("wrong order: ", element, ", which has position ", position,
                          ", after position ", *last, ", where position ",
                          NextPosition(*last, ends, consumers), " is next");
    }
    last = position;
  }
  return "";
}

}  // namespace

std::vector<std::string> CheckOrder(const Histories& histories,
                                    const std::vector<std::optional<Index>>& ends,
                                    int64_t consumers) {
  std::vector<std::string> violations;
  const bool ends_known =
      std::all_of(ends.begin(), ends.end(), [](const auto& end) { return end.has_value(); });
  if (!ends_known) return {"wrong order: not all partitions have an end"};
  for (const History& history : histories) {
    std::string violation = CheckHistory(history, ends, consumers);
    if (!violation.empty()) violations.push_back(std::move(violation));
  }
  return violations;
}

}  // namespace penstock::simulator
