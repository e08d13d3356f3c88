// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/messages/differences.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "control/policy/sharding.h"

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

static std::string ToText(Visitation visitation) {
  return visitation == Visitation::kExactlyOnce ? "exactly_once" : "at_least_once";
}

static std::string ToText(RemainderPolicy policy) {
  switch (policy) {
    case RemainderPolicy::kPad:
      return "pad";
    case RemainderPolicy::kDrop:
      return "drop";
    case RemainderPolicy::kError:
      return "error";
  }
  return absl::StrCat(static_cast<int>(policy));
}

static std::string ToText(RoundErrorPolicy on_error) {
  return on_error == RoundErrorPolicy::kSkipRound ? "skip_round" : "stop";
}

static std::string ToText(TargetWorkers target) {
  switch (target) {
    case TargetWorkers::kAuto:
      return "AUTO";
    case TargetWorkers::kAny:
      return "ANY";
    case TargetWorkers::kLocal:
      return "LOCAL";
  }
  return absl::StrCat(static_cast<int>(target));
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
  const JobTerms& had = job.terms;
  const JobTerms& got = request.terms;
  auto numbers_differ = [&](const char* field, int64_t existing, int64_t asked) {
    differ(field, absl::StrCat(existing), absl::StrCat(asked));
  };
  auto yes_or_no = [](bool value) { return value ? "yes" : "no"; };
  differ("processing mode", ToText(had.mode), ToText(got.mode));
  differ("ack_mode", had.ack_mode == AckMode::kOnDelivery ? "on_delivery" : "on_commit",
         got.ack_mode == AckMode::kOnDelivery ? "on_delivery" : "on_commit");
  differ("deterministic order", yes_or_no(had.deterministic), yes_or_no(got.deterministic));
  numbers_differ("partitions", had.partitions, got.partitions);
  differ("visitation", ToText(had.visitation), ToText(got.visitation));
  numbers_differ("num_consumers", had.num_consumers, got.num_consumers);
  numbers_differ("consumer_group's size", had.group_size, got.group_size);
  differ("remainder_policy", ToText(had.remainder_policy), ToText(got.remainder_policy));
  differ("on_error", ToText(had.on_error), ToText(got.on_error));
  differ("cross-trainer cache", yes_or_no(had.cross_trainer_cache),
         yes_or_no(got.cross_trainer_cache));
  differ("target workers", ToText(had.target_workers), ToText(got.target_workers));
  numbers_differ("max_bytes_in_flight", had.quota.max_bytes_in_flight,
                 got.quota.max_bytes_in_flight);
  numbers_differ("max_permits", had.quota.max_permits, got.quota.max_permits);
  numbers_differ("weight", had.share.weight, got.share.weight);
  numbers_differ("priority", had.share.priority, got.share.priority);
  if (request.seed.has_value()) {
    differ("seed", absl::StrCat(job.seed), absl::StrCat(*request.seed));
  }
  return absl::StrJoin(clauses, "; ");
}

}  // namespace penstock::control
