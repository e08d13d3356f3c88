// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/dataset_cache.h"

#include <iterator>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "dataplane/dataset/graph/definition.h"
#include "dataplane/memory/catch_exhausted.h"
#include "include/status_macros.h"

namespace penstock::worker {
namespace {

// The number of unused definitions that are kept, and of their bytes. A definition takes a few
// kilobytes, unless it contains tensors.
constexpr size_t kKeptUnused = 16;
constexpr size_t kKeptUnusedBytes = size_t{16} << 20;

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

constexpr char kRefusal[] = "penstock.worker.refuses_dataset";

absl::Status Refusal(absl::Status why) {
  why.SetPayload(kRefusal, absl::Cord());
  return why;
}

// Clients do not register a dataset that reads from a service. A definition that nevertheless does
// would make this worker connect to an address of the definition's choice.
absl::Status CheckReadsNoService(const Dataset& dataset) {
  absl::Status status;
  VisitNodes(*NodeOf(dataset), [&](const Dataset::Node& node, int number) {
    if (node.op != "Distribute") return;
    status.Update(absl::PermissionDeniedError(absl::StrCat(
        NodeName(node, number), ": workers do not read from a service; use Distribute once")));
  });
  return status;
}

}  // namespace

bool RefusesDataset(const absl::Status& error) {
  return error.GetPayload(kRefusal).has_value();
}

DatasetCache::Result DatasetCache::Get(std::string_view id, uint64_t edition) {
  Key key(id, edition);
  const auto making = std::make_shared<Making>();
  {
    MutexLock lock(mu_);
    if (auto found = known_.find(key); found != known_.end()) return found->second;
    const auto [its, is_first] = in_the_making_.try_emplace(key, making);
    if (!is_first) {
      const std::shared_ptr<Making> of_another = its->second;
      made_.Wait(lock, [&]() REQUIRES(mu_) { return of_another->has_value(); });
      return **of_another;
    }
  }
  Result definition = CatchExhausted("a definition", [&] { return Make(key); });
  MutexLock lock(mu_);
  *making = definition;
  in_the_making_.erase(key);
  made_.NotifyAll();
  if (!definition.ok()) return definition;
  Evict();
  known_.emplace(std::move(key), *definition);
  return definition;
}

DatasetCache::Result DatasetCache::Make(const Key& key) const {
  ASSIGN_OR_RETURN(control::GetDatasetAnswer answer, fetch_(key.first, key.second));
  absl::StatusOr<Dataset> dataset = ParseDataset(answer.definition);
  if (!dataset.ok()) {
    const absl::Status why = Annotate(dataset.status(), "in the definition of dataset ", key.first);
    return absl::IsFailedPrecondition(why) ? Refusal(why) : why;
  }
  if (dataset->fingerprint() != answer.summary.fingerprint) {
    return Refusal(absl::FailedPreconditionError(absl::StrCat(
        "dataset ", key.first, " has fingerprint ", absl::Hex(answer.summary.fingerprint),
        " at the dispatcher, but ", absl::Hex(dataset->fingerprint()),
        " on this worker: its release would prepare other elements. Run a worker of the release "
        "that registered the dataset, or end the job and begin another one")));
  }
  RETURN_IF_ERROR(CheckReadsNoService(*dataset));
  auto profile = std::make_unique<Profile>(NodeOf(*dataset));
  return std::make_shared<const Definition>(Definition{
      answer.definition.size(), *std::move(dataset), PlanOf(answer.summary), std::move(profile)});
}

std::vector<control::DatasetWork> DatasetCache::Work() const {
  MutexLock lock(mu_);
  std::vector<control::DatasetWork> work;
  for (const auto& [key, definition] : known_)
    work.push_back({key.first, definition->profile->Stats()});
  return work;
}

void DatasetCache::Evict() {
  size_t unused = 0, bytes = 0;
  for (auto it = known_.begin(); it != known_.end();) {
    const bool in_use = it->second.use_count() > 1;
    const size_t its = it->second->bytes;
    const bool goes = !in_use && (unused + 1 >= kKeptUnused || bytes + its > kKeptUnusedBytes);
    if (!in_use && !goes) {
      ++unused;
      bytes += its;
    }
    it = goes ? known_.erase(it) : std::next(it);
  }
}

}  // namespace penstock::worker
