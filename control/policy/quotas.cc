// SPDX-License-Identifier: Apache-2.0
#include "control/policy/quotas.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace penstock::control {

Quotas::Quotas(NamespaceLimits of_each, const std::map<std::string, NamespaceLimits>& named)
    : of_each_(of_each), named_(named.begin(), named.end()) {}

absl::Status Quotas::CheckJobs(std::string_view name_space, int64_t jobs) const {
  const int64_t limit = LimitsOf(name_space).jobs;
  if (limit == 0 || jobs < limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("namespace ", std::string(name_space), " has ", jobs, " of ", limit, " jobs (",
                   PlaceOf(name_space, "jobs"),
                   "); wait until one finishes, or run `penstock jobs cancel` for one"));
}

absl::Status Quotas::CheckTerms(std::string_view name_space, const JobTerms& terms) const {
  const int64_t limit = LimitsOf(name_space).partitions;
  // A fixed order is merged from all partitions at once. A percentage may allow more later.
  if (limit == 0 || !terms.deterministic || terms.partitions <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the job needs ", terms.partitions, " partitions at once, but namespace ",
      std::string(name_space), " may have ", limit, " (", PlaceOf(name_space, "partitions"), ")"));
}

absl::Status Quotas::CheckDatasetBytes(std::string_view name_space, int64_t bytes,
                                       int64_t added) const {
  const int64_t limit = LimitsOf(name_space).dataset_bytes;
  if (limit == 0 || bytes + added <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "namespace ", std::string(name_space), " has ", bytes, " of ", limit,
      " bytes of datasets, and this one has ", added, " (", PlaceOf(name_space, "dataset_bytes"),
      "); remove jobs that are over, and unregister datasets that no job reads"));
}

absl::Status Quotas::CheckClients(std::string_view name_space, int64_t clients) const {
  const int64_t limit = LimitsOf(name_space).clients;
  if (limit == 0 || clients < limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("namespace ", std::string(name_space), " has ",
                                                   clients, " of ", limit, " clients (",
                                                   PlaceOf(name_space, "clients"), ")"));
}

bool Quotas::LimitPartitions() const {
  const auto limits = [](const NamespaceLimits& of) {
    return of.partitions > 0 || of.worker_percent > 0;
  };
  return limits(of_each_) ||
         std::ranges::any_of(named_, [&](const auto& entry) { return limits(entry.second); });
}

std::optional<int64_t> Quotas::MostPartitions(std::string_view name_space, int64_t permits) const {
  const NamespaceLimits& limits = LimitsOf(name_space);
  std::optional<int64_t> most;
  if (limits.worker_percent > 0) most = std::max<int64_t>(1, permits * limits.worker_percent / 100);
  if (limits.partitions > 0) most = std::min(limits.partitions, most.value_or(limits.partitions));
  return most;
}

std::string Quotas::WhyPartitionsWait(std::string_view name_space, int64_t partitions,
                                      int64_t permits) const {
  const NamespaceLimits& limits = LimitsOf(name_space);
  const int64_t most = *MostPartitions(name_space, permits);
  const std::string has = absl::StrCat("namespace ", std::string(name_space), " has ", partitions,
                                       " of ", most, " partitions");
  if (most == limits.partitions)
    return absl::StrCat(has, " (", PlaceOf(name_space, "partitions"), ")");
  return absl::StrCat(has, ", ", limits.worker_percent, " % of ", permits, " permits (",
                      PlaceOf(name_space, "worker_percent"), ")");
}

const NamespaceLimits& Quotas::LimitsOf(std::string_view name_space) const {
  const auto found = named_.find(name_space);
  return found == named_.end() ? of_each_ : found->second;
}

std::string Quotas::PlaceOf(std::string_view name_space, std::string_view what) const {
  const std::string its(name_space), key = absl::StrCat("max_", std::string(what));
  if (!named_.contains(name_space)) return absl::StrCat(key, "_per_namespace");
  return absl::StrCat(key, " in [namespaces.", its, "]");
}

}  // namespace penstock::control
