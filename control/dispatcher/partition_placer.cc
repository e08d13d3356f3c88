// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/partition_placer.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/iteration_end.h"
#include "control/dispatcher/transaction.h"
#include "control/policy/placing.h"
#include "control/protocol/invariant.h"
#include "control/protocol/shard.h"
#include "control/state/format.h"

namespace penstock::control {
namespace {

// A partition whose workers have died kDeathsAmongOthers times, without progress in between, gets a
// worker for itself. After kDeathsAlone deaths of such workers, its iteration fails.
constexpr int kDeathsAmongOthers = 2;
constexpr int kDeathsAlone = 2;
// The total number of deaths after which the iteration fails, if no worker can be spared for the
// partition.
constexpr int kMostDeaths = 8;
// If no worker can be spared, the partitions whose workers died run on a worker one after another:
// each until it makes progress, or for this long. A partition whose workers died only because of
// another partition is thus separated from the partition that killed them.
constexpr absl::Duration kTrial = absl::Seconds(5);
// A partition that fails with an error is tried at least this many times, even if there are fewer
// workers.
constexpr int kTries = 3;

// Returns whether each client of the iteration reads all usable workers, wherever they run.
bool AnyWorkerIsRead(const State& state, const IterationState& iteration, bool some_colocated) {
  const TargetWorkers target = state.jobs.at(iteration.job).terms.target_workers;
  return target == TargetWorkers::kAny || (target == TargetWorkers::kAuto && !some_colocated);
}

// Compares what is kept with what follows from the records and the context.
void CheckKept(const State& state, const IterationState& iteration, const ElementCounts& counts,
               const protocol::IterationContext& context) {
  PENSTOCK_INVARIANT(state.placed == state.ComputePlaced());
  PENSTOCK_INVARIANT(state.uses == state.ComputeUses());
  PENSTOCK_INVARIANT(protocol::IsKept(iteration.record));
  PENSTOCK_INVARIANT(context.IsKept(iteration.record));
  PENSTOCK_INVARIANT(counts.AreTrue(iteration.id, iteration.record, &context));
}

}  // namespace

void PartitionPlacer::OpenAndPlace(Transaction& txn, IterationId id, int64_t most) {
  const IterationState& iteration = state_.iterations.at(id);
  if (!state_.GoesOn(iteration) || iteration.record.closed) return;
  const Inputs now = InputsOf(iteration, txn.GetContext(id));
  const auto placed = placed_.find(id);
  const bool nothing_new =
      placed != placed_.end() && placed->second == now && trials_.empty() && !room_.Waits(id);
  const bool checks = orders_.checks_kept();
  if (nothing_new && !checks) return;
  if (!nothing_new && options_.placings != nullptr) ++*options_.placings;
  if (checks) CheckKept(state_, iteration, txn.counts(), txn.GetContext(id));
  Place(txn, iteration, most);
  if (!iteration.record.closed) {
    audiences_.Extend(iteration, txn.GetContext(id), RuleOf(iteration),
                      [&](protocol::Decision decision) { txn.Apply(id, std::move(decision)); });
  }
  PENSTOCK_INVARIANT(!nothing_new || InputsOf(iteration, txn.GetContext(id)) == now);
  placed_[id] = now;  // if this has changed anything, the next call places again
}

PartitionPlacer::Inputs PartitionPlacer::InputsOf(const IterationState& iteration,
                                                  const protocol::IterationContext& context) const {
  const uint64_t of_all =
      Usable().version() + trouble_changes_ + shared_.refusals.changes() + links_.changes();
  const bool any = AnyWorkerIsRead(state_, iteration, Usable().some_colocated());
  return {context.placing_changes, of_all, any ? 0 : shared_.sessions.changes().count()};
}

void PartitionPlacer::Place(Transaction& txn, const IterationState& iteration, int64_t most) {
  const IterationId id = iteration.id;
  room_.EndWait(id);
  Reserve(txn, iteration);
  protocol::IterationContext& context = txn.GetContext(id);
  Candidates candidates(state_, iteration, context, Usable(), orders_, SomeUsable(iteration));
  for (int64_t n = PartitionsToOpen(state_, iteration, candidates.capacity()); n > 0; --n) {
    txn.Apply(id, protocol::OpenPartition(iteration.record, context));
  }
  if (!SomePartitionWaits(state_, iteration)) return;
  const std::vector<PartitionId> assignable = protocol::Assignable(iteration.record, context);
  if (assignable.empty()) return;
  const LinkRule rule = RuleOf(iteration);
  const auto apply = [&](protocol::Decision decision) { txn.Apply(id, std::move(decision)); };
  bool some = false;
  const bool anywhere = failures_.empty() && iteration.division.count == 0;
  if (anywhere && !candidates.SomebodyHasRoom()) return;
  int64_t room = std::min(room_.For(state_.jobs.at(iteration.job)), most);
  if (room > 0 && room_.OtherGoesFirst(iteration)) room = 0;
  for (PartitionId partition : assignable) {
    if (room <= 0) {
      room_.Wait(id);
      break;
    }
    const PartitionKey key{id, partition};
    const auto failed = failures_.find(key);
    WorkerId worker = ReservedFor(key);
    if (!worker && !RunsAlone(key)) {
      worker = candidates.Choose(
          partition, failed == failures_.end() ? absl::Span<const WorkerId>() : failed->second.on);
    } else if (!worker) {
      worker = ChooseWorker(state_, iteration, candidates.counts(), partition,
                            WorkersToTry(candidates.list()), failed->second.on);
      if (worker) trials_[worker] = {key, options_.now()};
    }
    if (!worker ||
        !AudienceChooser::Assign(iteration.record, context, partition, worker, rule, apply))
      continue;
    txn.Log("assigned",
            {{"iteration", absl::StrCat(id.value())},
             {"partition", absl::StrCat(partition.value())},
             {"placement", absl::StrCat(iteration.record.partition(partition).placement.value())},
             {"worker", absl::StrCat(absl::Hex(worker.value()))}});
    candidates.CountAgain(worker);
    --room;
    some = true;
  }
  if (some) Balance(txn, id);  // no partition is moved while one waits for a worker
}

void PartitionPlacer::RetryLimited(Transaction& txn) {
  // One partition after another, since each changes who is first.
  for (auto waiting = room_.Waiting(); !waiting.empty();) {
    const Claim first = *waiting.begin();
    const IterationId id = first.iteration;
    waiting.erase(waiting.begin());
    if (room_.For(state_.jobs.at(state_.iterations.at(id).job)) == 0) continue;
    room_.EndWait(id);
    placed_.erase(id);
    txn.Guard([&] { OpenAndPlace(txn, id, /*most=*/1); });
    if (!room_.Waits(id)) continue;
    const Claim now = room_.ClaimOf(state_.iterations.at(id));
    if (now.partitions > first.partitions) waiting.insert(now);
  }
  for (const PartitionKey& key : room_.ToGiveUp(options_.now())) {
    txn.Guard([&] {
      const IterationState& iteration = state_.iterations.at(key.iteration);
      txn.Log("preempted", {{"iteration", absl::StrCat(key.iteration.value())},
                            {"partition", absl::StrCat(key.partition.value())}});
      txn.Settle(key.iteration, protocol::OnRelieve(iteration.record, txn.GetContext(key.iteration),
                                                    key.partition));
    });
  }
}

void PartitionPlacer::Balance(Transaction& txn, IterationId id) {
  const IterationState& iteration = state_.iterations.at(id);
  if (!state_.GoesOn(iteration) || iteration.record.closed) return;
  const bool may_move = MayRelieve(state_, iteration, Usable().least_permits());
  if (!may_move && !orders_.checks_kept()) return;
  const std::vector<PartitionId> relieved =
      Candidates(state_, iteration, txn.GetContext(id), Usable(), orders_, SomeUsable(iteration))
          .ToRelieve();
  PENSTOCK_INVARIANT(may_move || relieved.empty());
  bool moves = false;
  for (PartitionId partition : relieved) {
    if (failures_.count({id, partition}) > 0) continue;  // placed there because it had failed
    txn.Log("relieved", {{"iteration", absl::StrCat(id.value())},
                         {"partition", absl::StrCat(partition.value())}});
    txn.Apply(id, protocol::OnRelieve(iteration.record, txn.GetContext(id), partition));
    moves = true;
  }
  if (moves) OpenAndPlace(txn, id);
}

const UsableWorkers& PartitionPlacer::Usable() const {
  usable_.Update(Reserved());
  if (orders_.checks_kept()) PENSTOCK_INVARIANT(usable_ == usable_.Computed());
  return usable_;
}

LinkRule PartitionPlacer::RuleOf(const IterationState& iteration) const {
  // Before the upgrade is finalised, the journal may contain no audiences.
  const int64_t max_links = state_.format < kAudiencesFormat ? 0 : options_.max_links;
  const auto some = SomeUsable(iteration);
  const int64_t workers = some ? static_cast<int64_t>(some->size()) : Usable().capacity().workers;
  return LinkRuleOf(state_, iteration, workers,
                    AnyWorkerIsRead(state_, iteration, Usable().some_colocated()), max_links);
}

std::vector<UsableWorker> PartitionPlacer::UsableFor(const IterationState& iteration) const {
  if (auto some = SomeUsable(iteration)) return *std::move(some);
  return {Usable().all().begin(), Usable().all().end()};
}

std::optional<std::vector<UsableWorker>> PartitionPlacer::SomeUsable(
    const IterationState& iteration) const {
  const UsableWorkers& usable = Usable();
  const JobRecord& job = state_.jobs.at(iteration.job);
  const TargetWorkers target = job.terms.target_workers;
  auto read = [&](const UsableWorker& worker) {
    if (target == TargetWorkers::kAuto && !worker.colocated) return true;
    const Incarnation process = state_.FindWorker(worker.id)->process;
    for (auto i = shared_.sessions.lower_bound({iteration.id, ClientId()});
         i != shared_.sessions.end() && i->first.first == iteration.id; ++i) {
      const auto reader = iteration.record.FindReader(i->first.second);
      const bool lives =
          reader && iteration.record.readers[*reader].status == protocol::ReaderStatus::kActive;
      if (lives && i->second->process && i->second->process == process) return true;
    }
    return false;
  };
  const bool any = AnyWorkerIsRead(state_, iteration, usable.some_colocated());
  const std::set<WorkerId> unreached = links_.Unreached(iteration.id);
  if (any && shared_.refusals.empty() && unreached.empty()) return std::nullopt;
  std::vector<UsableWorker> some;
  for (const UsableWorker& worker : usable.all()) {
    if (!any && !read(worker)) continue;
    if (!shared_.refusals.empty() && shared_.refusals.Find(worker.id, *job.dataset)) continue;
    some.push_back(worker);
  }
  std::vector<UsableWorker> reached = some;
  std::erase_if(reached, [&](const auto& worker) { return unreached.contains(worker.id); });
  if (!reached.empty()) some = std::move(reached);
  if (some.size() == usable.all().size()) return std::nullopt;  // none is excluded
  return some;
}

// --- Partitions that fail, or whose workers die ----------------------------------------

void PartitionPlacer::NoteDeath(Transaction& txn, WorkerId worker) {
  ++trouble_changes_;
  const auto reserved = alone_.find(worker);
  const PartitionKey alone = reserved == alone_.end() ? PartitionKey() : reserved->second;
  if (reserved != alone_.end()) alone_.erase(reserved);
  for (const IterationId id : state_.placed.IterationsOn(worker)) {
    const IterationState& iteration = state_.iterations.at(id);
    const protocol::IterationContext& context = txn.GetContext(id);
    for (const PartitionId at : state_.placed.On(worker, id)) {
      const protocol::PartitionRecord& partition = iteration.record.partition(at);
      if (context.partitions[at.value() - 1].ended) continue;
      const PartitionKey key{id, at};
      Failures& failures = failures_[key];
      if (key == alone && failures.deaths >= kDeathsAmongOthers) ++failures.deaths_alone;
      if (++failures.deaths >= kDeathsAmongOthers) kills_workers_.insert(key);
      if (failures.deaths_alone < kDeathsAlone && failures.deaths < kMostDeaths) continue;
      const Index index = partition.bookmarks.empty() ? 0 : partition.bookmarks.back().index;
      txn.Log("partition_kills", {{"iteration", absl::StrCat(id.value())},
                                  {"partition", absl::StrCat(at.value())},
                                  {"index", absl::StrCat(index)}});
      const std::string what = absl::StrCat(
          "partition ", at.value(), ": ", failures.deaths, " workers died while they ran it, ",
          failures.deaths_alone, " of them with nothing else on them, and it got no further than ",
          "its bookmark at index ", index, ": an element at or after this index ends the process ",
          "that makes it; see the last lines that those workers logged, and give them more memory ",
          "or fix the code that they run");
      txn.EndOf(iteration).Fail(absl::InternalError(what));
      break;  // the worker has no partition of it any more
    }
  }
}

void PartitionPlacer::NoteFailure(const PartitionKey& key, WorkerId worker) {
  ++trouble_changes_;
  Failures& failures = failures_[key];
  ++failures.count;
  failures.deaths = failures.deaths_alone = 0;  // this failure is an error, not a worker's death
  kills_workers_.erase(key);
  if (std::ranges::find(failures.on, worker) == failures.on.end()) failures.on.push_back(worker);
}

void PartitionPlacer::NoteProgress(const PartitionKey& key) {
  const auto failures = failures_.find(key);
  if (failures == failures_.end() || failures->second.deaths == 0) return;
  ++trouble_changes_;
  failures->second.deaths = failures->second.deaths_alone = 0;
  kills_workers_.erase(key);
}

void PartitionPlacer::NoteEnded(const PartitionKey& key, WorkerId worker) {
  orders_.NoteEnded(key.iteration, worker);
  audiences_.NoteEnded(key);
}

void PartitionPlacer::Forget(IterationId iteration) {
  trouble_changes_ += std::erase_if(
      failures_, [&](const auto& entry) { return entry.first.iteration == iteration; });
  std::erase_if(kills_workers_, [&](const auto& key) { return key.iteration == iteration; });
  audiences_.Forget(iteration);
  orders_.Forget(iteration);
  placed_.erase(iteration);
  room_.Forget(iteration);
}

bool PartitionPlacer::SomebodyMayRun(const IterationState& iteration,
                                     const protocol::IterationContext& context,
                                     PartitionId partition) const {
  const Failures& failures = failures_.at({iteration.id, partition});
  if (failures.count < kTries) return true;
  const WorkerId next = ChooseWorker(state_, iteration, PartitionCounts(state_, iteration, context),
                                     partition, UsableFor(iteration), failures.on);
  return std::find(failures.on.begin(), failures.on.end(), next) == failures.on.end();
}

bool PartitionPlacer::RunsAlone(const PartitionKey& key) const {
  if (!kills_workers_.contains(key)) return false;
  const IterationState* iteration = state_.FindIteration(key.iteration);
  if (iteration == nullptr || !state_.GoesOn(*iteration) || iteration->record.closed) return false;
  const auto context = shared_.contexts.find(key.iteration);
  return context == shared_.contexts.end() ||
         !context->second.partitions[key.partition.value() - 1].ended;
}

std::vector<WorkerId> PartitionPlacer::Reserved() const {
  std::vector<WorkerId> reserved;
  for (const auto& [worker, key] : alone_)
    if (RunsAlone(key)) reserved.push_back(worker);
  return reserved;
}

WorkerId PartitionPlacer::ReservedFor(const PartitionKey& key) const {
  if (alone_.empty() || !RunsAlone(key)) return WorkerId();
  for (const auto& [worker, its] : alone_) {
    const WorkerRecord* record = state_.FindWorker(worker);
    if (its == key && shared_.workers.contains(worker) && record != nullptr && !record->draining)
      return worker;
  }
  return WorkerId();
}

void PartitionPlacer::Reserve(Transaction& txn, const IterationState& iteration) {
  if (kills_workers_.empty()) return;
  const JobTerms& terms = state_.jobs.at(iteration.job).terms;
  if (iteration.division.count > 0 && terms.target_workers == TargetWorkers::kLocal) return;
  std::vector<PartitionKey> failed;
  for (auto i = kills_workers_.lower_bound({iteration.id, PartitionId()});
       i != kills_workers_.end() && i->iteration == iteration.id; ++i) {
    failed.push_back(*i);
  }
  for (const PartitionKey& key : failed) {
    if (!iteration.record.partition(key.partition).collecting() || !RunsAlone(key) ||
        ReservedFor(key)) {
      continue;
    }
    const std::vector<UsableWorker> usable = UsableFor(iteration);
    if (usable.size() < 2) return;  // the other partitions need a worker too
    const PartitionCounts counts(state_, iteration, txn.GetContext(iteration.id));
    const WorkerId worker = std::ranges::min_element(usable, {}, [&](const auto& its) {
                              return counts.OfAll(its.id);
                            })->id;
    alone_[worker] = key;
    ++trouble_changes_;
    txn.Log("runs_alone", {{"iteration", absl::StrCat(iteration.id.value())},
                           {"partition", absl::StrCat(key.partition.value())},
                           {"worker", absl::StrCat(absl::Hex(worker.value()))}});
    for (const auto& [id, other] : state_.iterations) {
      if (state_.GoesOn(other) && !other.record.closed) RelieveAllOn(txn, other, worker, key);
    }
  }
}

void PartitionPlacer::RelieveAllOn(Transaction& txn, const IterationState& iteration,
                                   WorkerId worker, const PartitionKey& but) {
  // Each step may change the worker's partitions.
  for (PartitionId next(1); true;) {
    const absl::Span<const PartitionId> its = state_.placed.On(worker, iteration.id);
    const auto found = std::ranges::lower_bound(its, next);
    if (found == its.end()) return;
    const PartitionKey key{iteration.id, *found};
    next = PartitionId(found->value() + 1);
    if (key == but) continue;
    txn.Settle(iteration.id,
               protocol::OnRelieve(iteration.record, txn.GetContext(iteration.id), key.partition));
  }
}

bool PartitionPlacer::IsTrying(WorkerId worker) const {
  const auto trial = trials_.find(worker);
  if (trial == trials_.end()) return false;
  const auto& [key, since] = trial->second;
  return RunsAlone(key) && options_.now() < since + kTrial &&
         state_.FindIteration(key.iteration)->record.partition(key.partition).worker == worker;
}

std::vector<UsableWorker> PartitionPlacer::WorkersToTry(
    absl::Span<const UsableWorker> usable) const {
  std::vector<UsableWorker> among(usable.begin(), usable.end());
  std::erase_if(among, [&](const auto& its) { return IsTrying(its.id); });
  return among;
}

void PartitionPlacer::EndReservations(Transaction& txn) {
  const size_t ended =
      std::erase_if(alone_, [&](const auto& entry) { return !RunsAlone(entry.second); }) +
      std::erase_if(trials_, [&](const auto& entry) { return !IsTrying(entry.first); });
  if (ended == 0) return;
  ++trouble_changes_;
  // Other partitions may have waited for a place.
  for (const auto& [id, iteration] : state_.iterations) {
    if (!state_.GoesOn(iteration) || iteration.record.closed) continue;
    txn.Settle(id, {});
    Balance(txn, id);
  }
}

}  // namespace penstock::control
