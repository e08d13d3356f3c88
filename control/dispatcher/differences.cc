// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/differences.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock::control {

std::string FirstDifference(const std::vector<NodeFingerprint>& a,
                            const std::vector<NodeFingerprint>& b) {
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i >= a.size()) return absl::StrCat("node ", b[i].name, ", which only the new one has");
    if (i >= b.size()) return absl::StrCat("node ", a[i].name, ", which only the old one has");
    if (a[i] == b[i]) continue;
    if (a[i].name == b[i].name) return absl::StrCat("node ", a[i].name);
    return absl::StrCat("node ", a[i].name, " (now ", b[i].name, ")");
  }
  return "nothing";
}

std::string ToText(ShardingPolicy mode) {
  switch (mode) {
    case ShardingPolicy::kOff:
      return "OFF";
    case ShardingPolicy::kDynamic:
      return "DYNAMIC";
    case ShardingPolicy::kFile:
      return "FILE";
    case ShardingPolicy::kData:
      return "DATA";
    case ShardingPolicy::kFileOrData:
      return "FILE_OR_DATA";
    case ShardingPolicy::kHint:
      return "HINT";
  }
  return absl::StrCat(static_cast<int>(mode));
}

std::string Differences(const JobRecord& job, const GetOrCreateJobRequest& request,
                        const DatasetRecord& dataset) {
  std::vector<std::string> clauses;
  auto differ = [&](const char* field, const std::string& existing, const std::string& got) {
    if (existing == got) return;
    clauses.push_back(absl::StrCat("existing ", field, ": <", existing, ">; got <", got, ">"));
  };
  if (job.dataset->summary.fingerprint != dataset.summary.fingerprint) {
    clauses.push_back(
        absl::StrCat("the datasets differ in ",
                     FirstDifference(job.dataset->summary.nodes, dataset.summary.nodes)));
  }
  differ("processing mode", ToText(job.mode), ToText(request.mode));
  differ("keep", job.keep == Keep::kTaken ? "taken" : "committed",
         request.keep == Keep::kTaken ? "taken" : "committed");
  if (request.seed.has_value()) {
    differ("seed", absl::StrCat(job.seed), absl::StrCat(*request.seed));
  }
  return absl::StrJoin(clauses, "; ");
}

}  // namespace penstock::control
