// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/filled.h"

#include <string>

#include "control/observe/metrics.h"

namespace penstock::transfer {

std::string_view NameOf(Filled how) {
  static constexpr std::array<std::string_view, kWaysFilled> kNames = {"in_place", "no_slot",
                                                                       "for_another", "elsewhere"};
  return kNames[static_cast<size_t>(how)];
}

namespace {

Counter& OfProcess(size_t how) {
  static const auto& counters = *new auto([] {
    std::array<Counter*, kWaysFilled> made;
    for (size_t i = 0; i < made.size(); ++i) {
      made[i] = &ProcessMetrics().GetCounter(
          "penstock_client_filled_total",
          "Elements of 64 KiB and more over shared memory, by how the worker filled the slot",
          {{"how", std::string(NameOf(static_cast<Filled>(i)))}});
    }
    return made;
  }());
  return *counters[how];
}

}  // namespace

void FilledCounts::Add(Filled how) {
  const auto at = static_cast<size_t>(how);
  counts_[at].fetch_add(1, std::memory_order_relaxed);
  OfProcess(at).Add();
}

std::array<int64_t, kWaysFilled> FilledCounts::Now() const {
  std::array<int64_t, kWaysFilled> now;
  for (size_t i = 0; i < now.size(); ++i) now[i] = counts_[i].load(std::memory_order_relaxed);
  return now;
}

}  // namespace penstock::transfer
