// SPDX-License-Identifier: Apache-2.0
// Divides a job in a static mode into shards, and checks that a client reads suitable workers.
#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/job_registry.h"
#include "control/policy/sharding.h"

namespace penstock::control {

absl::Status JobRegistry::CheckLocalWorkers(const JobRecord& job, const ClientHello& hello) const {
  if (job.terms.target_workers != TargetWorkers::kLocal) return absl::OkStatus();
  for (const auto& [id, worker] : state_.workers) {
    if (hello.process && worker.process == hello.process) return absl::OkStatus();
  }
  if (IsStatic(job.terms.mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("Static sharding policy ", ToText(job.terms.mode),
                     " requires local tf.data workers, but no local worker is found. Start a "
                     "WorkerServer in the trainer's process before it reads."));
  }
  return absl::InvalidArgumentError(
      "Local reads require local tf.data workers, but no local worker is found. Start a "
      "WorkerServer in the trainer's process before it reads, or read from target_workers AUTO.");
}

absl::StatusOr<Division> JobRegistry::DivisionOf(const JobRecord& job, const ClientHello& hello,
                                                 absl::Span<const UsableWorker> usable) const {
  if (!IsStatic(job.terms.mode)) return Division();
  const bool listed = !options_.worker_addresses.empty();
  const bool local = job.terms.target_workers == TargetWorkers::kLocal;
  if (local && !listed) {
    return absl::InvalidArgumentError(
        absl::StrCat("Static sharding policy ", ToText(job.terms.mode),
                     " with target_workers LOCAL needs the dispatcher's worker_addresses, which "
                     "assign a shard to each local worker"));
  }
  const int64_t asked = job.terms.partitions;
  Division division;
  division.count = static_cast<int64_t>(options_.worker_addresses.size());
  if (listed && asked > 0 && asked != division.count) {
    return absl::InvalidArgumentError(absl::StrCat("partitions is ", asked,
                                                   ", but the dispatcher's worker_addresses has ",
                                                   division.count, " entries; omit partitions"));
  }
  if (!listed && asked > 0) {
    division.count = asked;
  } else if (!listed) {
    const auto read = std::count_if(usable.begin(), usable.end(), [&](const UsableWorker& its) {
      const WorkerRecord& worker = *state_.FindWorker(its.id);
      return Reads(job.terms.target_workers, worker.process == hello.process, worker.tags);
    });
    if (read == 0) {
      return absl::UnavailableError(absl::StrCat(
          "the job waits for its first worker: static sharding policy ", ToText(job.terms.mode),
          " makes one shard for each worker that exists when the job is first read; start the "
          "workers first, or set the dispatcher's worker_addresses"));
    }
    division.count = read;
  }
  absl::StatusOr<ShardingPolicy> mode =
      ResolveMode(job.dataset->summary, job.terms.mode, division.count);
  if (!mode.ok()) return mode.status();
  division.mode = *mode;
  if (local && job.anonymous) {  // no other client will read the other shards
    std::set<int64_t> places;
    for (const auto& [id, worker] : state_.workers) {
      if (worker.process == hello.process && worker.place >= 0) places.insert(worker.place);
    }
    if (places.empty()) {
      return absl::FailedPreconditionError(
          "the local worker has no place in the dispatcher's worker_addresses; restart it");
    }
    division.shards.assign(places.begin(), places.end());
  } else {
    division.shards.resize(static_cast<size_t>(division.count));
    std::iota(division.shards.begin(), division.shards.end(), 0);
  }
  return division;
}

}  // namespace penstock::control
