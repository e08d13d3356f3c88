// SPDX-License-Identifier: Apache-2.0
// One client's session on one iteration: its stream to the dispatcher, its links to the workers,
// and the received elements. The program's thread calls this class; session_parts.h has the
// session's parts. Threads: docs/threads.md, "A client".
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/sync/mutex.h"
#include "dataplane/client/session/link_events.h"
#include "dataplane/client/session/session_agent.h"
#include "dataplane/client/session/session_parts.h"
#include "dataplane/client/session/stream_events.h"
#include "dataplane/client/session_state/session_options.h"
#include "dataplane/dataset/engine/pending_deliveries.h"
#include "penstock/element.h"

namespace penstock::client {

class Session final : private GivesElements {
 public:
  // Does not wait. `stub` outlives the session. ResourceExhausted if the process gets no thread for
  // the session; then nothing was sent to the dispatcher.
  static absl::StatusOr<std::unique_ptr<Session>> Begin(SessionOptions options,
                                                        control::DispatcherStub& stub);
  // Says goodbye to the dispatcher, so that no reader waits for this session, and waits briefly for
  // the answer. Under ack_mode = kOnCommit, uncommitted deliveries still belong to this session
  // until its lease runs out, so that a new process may continue from its state.
  ~Session();

  int64_t repetition() const { return parts_.options.repetition; }

  // Waits for the next element and returns it; nullopt at the end and from then on. An element's
  // error is returned in the element's place. Returns Unavailable if, for the whole
  // options.timeout, the iteration has had no worker, a worker with a part of the data has been out
  // of reach, or AwaitEnd() has waited; the next call waits again. FailedPrecondition and refusals
  // of the dispatcher are final. One thread at a time.
  absl::StatusOr<std::optional<Element>> Next();
  // If Next() has returned the end, and all returned elements are delivered: waits until all
  // deliveries are durable, so that no later process gets these elements again. Otherwise returns
  // OK at once. Errors are those of Next(). Any thread.
  absl::Status AwaitEnd();
  // Returns true if Next() would not wait.
  bool Ready();

  IndicesByPartition delivered() const;
  control::Heard heard() const;  // last heard from the dispatcher
  // True if Next() has returned nullopt, all returned elements are delivered, and AwaitEnd() would
  // not wait.
  bool ended() const;
  // Returns the number of elements that other readers got, if Next() returned none before the end;
  // else 0.
  int64_t others_took_all() const;

  // Returns true when `commit` is durable at the dispatcher. Returns false if nothing was sent,
  // because this session has left, or because its stream is over and all its deliveries are
  // committed. Then the caller must commit the other repetitions in `commit` through their own
  // sessions. Returns Cancelled when reading is cancelled, DeadlineExceeded after options.timeout.
  // Any thread; calls run one after another.
  absl::StatusOr<bool> Commit(const control::Commit& commit);

  // Ends reading: Next() returns Cancelled. Under ack_mode = kOnDelivery, commits the deliveries;
  // under kOnCommit, leaves only if all deliveries are committed already. Waits for the
  // dispatcher's answer for at most `bound`. Any thread.
  void Leave(absl::Duration bound);

  // Makes the destructor skip the goodbye, because a new incarnation takes this session's place.
  void Abandon();

 private:
  Session(SessionOptions options, control::DispatcherStub& stub);

  // Marks elements that Next() returned earlier as delivered. Like Next(), this waits while the
  // lease may have run out, because other readers may then get the elements.
  absl::Status OnDelivered(absl::Span<const PendingDelivery> deliveries) override;

  Delivery::Taken Take(PendingDeliveries* pending) REQUIRES(parts_.mu);
  absl::Status AwaitEnd(MutexLock& lock) REQUIRES(parts_.mu);
  void SayGoodbye(MutexLock& lock, absl::Duration bound) REQUIRES(parts_.mu);

  Mutex committing_mu_;  // held by Commit(); acquired before parts_.mu
  SessionParts parts_;
  LinkEvents link_events_{parts_};
  StreamEvents stream_events_{parts_, link_events_};
  SessionAgent agent_{parts_, stream_events_};
  const std::stop_callback<std::function<void()>> on_stop_;
};

}  // namespace penstock::client
