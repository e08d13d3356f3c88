// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/dataset_cache.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/definition.h"
#include "penstock/status.h"

namespace penstock::worker {
namespace {

// Definitions are kilobytes, unless they hold tensors.
constexpr size_t kKeptUnused = 16;

SplitPlan PlanOf(const control::DatasetSummary& summary) {
  SplitPlan plan;
  for (const control::SplitProvider& provider : summary.plan) {
    plan.providers.push_back({.node = provider.node,
                              .count = provider.count,
                              .shuffled = provider.shuffled,
                              .seed = provider.seed.value_or(0),
                              .files = provider.files});
  }
  return plan;
}

absl::Status CheckFingerprint(const std::string& id, const char* whose, uint64_t asked,
                              uint64_t found) {
  if (asked == found) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("dataset ", id, " has fingerprint ", absl::Hex(found), " ", whose,
                   ", but the job reads fingerprint ", absl::Hex(asked),
                   "; register it again, and run the same release everywhere"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Definition>> DatasetCache::Get(std::string_view id,
                                                                    uint64_t fingerprint) {
  Key key(id, fingerprint);
  {
    std::lock_guard lock(mu_);
    if (auto found = known_.find(key); found != known_.end()) return found->second;
  }
  PENSTOCK_ASSIGN_OR_RETURN(control::GetDatasetAnswer answer, fetch_(id));
  PENSTOCK_RETURN_IF_ERROR(
      CheckFingerprint(key.first, "at the dispatcher", fingerprint, answer.summary.fingerprint));
  absl::StatusOr<Dataset> dataset = ParseDataset(answer.definition);
  if (!dataset.ok()) return Annotate(dataset.status(), "in the definition of dataset ", key.first);
  PENSTOCK_RETURN_IF_ERROR(
      CheckFingerprint(key.first, "on this worker", fingerprint, dataset->fingerprint()));
  auto profile = std::make_unique<Profile>(dataset->node());
  auto definition = std::make_shared<const Definition>(
      Definition{*std::move(dataset), PlanOf(answer.summary), std::move(profile)});
  std::lock_guard lock(mu_);
  Evict();
  return known_.emplace(std::move(key), std::move(definition)).first->second;
}

std::vector<control::DatasetWork> DatasetCache::Work() const {
  std::lock_guard lock(mu_);
  std::vector<control::DatasetWork> work;
  for (const auto& [key, definition] : known_)
    work.push_back({key.first, definition->profile->Stats()});
  return work;
}

void DatasetCache::Evict() {
  size_t unused = 0;
  for (auto it = known_.begin(); it != known_.end();) {
    const bool in_use = it->second.use_count() > 1;
    it = !in_use && ++unused >= kKeptUnused ? known_.erase(it) : std::next(it);
  }
}

}  // namespace penstock::worker
