// SPDX-License-Identifier: Apache-2.0
// A transaction handles one event, from lock to answer. It holds the core's lock, applies changes
// and collects messages. When it ends, the changes become one record of the journal, and the
// messages leave once that is durable.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "control/dispatcher/core.h"
#include "control/sync/mutex.h"

namespace penstock::control {

class ABSL_SCOPED_LOCKABLE Transaction {
 public:
  explicit Transaction(Core& core) ABSL_EXCLUSIVE_LOCK_FUNCTION(core.mu_)
      : core_(Begin(core)), lock_(core.mu_) {}
  ~Transaction() ABSL_UNLOCK_FUNCTION();  // appends, lets go of the lock, delivers
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // Runs `body`, which handles one event. Where something does not hold that must hold of a job
  // (PENSTOCK_INVARIANT), or a look-up fails, its iteration fails with Internal and what was
  // broken, which is also put into `reason`; what was done until then stays. Aborts where no
  // iteration was worked at, and out of memory.
  void Guard(absl::FunctionRef<void()> body, absl::Status* reason = nullptr);

  // --- Changing ---

  void Apply(Change change);
  // Makes a record even if nothing changes: its messages then come from a dispatcher
  // that has its journal.
  void AppendAnyway() { appends_anyway_ = true; }
  // Applies what the protocol decided and sends its messages, then does whatever
  // follows: closing, partitions to open, workers for those that wait.
  void Settle(IterationId iteration, protocol::Decision decision);
  // The same, where a bookmark comes with marks of its splits.
  void Settle(IterationId iteration, protocol::Decision decision, const MarkedBookmark& marks);
  // Moves partitions for which there is a better place. Call it where one may have
  // appeared: a worker joined, a partition ended, a reader is back.
  void Balance(IterationId iteration);
  // The context of an iteration; made when it is first needed.
  protocol::IterationContext& GetContext(IterationId iteration);

  // --- Sending ---

  // Called once the record is durable, with OK and its sequence, or with why it never is.
  using DurableCallback = std::function<void(const absl::Status& durable, uint64_t sequence)>;
  void WhenDurable(std::function<void(const absl::Status&)> send) {
    WhenDurableWithSequence(
        [send = std::move(send)](const absl::Status& durable, uint64_t) { send(durable); });
  }
  void WhenDurableWithSequence(DurableCallback send) {
    pending_replies_.push_back(std::move(send));
  }
  void Send(const std::shared_ptr<ClientPeer>& peer, ClientDown message);
  void Send(const std::shared_ptr<WorkerPeer>& peer, WorkerDown message);
  // Sends to the session or worker, if it is connected.
  void Send(IterationId iteration, ClientId client, ClientDown message);
  void Send(WorkerId worker, WorkerDown message);
  void SendToSessions(IterationId iteration, const ClientDown& message);
  // Sends the reason and ends the stream.
  void Close(const std::shared_ptr<ClientPeer>& peer, const absl::Status& reason);
  void Close(const std::shared_ptr<WorkerPeer>& peer, const absl::Status& reason);
  // The readers of this iteration, or this one alone, get its membership when the transaction ends.
  void NotifyMembership(IterationId iteration) { notified_iterations_.insert(iteration); }
  void NotifyMembership(IterationId iteration, ClientId client) {
    notified_readers_.insert({iteration, client});
  }
  void Log(std::string name, std::vector<std::pair<std::string, std::string>> fields);

 private:
  struct MessageRouter;  // one overload per message of the protocol
  void Apply(IterationId iteration, protocol::Decision decision, const MarkedBookmark* marks);
  void OpenAndPlace(IterationId iteration);
  // Whether each reader has its part of a quota.
  bool SharesBytes(const IterationState& iteration) const;
  Membership MembershipOf(const IterationState& iteration);
  Assign AssignOf(const IterationState& iteration, const protocol::Assign& assign);
  static Core& Begin(Core& core) {  // before it waits for the lock
    ++core.transactions_;
    return core;
  }
  void Append();
  // The changes as one record, or, where that would be too large, as several if they may be apart.
  absl::StatusOr<std::vector<std::string>> Records() const;

  Core& core_;
  IterationId at_work_;  // in Guard(): the last whose context was asked for or that changed
  MutexLock lock_;       // the analysis does not see that it is held: AssertHeld()
  std::vector<Change> changes_;
  bool appends_anyway_ = false;
  std::vector<DurableCallback> pending_replies_;
  std::set<IterationId> notified_iterations_;
  std::set<std::pair<IterationId, ClientId>> notified_readers_;
  std::vector<Event> log_;
  absl::Status unwritable_;  // why its record cannot be journaled
};

}  // namespace penstock::control
