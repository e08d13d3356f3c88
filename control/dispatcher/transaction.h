// SPDX-License-Identifier: Apache-2.0
// A transaction handles one event, from lock to answer. It holds the core's lock, applies changes
// and collects messages. When the transaction ends, the changes become one record of the journal.
// The messages leave once that record is durable.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "control/dispatcher/core.h"
#include "control/sync/mutex.h"

namespace penstock::control {

class IterationEnd;

class ABSL_SCOPED_LOCKABLE Transaction {
 public:
  // `caller`: who caused the event; none for the dispatcher itself.
  explicit Transaction(Core& core, Caller caller = {}) ABSL_EXCLUSIVE_LOCK_FUNCTION(core.mu_)
      : core_(Begin(core)),
        caller_(std::move(caller)),
        lock_(core.mu_),
        shared_(core.shared_),
        membership_(core.membership_) {}
  ~Transaction() ABSL_UNLOCK_FUNCTION();  // appends, releases the lock, delivers
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  const Caller& caller() const { return caller_; }
  const SharedState& shared() const { return shared_; }

  // Runs `body`, which handles one event. If an invariant of a job does not hold
  // (PENSTOCK_INVARIANT), or if `body` throws a std::logic_error (for example, because a look-up
  // fails), the iteration that is being handled fails with Internal and a message that names the
  // fault. `reason` gets this status. The changes made until then stay. Aborts if no iteration is
  // being handled, or if memory runs out.
  void Guard(absl::FunctionRef<void()> body, absl::Status* reason = nullptr);

  // --- Changing ---

  void Apply(Change change);
  // Appends a record even if nothing changes, so that messages are sent only if the dispatcher
  // still has its journal.
  void AppendAnyway() { appends_anyway_ = true; }
  // Applies a decision of the protocol and sends its messages, then applies the consequences, such
  // as closing the iteration. `marks`: what came with a bookmark, or null.
  void Apply(IterationId iteration, protocol::Decision decision,
             const MarkedBookmark* marks = nullptr);
  // Calls Apply(), then opens partitions and places partitions that wait for a worker.
  void Settle(IterationId iteration, protocol::Decision decision,
              const MarkedBookmark* marks = nullptr);
  // Returns the context of the iteration, and makes it if it does not exist yet.
  protocol::IterationContext& GetContext(IterationId iteration);
  ElementCounts& counts() { return shared_.counts; }

  // --- Sending ---

  // Called with OK and the record's sequence once the record is durable; if it never will be, with
  // the reason.
  using DurableCallback = std::function<void(const absl::Status& durable, uint64_t sequence)>;
  void WhenDurable(std::function<void(const absl::Status&)> send) {
    WhenDurableWithSequence(
        [send = std::move(send)](const absl::Status& durable, uint64_t) { send(durable); });
  }
  void WhenDurableWithSequence(DurableCallback send) {
    pending_replies_.push_back(std::move(send));
  }
  // The messages to one peer leave together.
  void Send(const std::shared_ptr<ClientPeer>& peer, ClientDown message);
  void Send(const std::shared_ptr<WorkerPeer>& peer, WorkerDown message);
  // Like Send(), for a message that several sessions get.
  void SendShared(const std::shared_ptr<ClientPeer>& peer,
                  std::shared_ptr<const ClientDown> message);
  // Send the message to the session or worker, if it is connected.
  void Send(IterationId iteration, ClientId client, ClientDown message);
  void Send(WorkerId worker, WorkerDown message);
  void SendToSessions(IterationId iteration, const ClientDown& message);
  // Send the reason and end the stream.
  void Close(const std::shared_ptr<ClientPeer>& peer, const absl::Status& reason);
  void Close(const std::shared_ptr<WorkerPeer>& peer, const absl::Status& reason);
  // Sends the sessions the changes of the membership of which it is told.
  MembershipSender& membership() { return membership_; }
  using EventFields = std::vector<std::pair<std::string, std::string>>;
  void Log(std::string name, EventFields fields);
  // Logs an event that changes a job, a dataset, a worker or a right, with the caller's name as
  // `principal`. Long texts are cut.
  void Audit(std::string name, EventFields fields);
  // Logs that the caller was refused, if `status` says so. At most once a second; the next event
  // has the number of refusals that were not logged as `others`. Returns `status`.
  absl::Status AuditRefusal(absl::Status status);

  // Returns the object that ends the iteration as a part of this transaction (iteration_end.h).
  IterationEnd EndOf(const IterationState& iteration);

 private:
  struct MessageRouter;             // one overload per message of the protocol
  static Core& Begin(Core& core) {  // called before the wait for the lock
    ++core.transactions_.count;
    return core;
  }
  void Append();
  // Begins a snapshot of the journal if one is due, and takes further pieces of the one that is
  // under way.
  void TakeSnapshot();
  // Returns the changes as one record. If that record would be too large, returns several records,
  // split where changes may be separated.
  absl::StatusOr<std::vector<std::string>> Records() const;

  Core& core_;
  const Caller caller_;
  const int exceptions_ = std::uncaught_exceptions();  // when the transaction began
  IterationId at_work_;  // in Guard(): the iteration last asked for or changed
  MutexLock lock_;       // the analysis does not see that it is held: AssertHeld()
  SharedState& shared_;
  MembershipSender& membership_;
  std::vector<Change> changes_;
  bool appends_anyway_ = false;
  std::vector<DurableCallback> pending_replies_;
  // The messages that callbacks of `pending_replies_` send.
  std::map<const ClientPeer*, std::shared_ptr<MessageBatch<ClientDown>>> to_clients_;
  std::map<const WorkerPeer*, std::shared_ptr<MessageBatch<WorkerDown>>> to_workers_;
  std::vector<Event> log_;
  absl::Status unwritable_;  // the reason for which its record cannot be journaled
};

}  // namespace penstock::control
