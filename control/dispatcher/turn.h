// SPDX-License-Identifier: Apache-2.0
// One event, from lock to answer: made under the core's lock, it applies changes
// and gathers what is to be said; when it ends, the changes are one record of the
// journal, and what was said waits for it.
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

class ABSL_SCOPED_LOCKABLE Turn {
 public:
  explicit Turn(Core& core) ABSL_EXCLUSIVE_LOCK_FUNCTION(core.mu_)
      : core_(Begin(core)), lock_(core.mu_) {}
  ~Turn() ABSL_UNLOCK_FUNCTION();  // appends, lets go of the lock, delivers
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // Runs `body`, which handles one event. Where something does not hold that must hold of a job
  // (PENSTOCK_INVARIANT), or a look-up fails, its iteration fails with Internal and what was
  // broken, which is also put into `reason`; what was done until then stays. Aborts where no
  // iteration was worked at, and out of memory.
  void Guard(absl::FunctionRef<void()> body, absl::Status* reason = nullptr);

  // --- Changing ---

  void Do(Change change);
  // The turn makes a record even if it changes nothing: what it says then comes from a dispatcher
  // that has its journal.
  void AppendAnyway() { appends_anyway_ = true; }
  // Applies what the protocol decided and says what it says, then whatever
  // follows: closing, partitions to open, workers for those that wait.
  void Settle(IterationId iteration, protocol::Decision decision);
  // The same, where a bookmark comes with marks of its splits.
  void Settle(IterationId iteration, protocol::Decision decision, const MarkedBookmark& marks);
  // Moves partitions for which there is a better place. To be called where one may have
  // appeared: a worker joined, a partition ended, a reader is back.
  void Balance(IterationId iteration);
  // The desk of an iteration; made when it is first needed.
  protocol::Desk& DeskOf(IterationId iteration);

  // --- Saying ---

  // Called once the turn's record is durable, with OK and its sequence, or with why it never is.
  using Saying = std::function<void(const absl::Status& durable, uint64_t sequence)>;
  void Say(std::function<void(const absl::Status&)> say) {
    SayWith([say = std::move(say)](const absl::Status& durable, uint64_t) { say(durable); });
  }
  void SayWith(Saying say) { sayings_.push_back(std::move(say)); }
  void To(const std::shared_ptr<ClientPeer>& peer, ClientDown message);
  void To(const std::shared_ptr<WorkerPeer>& peer, WorkerDown message);
  // To the session or worker, if it is connected.
  void To(IterationId iteration, ClientId client, ClientDown message);
  void To(WorkerId worker, WorkerDown message);
  void ToSessions(IterationId iteration, const ClientDown& message);
  // Says why and ends the stream.
  void Close(const std::shared_ptr<ClientPeer>& peer, const absl::Status& reason);
  void Close(const std::shared_ptr<WorkerPeer>& peer, const absl::Status& reason);
  // The readers of this iteration, or this one alone, get its membership when the turn ends.
  void TellMembership(IterationId iteration) { told_.insert(iteration); }
  void TellMembership(IterationId iteration, ClientId client) {
    told_alone_.insert({iteration, client});
  }
  void Log(std::string name, std::vector<std::pair<std::string, std::string>> fields);

 private:
  struct Speaker;  // one overload per message of the protocol
  void Apply(IterationId iteration, protocol::Decision decision, const MarkedBookmark* marks);
  void OpenAndPlace(IterationId iteration);
  // Whether each reader has its part of a quota.
  bool SharesBytes(const IterationState& iteration) const;
  Membership MembershipOf(const IterationState& iteration);
  Assign AssignOf(const IterationState& iteration, const protocol::Assign& assign);
  static Core& Begin(Core& core) {  // before it waits for the lock
    ++core.turns_;
    return core;
  }
  void Append();
  // The changes as one record, or, where that would be too large, as several if they may be apart.
  absl::StatusOr<std::vector<std::string>> Records() const;

  Core& core_;
  IterationId at_work_;  // in Guard(): the last whose desk was asked for or that was changed
  MutexLock lock_;       // the analysis does not see that it is held: AssertHeld()
  std::vector<Change> changes_;
  bool appends_anyway_ = false;
  std::vector<Saying> sayings_;
  std::set<IterationId> told_;
  std::set<std::pair<IterationId, ClientId>> told_alone_;
  std::vector<Event> log_;
  absl::Status unwritable_;  // why its record cannot be journaled
};

}  // namespace penstock::control
