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
  const std::optional<int64_t> most = MostPartitions(name_space);
  // A fixed order is merged from all partitions at once.
  if (!most || !terms.deterministic || terms.partitions <= *most) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the job needs ", terms.partitions, " partitions at once, but namespace ",
      std::string(name_space), " may have ", *most, " (", PlaceOf(name_space, "partitions"), ")"));
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
  return of_each_.partitions > 0 ||
         std::ranges::any_of(named_, [](const auto& entry) { return entry.second.partitions > 0; });
}

std::optional<int64_t> Quotas::MostPartitions(std::string_view name_space) const {
  const int64_t limit = LimitsOf(name_space).partitions;
  return limit == 0 ? std::nullopt : std::optional(limit);
}

std::string Quotas::WhyPartitionsWait(std::string_view name_space, int64_t partitions) const {
  return absl::StrCat("namespace ", std::string(name_space), " has ", partitions, " of ",
                      *MostPartitions(name_space), " partitions (",
                      PlaceOf(name_space, "partitions"), ")");
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
