// SPDX-License-Identifier: Apache-2.0
// The parts of a session, the one lock that guards them, and the methods that need several parts.
// Four kinds of thread use the parts, each through a class of its own: the program's thread
// (session.h), the stream's (stream_events.h), the links' (link_events.h) and the agent's
// (session_agent.h).
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "control/stub/membership_view.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "dataplane/client/delivery/delivery.h"
#include "dataplane/client/delivery/other_consumers.h"
#include "dataplane/client/session/call_tracker.h"
#include "dataplane/client/session/worker_links.h"
#include "dataplane/client/session_state/commit_tracker.h"
#include "dataplane/client/session_state/credit_manager.h"
#include "dataplane/client/session_state/dispatcher_session.h"
#include "dataplane/client/session_state/receive_ledger.h"
#include "dataplane/client/session_state/session_options.h"
#include "dataplane/transfer/polling.h"

namespace penstock::client {

struct SessionParts {
  // `stub` must outlive this object.
  SessionParts(SessionOptions session_options, control::DispatcherStub& stub);

  bool IsCancelled() const REQUIRES(mu);
  bool LeaseHolds() REQUIRES(mu);
  void Fail(const absl::Status& status) REQUIRES(mu);
  void WakeAgent() REQUIRES(mu) { agent.NotifyAll(); }
  void WakeWaiting() REQUIRES(mu);  // wakes all waiting threads except the agent
  // Sends a report of the changes since the last report. Deliveries may wait for a heartbeat,
  // because the dispatcher merely journals them. `waits`: Next() waits, and there is nothing that
  // it could return.
  void SendReport(News news, bool waits = false) REQUIRES(mu);
  bool Owes() const REQUIRES(mu);  // some deliveries need a Commit()
  // True if the dispatcher may not know of all deliveries, although it has sent the end. The
  // goodbye names all of them, and is answered once they are durable. Under ack_mode = kOnCommit,
  // Commit() waits instead.
  bool AwaitsGoodbye() const REQUIRES(mu);
  // True if Next() has reached the end and need not wait to return it. While later nodes hold
  // elements, it does not wait: they may pass these on only once they have got the end. If the
  // session has failed, these elements cannot be delivered, and Next() returns the error instead.
  bool ReturnsEnd() const REQUIRES(mu);
  bool MayLeave() const REQUIRES(mu);
  bool WantsNoLinks() const REQUIRES(mu);
  // Returns true if Next() would wait, or may have to soon: the elements that are held are few of
  // the window, and last for less than two seconds at the pace of Next()'s calls.
  bool NeedsElements() const REQUIRES(mu);
  WorkerLinks::Grants TakeGrants() REQUIRES(mu);

  const SessionOptions options;
  mutable Mutex mu;
  transfer::PollingCondition received;  // for Next()
  Condition changed;                    // for Commit() and the session's destructor
  Condition agent;

  DispatcherSession dispatcher GUARDED_BY(mu);
  control::MembershipView membership GUARDED_BY(mu);
  ReceiveLedger ledger GUARDED_BY(mu);
  CommitTracker commits GUARDED_BY(mu);
  CallTracker calls GUARDED_BY(mu);
  OtherConsumers others GUARDED_BY(mu);
  CreditManager credits GUARDED_BY(mu);
  WorkerLinks links GUARDED_BY(mu);
  std::unique_ptr<Delivery> delivery GUARDED_BY(mu);
  absl::Status error GUARDED_BY(mu);         // final
  bool end_seen GUARDED_BY(mu) = false;      // Next() has reached the end
  bool end_may_miss GUARDED_BY(mu) = false;  // the end may come before a delivery is durable
  bool stopping GUARDED_BY(mu) = false;      // the agent must end
};

}  // namespace penstock::client
