// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/core.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "control/dispatcher/transaction.h"
#include "control/journal/changes_proto.h"
#include "control/observe/fail_point.h"
#include "control/sync/mutex.h"
#include "penstock/status.h"

namespace penstock::control {

Core::Core(CoreOptions options, std::unique_ptr<Journal> journal)
    : options_(std::move(options)), journal_(std::move(journal)) {}

Core::~Core() {
  journal_.reset();  // writes what was appended, and sends what waited for it
  std::deque<PendingReply> waiting;
  {
    MutexLock lock(mu_);
    failed_ = absl::UnavailableError("the dispatcher is stopping");
    waiting.swap(pending_replies_);
  }
  for (PendingReply& reply : waiting)
    reply.send(absl::UnavailableError("the dispatcher is stopping"), 0);
}

absl::StatusOr<std::unique_ptr<Core>> Core::Open(CoreOptions options,
                                                 std::unique_ptr<Journal> journal) {
  std::unique_ptr<Core> core(new Core(std::move(options), std::move(journal)));
  {
    MutexLock lock(core->mu_);
    RETURN_IF_ERROR(core->Recover());
  }
  RETURN_IF_ERROR(core->journal_->Start(
      [core = core.get()](absl::StatusOr<uint64_t> sequence) { core->OnDurable(sequence); }));
  {
    Transaction txn(*core);
    core->BeginLife(txn);
    for (const auto& [id, iteration] : core->state_.iterations) {
      if (!core->GoesOn(iteration) || iteration.record.closed) continue;
      txn.Guard([&, id = id, &iteration = iteration]() REQUIRES(core->mu_) {
        txn.Settle(id, protocol::OnDispatcherStarts(iteration.record, txn.GetContext(id)));
      });
    }
  }
  RETURN_IF_ERROR(core->journal_->WaitDurable(core->sequence()));
  return core;
}

absl::Status Core::Recover() {
  Recovered recovered = journal_->TakeRecovered();
  if (!recovered.snapshot.empty()) {
    ASSIGN_OR_RETURN(state_, DecodeState(recovered.snapshot));
  }
  for (const Recovered::Record& record : recovered.records) {
    absl::Status applied = ApplyRecord(record.bytes, state_);
    if (!applied.ok()) {
      return absl::Status(applied.code(), absl::StrCat("journal ", journal_->name(), ": record ",
                                                       record.sequence, ": ", applied.message()));
    }
  }
  if (!recovered.cut.empty()) options_.events->Write({"cut", {{"what", recovered.cut}}});
  sequence_ = recovered.last_sequence();
  snapshot_sequence_ = recovered.snapshot_sequence;
  durable_ = sequence_;
  FailPoint("in_recovery");

  // All leases begin again.
  const absl::Time now = options_.now();
  absl::Duration longest;
  for (const BegunLife& life : state_.lives) longest = std::max(longest, life.lease);
  leases_of_earlier_lives_ = now + longest;
  for (const auto& [id, worker] : state_.workers) {
    worker_leases_.Heard(id, now);
    workers_to_come_.insert(id);
  }
  for (const auto& [id, iteration] : state_.iterations) {
    if (iteration.record.finished || !GoesOn(iteration)) continue;
    for (const protocol::ReaderRecord& reader : iteration.record.readers) {
      if (reader.status == protocol::ReaderStatus::kActive) {
        client_leases_.Heard({id, reader.client}, now);
        clients_to_come_.insert({id, reader.client});
      }
    }
  }
  return absl::OkStatus();
}

void Core::OnDurable(absl::StatusOr<uint64_t> sequence) {
  if (sequence.ok()) {
    FailPoint("durable_before_answer");
    durable_ = *sequence;
    if (appending_.load() != std::this_thread::get_id()) Deliver();
    return;
  }
  std::deque<PendingReply> waiting;
  {
    MutexLock lock(mu_);
    failed_ = sequence.status();
    waiting.swap(pending_replies_);
  }
  options_.events->Write({"journal_failed", {{"why", std::string(sequence.status().message())}}});
  for (PendingReply& reply : waiting) reply.send(sequence.status(), 0);
  if (options_.on_failure) options_.on_failure(sequence.status());
}

void Core::Deliver() {
  MutexLock lock(mu_);
  if (delivering_) return;  // that thread also sends what is here
  delivering_ = true;
  while (!pending_replies_.empty() &&
         (pending_replies_.front().sequence <= durable_ || !failed_.ok())) {
    std::deque<PendingReply> ready;
    while (!pending_replies_.empty() &&
           (pending_replies_.front().sequence <= durable_ || !failed_.ok())) {
      ready.push_back(std::move(pending_replies_.front()));
      pending_replies_.pop_front();
    }
    const absl::Status failed = failed_;
    lock.unlock();
    for (PendingReply& reply : ready) reply.send(failed, reply.sequence);
    lock.lock();
  }
  delivering_ = false;
}

int Core::NumWorkers() const {
  MutexLock lock(mu_);
  return static_cast<int>(workers_.size());
}

uint64_t Core::sequence() const {
  MutexLock lock(mu_);
  return sequence_;
}

std::vector<WorkerId> Core::UsableWorkers() const {
  std::vector<WorkerId> usable;
  for (const auto& [id, peer] : workers_) {
    const WorkerRecord* worker = state_.FindWorker(id);
    if (worker != nullptr && !worker->draining && !IsReserved(id)) usable.push_back(id);
  }
  return usable;
}

std::vector<WorkerId> Core::UsableWorkers(const IterationState& iteration) const {
  const TargetWorkers target = state_.jobs.at(iteration.job).terms.target_workers;
  auto read = [&](const WorkerRecord& worker) REQUIRES(mu_) {
    if (Reads(target, /*local=*/false, worker.tags)) return true;
    for (auto i = sessions_.lower_bound({iteration.id, ClientId()});
         i != sessions_.end() && i->first.first == iteration.id; ++i) {
      const auto reader = iteration.record.FindReader(i->first.second);
      const bool lives =
          reader && iteration.record.readers[*reader].status == protocol::ReaderStatus::kActive;
      if (lives && i->second->process && i->second->process == worker.process) return true;
    }
    return false;
  };
  std::vector<WorkerId> usable = UsableWorkers();
  std::erase_if(usable, [&](WorkerId id) REQUIRES(mu_) { return !read(*state_.FindWorker(id)); });
  std::vector<WorkerId> reached = usable;
  for (auto link = unreached_.lower_bound({iteration.id, ClientId(), WorkerId()});
       link != unreached_.end() && std::get<IterationId>(link->first) == iteration.id; ++link) {
    if (link->second) std::erase(reached, std::get<WorkerId>(link->first));
  }
  return reached.empty() ? usable : reached;
}

bool Core::GoesOn(const IterationState& iteration) const {
  return !iteration.failure.has_value() && !state_.jobs.at(iteration.job).cancelled;
}

const JobRecord* Core::FindJobByText(const std::string& name_or_id) const {
  if (const JobRecord* job = state_.FindJobByName(name_or_id)) return job;
  uint64_t id = 0;
  return absl::SimpleAtoi(name_or_id, &id) ? state_.FindJob(JobId(id)) : nullptr;
}

}  // namespace penstock::control
