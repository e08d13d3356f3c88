// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/filled.h"

#include "control/observe/metrics.h"

namespace penstock::transfer {

namespace {

constexpr std::array<const char*, kWaysFilled> kNames = {"in_place", "no_slot", "for_another",
                                                         "elsewhere"};

Counter& OfProcess(size_t how) {
  static const auto& counters = *new auto([] {
    std::array<Counter*, kWaysFilled> made;
    for (size_t i = 0; i < made.size(); ++i) {
      made[i] = &ProcessMetrics().GetCounter(
          "penstock_client_filled_total",
          "Elements of 64 KiB and more over shared memory, by how the worker filled the slot",
          {{"how", kNames[i]}});
    }
    return made;
  }());
  return *counters[how];
}

}  // namespace

int64_t FilledOfProcess(Filled how) {
  return OfProcess(static_cast<size_t>(how)).value();
}

void FilledCounts::Add(Filled how) {
  const auto at = static_cast<size_t>(how);
  counts_[at].fetch_add(1, std::memory_order_relaxed);
  OfProcess(at).Add();
}

}  // namespace penstock::transfer
