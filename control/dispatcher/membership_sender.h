// SPDX-License-Identifier: Apache-2.0
// Sends the Membership of an iteration to its sessions: the whole after the Welcome, then what has
// changed. The core's lock guards it. Nothing in it is journaled, since each session gets the whole
// again after a restart. Its one reason to change: which Membership a session gets, and when.
//
// A change goes to all sessions of the iteration. A partition with an audience concerns only the
// sessions of its readers: they hear that it serves them, or no longer does. An isolated change is
// sent at the end of its transaction. Further changes are gathered, and sent together at the end of
// the first transaction after kGatherTime; Core::Sweep() is a transaction, so they wait for one
// sweep at most.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "control/dispatcher/shared_state.h"

namespace penstock::control {

class MembershipSender {
 public:
  // The shortest time between two changes that a session is sent, unless a change opens very many
  // partitions.
  static constexpr absl::Duration kGatherTime = absl::Milliseconds(50);

  explicit MembershipSender(const SharedState& shared) : shared_(shared) {}

  // The peer is sent a Welcome. Its whole Membership follows at the end of the transaction.
  void OnWelcome(std::shared_ptr<ClientPeer> peer) { welcomed_.push_back(std::move(peer)); }
  // `change` is applied to the iteration in this transaction.
  void OnChange(const IterationState& iteration, const protocol::IterationChange& change);
  // The number of the partition's elements is known. For order kDeterministic.
  void OnPartitionEnded(IterationId iteration, PartitionId partition);
  // The description of a known worker has changed (DescriptionOf()). Sessions that its partitions
  // serve are sent these partitions again, with the new description.
  void OnWorkerAltered(WorkerId worker);
  // The iteration's sessions are over, or end in this transaction.
  void Forget(IterationId iteration);

  // Sends what is due. Called once in each transaction, at its end.
  void Send(Transaction& txn);

 private:
  // By partition: the positions of the readers that it served before a change, or serves since
  // then; none: all.
  using Concerned = std::map<PartitionId, std::optional<IndexSet>>;
  // The messages to the sessions of one iteration. Kept while there are sessions.
  struct View {
    uint64_t version = 0;                    // of the latest Membership; 0: none yet
    bool altered = false;                    // something has changed since `version`
    bool concerns_all = false;               // it is not only about partitions
    absl::Time sent = absl::InfinitePast();  // the last change
    // What has changed since the last change was sent. A session that was welcomed later knows some
    // of it already; it gets the same entries, which do it no harm.
    Concerned partitions;
    size_t opened = 0;  // of `partitions`
  };

  // The partitions that concern some sessions only, by the position of the session's reader.
  using OfReaders = std::map<size_t, std::set<PartitionId>>;

  View* Find(IterationId iteration);
  static void Add(View& view, PartitionId partition, const std::optional<IndexSet>& readers);
  // Adds the partitions that concern all sessions to `of_all`, and returns the others.
  static OfReaders Divide(const protocol::IterationRecord& record, const Concerned& concerned,
                          std::set<PartitionId>& of_all);
  void NoteAltered(IterationId iteration, View& view);
  void SendWhole(Transaction& txn, const std::shared_ptr<ClientPeer>& peer);
  // Returns false if it is too early.
  bool SendChange(Transaction& txn, IterationId iteration, absl::Time now);
  void SendToSessions(Transaction& txn, const IterationState& iteration, View& view);

  const SharedState& shared_;
  uint64_t version_ = 0;  // of the latest Membership of any iteration
  std::map<IterationId, View> views_;
  std::set<IterationId> waiting_;                      // iterations with a change to send
  std::vector<std::shared_ptr<ClientPeer>> welcomed_;  // in the present transaction
};

}  // namespace penstock::control
