// SPDX-License-Identifier: Apache-2.0
// A session's links to the workers: which links exist, when each link is dialled and closed, and
// how many elements each worker may send. Reason to change: the life cycle of links. Guarded by the
// session's lock (session_parts.h). A method that finds a link to dial or close, or a link whose
// credits are to be granted or recalled, returns that link. The caller then does the work without
// the lock. No method that the agent calls regularly looks at all links: links with something to do
// are on an agenda.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "control/observe/event_log.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/message_parts.h"
#include "control/stub/membership_view.h"
#include "dataplane/client/delivery/delivery.h"
#include "dataplane/client/delivery/received_element.h"
#include "dataplane/client/session/agenda.h"
#include "dataplane/client/session/worker_link.h"
#include "dataplane/client/session_state/credit_manager.h"
#include "dataplane/client/session_state/reader.h"
#include "dataplane/client/session_state/recall_pace.h"
#include "dataplane/client/session_state/session_options.h"
#include "dataplane/client/session_state/step_times.h"

namespace penstock::client {

class WorkerLinks {
 public:
  // `options` and `credits` must outlive this object.
  WorkerLinks(const SessionOptions& options, CreditManager& credits)
      : options_(options), credits_(credits) {}

  // Adds links to the workers in `membership` that this client reads. `altered`: the workers that
  // may have become part of it, or have left it, since the last call. The links' events go to
  // `events`, which must outlive the links.
  void OnMembership(const control::MembershipView& membership, absl::Span<const WorkerId> altered,
                    TargetWorkers target, ReaderEvents& events);

  // --- The links' events ---
  void OnOpen(WorkerId worker);
  void OnEvent(WorkerId worker);  // OnReceived() follows for each element or error
  // `here`: this client has the element, from this event or an earlier one.
  void OnReceived(const ReceivedElement& received, bool here);
  void OnRecalled(WorkerId worker, int64_t count);
  void OnFailed(WorkerId worker, const absl::Status& reason);

  // --- Closing and dialling ---

  // Sets whether all links must be closed and none dialled. At first, links are wanted.
  void WantNone(bool none);
  // Returns a link to close; nullptr: none. The caller calls OnDown() afterwards.
  std::shared_ptr<Reader> NextToClose(absl::Time now, absl::Time& wake);
  void OnDown(WorkerId worker);
  struct Dial {
    std::shared_ptr<Reader> reader;
    int64_t number;
    std::map<std::string, std::string> given_up;
    transfer::DialOptions options;
  };
  // Returns a link to dial; nullopt: none. The caller then passes the result to OnDialled().
  std::optional<Dial> NextToDial(const control::Welcome& welcome, absl::Time now, absl::Time& wake);
  void OnDialled(WorkerId worker, absl::StatusOr<transfer::TransportSelection> begun);
  // Puts links that have opened into use, and returns events about them for the log.
  std::vector<Event> TakeOpened(IterationId iteration);
  // Closes all links. Call it without the lock, after the agent and the stream have ended.
  void CloseAll();

  // --- Credits ---
  struct Grant {
    std::shared_ptr<Reader> reader;
    int64_t link;
    int64_t count;
  };
  using Grants = absl::InlinedVector<Grant, 4>;
  Grants TakeGrants();
  static void Apply(const Grants& grants);  // without the lock
  // Returns true if a worker waits for credits while others may have spare ones, for which the
  // agent does not look soon: it has no plan to do so, or one of a time when the consumer needed no
  // element soon. `needs`: whether it does now.
  bool MustRecallSooner(const Grants& grants, bool needs) const {
    const bool late = recalls_soon_ ? needs && recall_pace_.may_be_late() : !grants.empty();
    return late && credits_.Starving();
  }
  using Readers = std::vector<std::shared_ptr<Reader>>;
  void RecallAllSoon() { recalls_all_ = true; }
  Readers TakeRecallsOfAll();  // empty, except after RecallAllSoon()
  // Returns the workers that give back credits now.
  Readers TakeRecalls(absl::Time now, bool needs, absl::Time& wake);

  // --- Reports ---
  // Makes the next heartbeat name all links. Call this when a stream begins, and before each
  // heartbeat to a dispatcher that reads no changes.
  void ReportAll() { reports_all_ = true; }
  // Counts in `times` that a wait has ended with an element of the worker.
  void CountWait(WorkerId worker, StepTimes& times);
  // Fills in the links that have changed since the previous heartbeat, or all links. Then forgets
  // workers without a partition or a link, which the next heartbeat names as gone. A worker to
  // which this client may still have to report receives is not forgotten.
  void Report(const StepTimes& times, const control::MembershipView& membership, Delivery& delivery,
              control::ClientHeartbeat& heartbeat);
  // If a worker was out of reach, or the iteration had no worker, for the whole timeout, notes an
  // error for Next() and returns true. `dispatcher`: the dispatcher's address, for messages.
  bool CheckReach(absl::Time now, const std::string& dispatcher, absl::Time& wake);
  absl::Status TakeError() { return std::exchange(error_, absl::OkStatus()); }
  // Returns a description of what is missing, for messages; empty: nothing is missing.
  std::string OutOfReach(const std::string& dispatcher) const;
  std::string Addresses() const;  // of the workers that this client reads

 private:
  using Link = WorkerLink;
  using Phase = WorkerLink::Phase;

  Link* Find(WorkerId worker);
  // Called after each change of a link, except one that only its counts show. The next heartbeat
  // names the link, and the agent acts on it when it must.
  void OnAltered(WorkerId worker, const Link& link);

  const SessionOptions& options_;
  CreditManager& credits_;
  std::map<WorkerId, Link> links_;
  bool none_wanted_ = false;
  Agenda<WorkerId> to_close_;
  Agenda<WorkerId> to_dial_;
  Agenda<WorkerId> out_of_reach_;    // at the end of the timeout
  std::vector<WorkerId> ready_;      // links that may have opened
  std::set<WorkerId> unplaced_;      // links to workers without a partition
  bool reports_all_ = true;          // in the next heartbeat
  std::set<WorkerId> altered_;       // links that have changed since the last heartbeat
  std::vector<WorkerId> forgotten_;  // links that were forgotten since then
  absl::Time no_worker_since_ = absl::InfiniteFuture();
  absl::Status error_;  // Next() returns this error once
  bool recalls_all_ = false;
  bool recalls_soon_ = false;  // the agent looks for spare credits at the time of recall_pace_
  RecallPace recall_pace_;
};

}  // namespace penstock::client
