// SPDX-License-Identifier: Apache-2.0
// Opens partitions, chooses their workers, and keeps a partition that may be killing its workers
// away from others. The core's lock guards it. Its one reason to change: the rules for choosing a
// worker, with the arithmetic of control/policy/placing.h.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/dispatcher/link_monitor.h"
#include "control/dispatcher/placing/audience_chooser.h"
#include "control/dispatcher/placing/candidates.h"
#include "control/dispatcher/placing/namespace_room.h"
#include "control/dispatcher/placing/usable_workers.h"
#include "control/dispatcher/placing/worker_orders.h"
#include "control/dispatcher/shared_state.h"

namespace penstock::control {

class PartitionPlacer {
 public:
  PartitionPlacer(const SharedState& shared, const LinkMonitor& links)
      : shared_(shared),
        links_(links),
        audiences_(shared.options.check_kept),
        usable_({shared.state, shared.worker_changes, shared.workers.changes(),
                 [&shared](WorkerId worker) { return shared.workers.contains(worker); }}),
        orders_(shared.state, usable_, shared.options.check_kept),
        room_(
            shared.options.quotas, shared.state, shared.contexts,
            [this] { return Usable().capacity().permits; }, shared.options.check_kept) {}
  PartitionPlacer(const PartitionPlacer&) = delete;

  // Opens partitions of the iteration, and places those that wait for a worker. Returns in constant
  // time if nothing has changed on which the result depends since all that could be placed was
  // placed. The result depends on these data, each with what notices its changes:
  // - the connected and the reserved workers, their permits, tags and places, whether they drain,
  //   and the format of the journal: UsableWorkers::version()
  // - the datasets that workers refuse: DatasetRefusals::changes()
  // - failures, reservations and trials: `trouble_changes_`. While a trial lasts, its time matters,
  //   so that each call places
  // - the process of each reader, where it decides which workers are read: Sessions::changes(). The
  //   workers that readers cannot reach: LinkMonitor::changes()
  // - the iteration's record, the readers' answers and the ends of partitions:
  //   IterationContext::placing_changes. So are the passes that begin or are over
  //   (CountForPlacing in transaction.cc). The other splits only become fewer, and then no more
  //   partitions are opened than before
  // - the room in the namespace: while an iteration waits for it, each call places
  // The terms of the job, its division and the options are constant. An iteration that is failed,
  // cancelled or closed is not placed.
  // `most`: the maximum number of partitions to place, if the namespace has a limit of partitions.
  void OpenAndPlace(Transaction& txn, IterationId iteration,
                    int64_t most = std::numeric_limits<int64_t>::max());
  // The room in the namespaces. The caller tells it of events.
  NamespaceRoom& room() { return room_; }
  const NamespaceRoom& room() const { return room_; }
  // Places partitions that waited for room in their namespace, and takes partitions from workers to
  // make room for iterations with a better claim (control/policy/fair_shares.h). Called at sweeps.
  void RetryLimited(Transaction& txn);
  // Moves partitions that would be better placed on another worker. Call it after an event that may
  // make a better placement possible: a worker joined, a partition ended, a reader came back.
  void Balance(Transaction& txn, IterationId iteration);
  // Takes all partitions of the iteration off the worker, except `but`, and places them again.
  void RelieveAllOn(Transaction& txn, const IterationState& iteration, WorkerId worker,
                    const PartitionKey& but);

  // Returns the workers that are connected, not draining and not reserved, up to date.
  const UsableWorkers& Usable() const;
  // Returns the usable workers that a client of the iteration reads, and that do not refuse its
  // dataset.
  std::vector<UsableWorker> UsableFor(const IterationState& iteration) const;
  // Returns how the readers of the iteration share these workers.
  LinkRule RuleOf(const IterationState& iteration) const;

  // --- Partitions that fail, or whose workers die ---

