// SPDX-License-Identifier: Apache-2.0
// What happens as time passes: finds deaths, and jobs that nobody needs any more.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "control/dispatcher/core.h"
#include "control/dispatcher/counters.h"
#include "control/dispatcher/transaction.h"
#include "control/sync/mutex.h"

namespace penstock::control {
namespace {

constexpr absl::Duration kBetweenEstimates = absl::Seconds(2);

}  // namespace

// A longer time between two sweeps means that the dispatcher itself was stalled. The bound is
// shorter than the timeouts after which peers are declared dead, unless these are 500 ms or less.
absl::Duration Core::Stall() const {
  const absl::Duration timeout = std::min(options_.worker_timeout, options_.client_timeout);
  return std::min(options_.stall, std::max(timeout / 2, absl::Milliseconds(500)));
}

void Core::Sweep() {
  Transaction txn(*this);
  const absl::Time now = options_.now();
  if (last_sweep_ != absl::InfinitePast() && now - last_sweep_ > Stall()) {
    txn.Log("stalled", {{"for", absl::FormatDuration(now - last_sweep_)}});
    client_leases_.HolderStalled(now);
    worker_leases_.HolderStalled(now);
    down_.clear();
  }
  last_sweep_ = now;
  if (const uint64_t idles = idles_; idles != idles_seen_ || idle_at_ == absl::InfinitePast()) {
    idles_seen_ = idles;
    idle_at_ = now;
  }
  const bool overloaded = now - idle_at_ > Stall();
  if (overloaded && !overloaded_)
    txn.Log("overloaded", {{"for", absl::FormatDuration(now - idle_at_)}});
  overloaded_ = overloaded;
  if (overloaded) {
    client_leases_.HolderStalled(now);
    worker_leases_.HolderStalled(now);
  }
  txn.Guard([&]() REQUIRES(mu_) { SuspectSilent(txn, now); });
  txn.Guard([&]() REQUIRES(mu_) { ExpireLeases(txn, now); });
  txn.Guard([&]() REQUIRES(mu_) { MoveFromUnreached(txn, now); });
  txn.Guard([&]() REQUIRES(mu_) { EndReservations(txn); });
  txn.Guard([&]() REQUIRES(mu_) { RetireIterations(txn); });
  txn.Guard([&]() REQUIRES(mu_) { CollectJobs(txn, now); });
  CollectDatasets(txn, now);
  EstimateWorkers(txn, now);
}

// A worker whose stream broke and whose port refuses connections is dead: its lease need not
// expire.
void Core::ProbeBrokenWorkers() {
  std::vector<std::pair<WorkerId, std::string>> broken;
  {
    MutexLock lock(mu_);
    for (const auto& [id, worker] : state_.workers) {
      if (workers_.count(id) == 0) broken.push_back({id, worker.address});
    }
  }
  for (const auto& [id, address] : broken) {
    if (!options_.port_refuses(address)) continue;
    Transaction txn(*this);
    txn.Guard([&, id = id]() REQUIRES(mu_) {
      if (workers_.count(id) > 0 || state_.FindWorker(id) == nullptr) return;
      LoseWorker(txn, id, "its stream broke and its port refuses connections");
    });
  }
}

void Core::NoteHello(bool recovered, absl::Time now) {
  if (recovered || to_come_since_ == absl::InfiniteFuture()) to_come_since_ = now;
}

void Core::ExpireLeases(Transaction& txn, absl::Time now) {
  for (WorkerId worker : worker_leases_.Expired(now, options_.worker_timeout)) {
    const auto peer = workers_.find(worker);
    if (peer != workers_.end() && peer->second->arriving > 0) continue;
    if (workers_to_come_.contains(worker) && now - to_come_since_ < options_.worker_timeout)
      continue;
    if (state_.FindWorker(worker) == nullptr) {
      worker_leases_.Forget(worker);
    } else {
      LoseWorker(txn, worker,
                 absl::StrCat("silent for ", absl::FormatDuration(options_.worker_timeout)));
    }
  }
  if (now < leases_of_earlier_lives_) return;
  for (const SessionKey& key : client_leases_.Expired(now, options_.client_timeout)) {
    const auto peer = sessions_.find(key);
    if (peer != sessions_.end() && peer->second->arriving > 0) continue;
    if (clients_to_come_.contains(key) && now - to_come_since_ < options_.client_timeout) continue;
    const absl::Time heard = now - client_leases_.SilentFor(key, now);
    ForgetLease(key);
    const IterationState* iteration = state_.FindIteration(key.first);
    if (iteration == nullptr || !GoesOn(*iteration)) continue;
    txn.Log("client_dead", {{"client", absl::StrCat(absl::Hex(key.second.value()))},
                            {"iteration", absl::StrCat(key.first.value())}});
    DeclareConsumerDead(txn, key, heard);
    txn.Settle(key.first,
               protocol::OnReaderExpired(iteration->record, txn.GetContext(key.first), key.second));
  }
}

// Reports how many workers are wanted; starts and stops none.
void Core::EstimateWorkers(Transaction& txn, absl::Time now) {
  if (now < estimated_ + kBetweenEstimates) return;
  estimated_ = now;
  const int64_t before = scaling_.latest().workers;
  const Scaling::Estimate& estimate =
      scaling_.Decide(state_, static_cast<int64_t>(workers_.size()), now);
  SetWantedWorkers(estimate.workers);
  if (!estimate.changed) return;
  txn.Log("wanted_workers", {{"workers", absl::StrCat(estimate.workers)},
                             {"before", absl::StrCat(before)},
                             {"there", absl::StrCat(workers_.size())},
                             {"why", estimate.why}});
}

// Returns whether a named job that was read, and is not over, may be forgotten once nobody reads
// it. False if a trainer may come back for its part: with keep = committed, and in mode DYNAMIC
// (except with cross_trainer_cache) unless gc_dynamic_sharding_jobs.
bool Core::Collectable(const JobRecord& job) const {
  const JobTerms& terms = job.terms;
  const bool history = terms.mode == ShardingPolicy::kDynamic && !terms.cross_trainer_cache;
  if (terms.keep == Keep::kCommitted || (history && !options_.gc_dynamic_sharding_jobs)) {
    return false;
  }
  const std::vector<IterationId> iterations = state_.IterationsOf(job.id);
  return !state_.PastOf(job.id).empty() ||
         std::any_of(iterations.begin(), iterations.end(), [this](IterationId id) REQUIRES(mu_) {
           return !state_.iterations.at(id).record.readers.empty();
         });
}

void Core::RetireIterations(Transaction& txn) {
  std::vector<IterationId> over;
  for (const auto& [id, iteration] : state_.iterations) {
    if (iteration.record.finished && !iteration.failure.has_value() && !IsConnected(id))
      over.push_back(id);
  }
  for (const IterationId id : over) {
    ForgetIteration(id);
    txn.Apply(IterationRetired{id});
  }
}

absl::Duration Core::TimeToLive(const JobRecord& job) const {
  return job.anonymous || state_.IsOver(job) || Collectable(job) ? options_.job_gc_timeout
                                                                 : options_.abandoned_job_ttl;
}

std::string Core::OwedOf(JobId job) const {
  std::vector<std::string> parts;
  for (const IterationId of : state_.IterationsOf(job)) {
    const IterationState& iteration = state_.iterations.at(of);
    if (!GoesOn(iteration) || iteration.record.finished) continue;
    if (!iteration.record.closed) {
      parts.push_back(
          absl::StrCat("repetition ", iteration.repetition, ", which is not read to its end"));
      continue;
    }
    int64_t owed = 0;
    for (size_t p = 0; p < iteration.record.partitions.size(); ++p)
      owed += protocol::Owed(iteration.record, PartitionId(p + 1)).size();
    parts.push_back(
        absl::StrCat(owed, " elements of repetition ", iteration.repetition, " not committed"));
  }
  return absl::StrJoin(parts, ", ");
}

// Forgets jobs without readers. After job_gc_timeout, elements that closed iterations still owe are
// given up, except with keep = committed, where the next reader gets them. Jobs that are over,
// anonymous or Collectable() are forgotten then; other jobs after abandoned_job_ttl.
void Core::CollectJobs(Transaction& txn, absl::Time now) {
  std::vector<std::pair<JobId, absl::Duration>> idle;  // with the time that nobody read it
  for (const auto& [id, job] : state_.jobs) {
    bool read = false;
    for (IterationId of : state_.IterationsOf(id)) {
      const IterationState& iteration = state_.iterations.at(of);
      read |= IsConnected(of);
      if (!GoesOn(iteration) || iteration.record.finished) continue;
      read |= std::any_of(
          iteration.record.readers.begin(), iteration.record.readers.end(),
          [](const auto& reader) { return reader.status == protocol::ReaderStatus::kActive; });
    }
    if (read) {
      idle_since_.erase(id);
    } else {
      idle.push_back({id, now - idle_since_.try_emplace(id, now).first->second});
    }
  }
  for (const auto& [id, unread_for] : idle) {
    if (unread_for < std::min(options_.job_gc_timeout, options_.abandoned_job_ttl)) continue;
    for (IterationId of : state_.IterationsOf(id)) {
      const IterationState& iteration = state_.iterations.at(of);
      if (unread_for >= options_.job_gc_timeout && GoesOn(iteration) && iteration.record.closed &&
          !iteration.record.finished && state_.jobs.at(id).terms.keep != Keep::kCommitted) {
        txn.Log("given_up", {{"iteration", absl::StrCat(of.value())},
                             {"job", state_.jobs.at(id).name},
                             {"owed", OwedOf(id)}});
        txn.Settle(of, protocol::GiveUp(iteration.record, txn.GetContext(of)));
      }
    }
    const JobRecord& job = state_.jobs.at(id);
    if (unread_for < TimeToLive(job)) continue;
    txn.Log("job_forgotten", {{"job", absl::StrCat(id.value())},
                              {"name", job.name},
                              {"unread_for", absl::FormatDuration(unread_for)},
                              {"owed", OwedOf(id)}});
    TakeFromWorkers(txn, id);
    ForgetJob(txn, id);
  }
}

void Core::CollectDatasets(Transaction& txn, absl::Time now) {
  std::set<const DatasetRecord*> read;
  for (const auto& [id, job] : state_.jobs) read.insert(job.dataset.get());
  std::erase_if(unused_since_, [&](const auto& entry) REQUIRES(mu_) {
    return state_.FindDataset(entry.first) == nullptr;
  });
  std::vector<std::string> old;
  for (const auto& [id, dataset] : state_.datasets) {
    if (read.contains(dataset.get())) {
      unused_since_.erase(id);
    } else if (now - unused_since_.try_emplace(id, now).first->second >= options_.dataset_ttl) {
      old.push_back(id);
    }
  }
  for (const std::string& id : old) {
    txn.Log("dataset_forgotten",
            {{"dataset", id},
             {"bytes", absl::StrCat(state_.FindDataset(id)->definition.size())},
             {"unused_for", absl::FormatDuration(now - unused_since_.at(id))}});
    txn.Apply(DatasetUnregistered{id});
  }
}

}  // namespace penstock::control
