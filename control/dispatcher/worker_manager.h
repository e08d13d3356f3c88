// SPDX-License-Identifier: Apache-2.0
// Keeps track of the workers and their partitions, and handles the messages that workers send. The
// core's lock guards it. Its one reason to change: the protocol between workers and the dispatcher.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "control/dispatcher/liveness.h"
#include "control/dispatcher/lives.h"
#include "control/dispatcher/monitoring/absent_workers.h"
#include "control/dispatcher/partition_placer.h"
#include "control/dispatcher/shared_state.h"
#include "control/policy/scaling.h"

namespace penstock::control {

// How many bookmarks all partitions together should send in a second. Each costs the dispatcher a
// record in its journal.
inline constexpr int64_t kBookmarksPerSecond = 5000;

class WorkerManager {
 public:
  // `workers` and `refusals`: references to these in `shared`, through which the manager changes
  // them.
  WorkerManager(const SharedState& shared, Workers& workers, DatasetRefusals& refusals,
                Liveness& liveness, Scaling& scaling, PartitionPlacer& placer, Lives& lives)
      : shared_(shared),
        workers_(workers),
        refusals_(refusals),
        liveness_(liveness),
        scaling_(scaling),
        placer_(placer),
        lives_(lives) {}

  // Notes that no worker is connected. Called after a recovery.
  void Begin();

  // REQUIRES: the worker has said hello.
  WorkerHeartbeatAnswer OnHeartbeat(WorkerPeer& peer, WorkerHeartbeat heartbeat);
  void OnMessage(Transaction& txn, const std::shared_ptr<WorkerPeer>& peer,
                 const WorkerUp& message);  // other than a heartbeat
  void OnClosed(const std::shared_ptr<WorkerPeer>& peer);
  void OnUnreadable(Transaction& txn, const std::shared_ptr<WorkerPeer>& peer,
                    const absl::Status& why);
  // Declares dead the workers whose lease has expired.
  void Expire(Transaction& txn, absl::Time now);
  // Returns the next workers to check among those whose streams broke, with their addresses. A
  // check of an address takes up to 0.2 s, and longer if its name must be looked up, so one call
  // returns only some of many.
  std::vector<std::pair<WorkerId, std::string>> TakeBroken();
  // Called for a worker whose stream broke and whose port refuses connections. Declares the worker
  // dead, unless it has connected again.
  void OnPortRefused(Transaction& txn, WorkerId worker);
  // Estimates and reports the number of workers wanted. Starts and stops no workers.
  void Estimate(Transaction& txn, absl::Time now);

 private:
  void Handle(Transaction& txn, const std::shared_ptr<WorkerPeer>& peer, const WorkerUp& message);
  void OnHello(Transaction& txn, const std::shared_ptr<WorkerPeer>& peer, const WorkerHello& hello);
  // Returns the worker's place in the list of workers.
  absl::StatusOr<int64_t> CheckHello(Transaction& txn, const WorkerHello& hello);
  // PermissionDenied if the id belongs to another principal, whose worker need not be connected.
  absl::Status CheckTakeover(Transaction& txn, const WorkerHello& hello) const;
  // Returns the principal to which the id belongs from now on: the first one that used it.
  std::string OwnerFor(const WorkerHello& hello, const Caller& caller) const;
  absl::StatusOr<int64_t> PlaceOf(const WorkerHello& hello) const;
  void OnSplitRequest(Transaction& txn, const WorkerPeer& peer, const SplitRequest& request);
  void OnBookmark(Transaction& txn, const WorkerPeer& peer, const Bookmark& bookmark);
  void OnEnded(Transaction& txn, const WorkerPeer& peer, const Ended& ended);
  void OnAtEnd(Transaction& txn, const WorkerPeer& peer, const AtEnd& at_end);
  void OnFailed(Transaction& txn, const WorkerPeer& peer, const PartitionFailed& failed);
  // The worker would prepare other elements of the iteration's dataset.
  void OnDatasetRefused(Transaction& txn, WorkerId worker, const IterationState& iteration,
                        const absl::Status& reason);
  void OnDrain(Transaction& txn, const WorkerPeer& peer);
  // `died`: whether the worker died; false if it left by itself.
  void Lose(Transaction& txn, WorkerId worker, const std::string& reason, bool died = true);

  const SharedState& shared_;
  const CoreOptions& options_ = shared_.options;
  const State& state_ = shared_.state;
  Workers& workers_;
  DatasetRefusals& refusals_;
  AbsentWorkers absent_;  // of the state
  Liveness& liveness_;
  Scaling& scaling_;
  PartitionPlacer& placer_;
  Lives& lives_;
  absl::Time estimated_ = absl::InfinitePast();
};

}  // namespace penstock::control