  bool HasFailed(const PartitionKey& key) const { return failures_.contains(key); }
  void NoteFailure(const PartitionKey& key, WorkerId worker);  // failed with an error
  // Called after each change of the iteration's record, and after the partition has ended on the
  // worker.
  void NoteChange(IterationId id, const protocol::IterationChange& change) {
    audiences_.NoteChange(id, change);
    if (std::holds_alternative<protocol::IterationClosed>(change)) orders_.Forget(id);
  }
  void NoteEnded(const PartitionKey& key, WorkerId worker);
  // Notes that the worker died, perhaps because of a partition that it ran. Call it while the
  // iterations' records still name the worker.
  void NoteDeath(Transaction& txn, WorkerId worker);
  // Notes that elements of the partition were received, so it did not kill its workers.
  void NoteProgress(const PartitionKey& key);
  void ForgetFailures(const PartitionKey& key) {
    trouble_changes_ += failures_.erase(key);
    kills_workers_.erase(key);
  }
  void Forget(IterationId iteration);
  // Returns whether some worker may still run the partition after its failures so far. True while
  // there is no usable worker, because a worker may connect later.
  bool SomebodyMayRun(const IterationState& iteration, const protocol::IterationContext& context,
                      PartitionId partition) const;

  void EndReservation(WorkerId worker) { trouble_changes_ += alone_.erase(worker); }
  // Ends the reservations for partitions that no longer need them.
  void EndReservations(Transaction& txn);

 private:
  // Failures of a partition since it last made progress. `count`: how often it failed with an
  // error. `on`: the workers on which it failed, which it avoids. `deaths`: how often its worker
  // died. `deaths_alone`: in how many of these deaths it was the only partition on the worker.
  struct Failures {
    int count = 0;
    std::vector<WorkerId> on;  // each once
    int deaths = 0;
    int deaths_alone = 0;
  };

  // Counts of changes on which OpenAndPlace() depends.
  struct Inputs {
    uint64_t of_iteration = 0;
    uint64_t of_all = 0;
    uint64_t of_sessions = 0;
    friend bool operator==(const Inputs&, const Inputs&) = default;
  };

  // Returns the usable workers that may get partitions of the iteration; nullopt: all.
  std::optional<std::vector<UsableWorker>> SomeUsable(const IterationState& iteration) const;
  Inputs InputsOf(const IterationState& iteration, const protocol::IterationContext& context) const;
  void Place(Transaction& txn, const IterationState& iteration, int64_t most);

  // RunsAlone: whether the partition must have a worker for itself. ReservedFor: that worker, or
  // none.
  bool RunsAlone(const PartitionKey& key) const;
  WorkerId ReservedFor(const PartitionKey& key) const;
  std::vector<WorkerId> Reserved() const;  // for partitions that run alone
  // Reserves a worker for each partition that must run alone and has no reserved worker yet. Moves
  // all other partitions off that worker.
  void Reserve(Transaction& txn, const IterationState& iteration);
  // IsTrying: whether a partition that should run alone was placed on the worker beside other
  // partitions less than kTrial ago. WorkersToTry: the workers of `usable` on which such a
  // partition may be placed.
  bool IsTrying(WorkerId worker) const;
  std::vector<UsableWorker> WorkersToTry(absl::Span<const UsableWorker> usable) const;

  const SharedState& shared_;
  const CoreOptions& options_ = shared_.options;
  const State& state_ = shared_.state;
  const LinkMonitor& links_;
  AudienceChooser audiences_;
  std::map<PartitionKey, Failures> failures_;
  std::set<PartitionKey> kills_workers_;    // of `failures_`: those with kDeathsAmongOthers deaths
  std::map<WorkerId, PartitionKey> alone_;  // workers reserved for one partition
  // By worker: the partition that was last tried on it because no worker could be reserved for the
  // partition, and the time of that placement.
  std::map<WorkerId, std::pair<PartitionKey, absl::Time>> trials_;
  uint64_t trouble_changes_ = 0;  // of `failures_`, `alone_` and `trials_`
  mutable UsableWorkers usable_;
  WorkerOrders orders_;
  NamespaceRoom room_;
  std::map<IterationId, Inputs> placed_;  // when OpenAndPlace() last began to place
};

}  // namespace penstock::control
