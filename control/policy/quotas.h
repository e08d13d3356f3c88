// SPDX-License-Identifier: Apache-2.0
// Checks what a namespace may hold (docs/fair_shares.md). The errors name the limit, how much of it
// is used, where it is set and the way out. Pure: the dispatcher counts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "control/protocol/job_terms.h"
#include "penstock/server.h"

namespace penstock::control {

// The limits of all namespaces. A value; constant once made.
class Quotas {
 public:
  Quotas() = default;  // no limits
  // `of_each`: of the namespaces that `named` does not name.
  explicit Quotas(NamespaceLimits of_each,
                  const std::map<std::string, NamespaceLimits>& named = {});

  // Each returns OK, or ResourceExhausted with the reason.

  // Checks that a namespace with `jobs` unfinished jobs may get a further one.
  absl::Status CheckJobs(std::string_view name_space, int64_t jobs) const;
  // Checks that the namespace can ever run a job with these terms.
  absl::Status CheckTerms(std::string_view name_space, const JobTerms& terms) const;
  // Checks that a namespace with `bytes` of datasets may get `added` more.
  absl::Status CheckDatasetBytes(std::string_view name_space, int64_t bytes, int64_t added) const;
  // Checks that a namespace with `clients` that read may get a further one.
  absl::Status CheckClients(std::string_view name_space, int64_t clients) const;

  // Returns whether any namespace has a limit of partitions.
  bool LimitPartitions() const;
  // Returns the maximum number of partitions of the namespace that are placed at once; nullopt: no
  // limit. `permits`: of all workers.
  std::optional<int64_t> MostPartitions(std::string_view name_space, int64_t permits) const;
  // Returns why further partitions of a namespace with `partitions` placed ones wait. REQUIRES: the
  // namespace has a limit of partitions.
  std::string WhyPartitionsWait(std::string_view name_space, int64_t partitions,
                                int64_t permits) const;

 private:
  const NamespaceLimits& LimitsOf(std::string_view name_space) const;
  // Returns where the limit `max_<what>` is set, as in "max_jobs in [namespaces.x]".
  std::string PlaceOf(std::string_view name_space, std::string_view what) const;

  NamespaceLimits of_each_;
  std::map<std::string, NamespaceLimits, std::less<>> named_;
};

}  // namespace penstock::control
