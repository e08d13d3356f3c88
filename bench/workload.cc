// SPDX-License-Identifier: Apache-2.0
#include "bench/workload.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock::bench {

const std::vector<const Workload*>& Workloads() {
  static const auto& all = *new std::vector<const Workload*>{
      &T1(),        &T1Zero(),     &T1OneAtATime(), &T1Compressible(),
      &T2(),        &Range(),      &I1(),           &I1Dct(),
      &I1Shuffle(), &I2(),         &H1(),           &V1(),
      &C1(),        &L1(),         &L1Zero(),       &R1(),
      &S1(),        &S1Cached(),   &S1InPlace(),    &L2(),
      &M1(),        &Coordinated()};
  return all;
}

absl::StatusOr<const Workload*> FindWorkload(std::string_view name) {
  std::vector<std::string> names;
  for (const Workload* workload : Workloads()) {
    const std::string known(workload->name());
    if (absl::EqualsIgnoreCase(known, std::string(name))) return workload;
    names.push_back(known);
  }
  return absl::NotFoundError(absl::StrCat("no workload is called '", std::string(name),
                                          "'; there are ", absl::StrJoin(names, ", ")));
}

}  // namespace penstock::bench
