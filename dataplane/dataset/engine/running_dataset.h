// SPDX-License-Identifier: Apache-2.0
// A dataset that this process reads: runs its nodes, and saves, restores and commits their states.
// Its owner handles deadlines, and chooses the thread that makes an element (iterator.cc).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/sync/mutex.h"
#include "dataplane/dataset/engine/interruptible.h"
#include "dataplane/dataset/engine/kept_across_passes.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "dataplane/dataset/engine/pending_deliveries.h"
#include "dataplane/dataset/engine/profile.h"
#include "dataplane/dataset/engine/state_head.h"
#include "dataplane/dataset/engine/state_sections.h"
#include "dataplane/dataset/engine/states_of_ranks.h"
#include "dataplane/memory/pool.h"
#include "penstock/dataset.h"
#include "penstock/element.h"
#include "penstock/iterator.h"

namespace penstock {

// A state without its sections. To fill in the sections, the nodes may have to send requests.
struct UnfinishedState {
  StateHead head;
  std::vector<StateExchange::Unfinished> sections;
  std::string position;

  // Fills in the sections. May wait, even while elements are being made. REQUIRES: the nodes that
  // saved this state exist (see RunningDataset::Restore).
  absl::StatusOr<State> Finish() const;
};

// One thread at a time, under a lock of the owner. Any thread may at any time call Commit(),
// Stop(), step(), waits_for_others() and Stats(), without that lock.
class RunningDataset {
 public:
  // `seed`: for all nodes for which the dataset gives none. `epoch`: nullopt for the next one
  // (epochs.h). `output`: the pool for the last node's elements, or nullptr; outlives this object.
  // `stop`: once requested, long waits end with Cancelled.
  RunningDataset(Dataset dataset, uint64_t seed, std::optional<int64_t> epoch, Pool* output,
                 std::stop_token stop);
  RunningDataset(const RunningDataset&) = delete;
  RunningDataset& operator=(const RunningDataset&) = delete;

  // Builds the nodes, at the beginning of the dataset. Called once by the owner, before all other
  // methods.
  absl::Status Start();

  // Makes the next element; nullopt at the end, once the delivered elements can no longer go to
  // other readers. An error takes the place of an element.
  absl::StatusOr<std::optional<Element>> Next();
  // Called just before the program gets a result of Next(), or an error in its place. Delivers the
  // elements of Distribute from which it was made, and counts the step. Returns `next`, or an error
  // if those elements may not be delivered.
  absl::StatusOr<std::optional<Element>> Deliver(absl::StatusOr<std::optional<Element>> next);
  // True if Next() will not wait. False if that is unknown.
  bool Ready() const { return ready_ != nullptr && ready_->Ready(); }

  // Returns the position after the last element that Next() made. REQUIRES: that element was
  // delivered.
  absl::StatusOr<UnfinishedState> Save();
  // Called if the last Save()'s state is not used. The next state reuses its number. The unused
  // state then takes no place among the states that can be committed.
  void DropLastSave() { --saves_; }
  // Moves to a saved position. Drops the nodes and their elements first. After an error there are
  // no nodes: Next() and Save() return FailedPrecondition until a Restore() succeeds. REQUIRES:
  // Finish() of an earlier state is not running, and is not called later.
  absl::Status Restore(StateToRestore state);
  // Notifies the nodes that a state of this object is durable, and waits for them.
  // FailedPrecondition unless the state was saved since the last Restore(), or is the state that it
  // restored.
  absl::Status Commit(const State& state);

  // Notifies the nodes that reading was stopped on purpose, and waits for them for at most `bound`.
  void Stop(absl::Duration bound) { commits_.Stop(bound); }

  // The next step: the number of elements and errors delivered, from 0 or from the restored state.
  int64_t step() const { return step_; }
  // True if a node's elements come from a service, which may fail to answer at any element.
  bool waits_for_others() const { return waits_for_others_; }
  IteratorStats Stats() const { return profile_.Stats(); }

 private:
  // Called before every read and save. Returns the error of a failed Restore(), or applies
  // RestoreOptions::skip_steps.
  absl::Status EnsureRestored();
  // Drops the nodes and their elements. States that were saved before can no longer be committed.
  void GiveUp();
  absl::Status RestoreNodes(const StateToRestore& state);

  const Dataset dataset_;
  const bool counts_epochs_;  // false: the caller gave the epoch
  const bool waits_for_others_;
  const bool counts_deliveries_;  // of elements from Distribute
  Profile profile_;
  CommitListeners commits_;
  KeptAcrossPasses kept_by_nodes_;
  const std::shared_ptr<StateExchange> states_ = std::make_shared<StateExchange>();
  Mutex origin_mu_;  // acquired after all other locks
  uint64_t origin_ GUARDED_BY(origin_mu_);
  // Origin and number of the restored state.
  std::optional<std::pair<uint64_t, uint64_t>> restored_ GUARDED_BY(origin_mu_);
  RunContext context_;
  std::unique_ptr<NodeIterator> nodes_;  // reads context_
  absl::Status restore_failed_;          // then there are no nodes_
  std::atomic<int64_t> step_ = 0;        // any thread may read it
  int64_t skip_steps_ = 0;
  uint64_t saves_ = 0;
  ReadyHint* ready_ = nullptr;  // nodes_, if it is a ReadyHint
  PendingDeliveries pending_;   // since the last Deliver()
};

}  // namespace penstock
