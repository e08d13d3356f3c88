// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/checks.h"

#include <algorithm>
#include <utility>

namespace penstock::doctor {

std::vector<Finding> Examine(const Probe& probe) {
  std::vector<Finding> all;
  for (auto* check :
       {CheckRdma, CheckMemory, CheckUcx, CheckGpu, CheckNetwork, CheckProcessors, CheckClocks}) {
    for (Finding& finding : check(probe)) all.push_back(std::move(finding));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return all;
}

}  // namespace penstock::doctor
