// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session/session.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "control/observe/fail_point.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "include/status_macros.h"

namespace penstock::client {
namespace {

// The time for which a session that ends waits for the answer to its goodbye.
constexpr absl::Duration kGoodbyeTimeout = absl::Seconds(2);

}  // namespace

Session::Session(SessionOptions options, control::DispatcherStub& stub)
    : parts_(std::move(options), stub), on_stop_(parts_.options.stop, [this] {
        MutexLock lock(parts_.mu);
        parts_.WakeAgent();
        parts_.WakeWaiting();
      }) {}

absl::StatusOr<std::unique_ptr<Session>> Session::Begin(SessionOptions options,
                                                        control::DispatcherStub& stub) {
  std::unique_ptr<Session> session(new Session(std::move(options), stub));
  SessionParts& parts = session->parts_;
  MutexLock lock(parts.mu);  // events may come before the stream is set
  parts.stopping = true;     // ends the thread if the stream cannot be opened
  RETURN_IF_ERROR(session->agent_.Start());
  RETURN_IF_ERROR(parts.dispatcher.Open(session->stream_events_).status());
  parts.stopping = false;
  return session;
}

Session::~Session() {
  {
    MutexLock lock(parts_.mu);
    parts_.dispatcher.LeaveForGood();
    if (parts_.MayLeave()) SayGoodbye(lock, kGoodbyeTimeout);
    parts_.stopping = true;
    parts_.WakeAgent();
  }
  agent_.Join();
  parts_.dispatcher.Stop();  // before this, a membership may still add links
  parts_.links.CloseAll();
}

bool Session::Ready() {
  MutexLock lock(parts_.mu);
  if (parts_.ReturnsEnd() || !parts_.error.ok()) return true;
  return parts_.delivery->ReturnsNext() && parts_.LeaseHolds();
}

absl::StatusOr<std::optional<Element>> Session::Next() {
  PendingDeliveries* const pending =
      parts_.options.delivers_later ? PendingDeliveries::Current() : nullptr;
  MutexLock lock(parts_.mu);
  CallTracker& calls = parts_.calls;
  if (calls.OnCall()) parts_.WakeAgent();
  parts_.links.TakeError().IgnoreError();  // drops the error of an earlier call
  while (true) {
    if (parts_.end_seen) {
      RETURN_IF_ERROR(AwaitEnd(lock));
      return std::nullopt;
    }
    if (parts_.IsCancelled()) return absl::CancelledError("the iterator was stopped");
    if (!parts_.error.ok()) return parts_.error;
    if (parts_.delivery->ready() && parts_.LeaseHolds()) {
      Delivery::Taken taken = Take(pending);
      const WorkerLinks::Grants grants = parts_.TakeGrants();
      if (parts_.links.MustRecallSooner(grants, parts_.NeedsElements())) parts_.WakeAgent();
      lock.unlock();
      WorkerLinks::Apply(grants);
      if (!taken.error.ok()) return taken.error;
      if (!taken.skipped) return ElementOf(std::move(taken), parts_.options);
      lock.lock();
      continue;
    }
    if (parts_.delivery->over()) {
      parts_.end_seen = true;
      parts_.WakeAgent();  // sends the goodbye
      continue;
    }
    if (absl::Status error = parts_.others.TakeError(); !error.ok()) return error;
    if (absl::Status error = parts_.links.TakeError(); !error.ok()) return error;
    if (parts_.ledger.at_once() && !calls.waiting()) parts_.WakeAgent();
    calls.times().Waits();
    const bool unreported = parts_.delivery->reports_rounds() && parts_.ledger.has_news() &&
                            parts_.dispatcher.welcomed();
    if (unreported && parts_.delivery->MustReport(calls.times())) parts_.WakeAgent();
    parts_.received.WaitFor(lock, unreported ? Delivery::kLongestUnreported : transfer::kMaxWait);
  }
}

absl::Status Session::AwaitEnd() {
  MutexLock lock(parts_.mu);
  return parts_.end_seen ? AwaitEnd(lock) : absl::OkStatus();
}

absl::Status Session::AwaitEnd(MutexLock& lock) {
  if (parts_.ReturnsEnd()) return absl::OkStatus();
  parts_.calls.times().Waits();
  const absl::Duration timeout = parts_.options.distribute.timeout;
  parts_.changed.WaitFor(lock, timeout, [this]() REQUIRES(parts_.mu) {
    return parts_.ReturnsEnd() || parts_.IsCancelled() || !parts_.error.ok();
  });
  if (parts_.ReturnsEnd()) return absl::OkStatus();
  if (parts_.IsCancelled()) return absl::CancelledError("the iterator was stopped");
  if (!parts_.error.ok()) return parts_.error;
  return absl::UnavailableError(absl::StrCat(
      "all elements were returned, but the dispatcher at ", parts_.dispatcher.address(),
      " did not confirm within ", absl::FormatDuration(timeout),
      " that the last of them are delivered; call Next() again to wait for it: if this process "
      "ends before, another process may get these elements again"));
}

Delivery::Taken Session::Take(PendingDeliveries* pending) {
  Delivery::Taken taken = parts_.delivery->Take(pending != nullptr);
  if (const WorkerId from = taken.received.from) {
    StepTimes& times = parts_.calls.times();
    if (times.waiting()) parts_.links.CountWait(from, times);
    times.Returns();
  }
  if (taken.pending) {
    pending->Add({this, taken.received.identity.partition, taken.received.position});
  } else {
    parts_.end_may_miss |= parts_.delivery->EndMayMissDeliveries();
  }
  parts_.ledger.NoteNews();
  if (taken.ends) parts_.Fail(taken.error);
  if (parts_.delivery->MustReportTaken(parts_.calls.times())) parts_.WakeAgent();
  return taken;
}

absl::Status Session::OnDelivered(absl::Span<const PendingDelivery> deliveries) {
  MutexLock lock(parts_.mu);
  while (!parts_.LeaseHolds()) {
    if (parts_.IsCancelled()) return absl::CancelledError("the iterator was stopped");
    if (!parts_.error.ok()) return parts_.error;
    parts_.received.WaitFor(lock, transfer::kMaxWait);
  }
  if (parts_.dispatcher.leave_sent()) return absl::CancelledError("the iterator was stopped");
  parts_.ledger.OnDelivered(deliveries);
  parts_.end_may_miss = true;  // they may have been reported as handed on
  // The session may be able to leave now.
  if (parts_.delivery->end().has_value() && parts_.ledger.handed() == 0) parts_.WakeAgent();
  return absl::OkStatus();
}

IndicesByPartition Session::delivered() const {
  MutexLock lock(parts_.mu);
  return parts_.ledger.Delivered();
}

control::Heard Session::heard() const {
  MutexLock lock(parts_.mu);
  return parts_.dispatcher.heard();
}

bool Session::ended() const {
  MutexLock lock(parts_.mu);
  return (parts_.ReturnsEnd() && parts_.ledger.handed() == 0) || parts_.options.claims_only;
}

int64_t Session::others_took_all() const {
  MutexLock lock(parts_.mu);
  const bool nothing =
      parts_.end_seen && parts_.ledger.handed() == 0 && parts_.ledger.Delivered().empty();
  return nothing ? parts_.delivery->end()->elements : 0;
}

absl::StatusOr<bool> Session::Commit(const control::Commit& commit) {
  FailPoint("save_before_commit");
  MutexLock one_at_a_time(committing_mu_);
  MutexLock lock(parts_.mu);
  CommitTracker& commits = parts_.commits;
  DispatcherSession& dispatcher = parts_.dispatcher;
  if (commits.IsCommitted(commit.number)) return true;
  if (dispatcher.left() || dispatcher.leave_sent() ||
      (dispatcher.over() && parts_.error.ok() && !parts_.Owes())) {
    return false;
  }
  commits.Await(commit);
  absl::Cleanup not_awaited = [this]() REQUIRES(parts_.mu) { parts_.commits.StopAwaiting(); };
  if (dispatcher.welcomed()) dispatcher.Send(commit);
  const absl::Duration timeout = parts_.options.distribute.timeout;
  const absl::Time deadline = BootTime() + timeout;
  while (!commits.IsCommitted(commit.number)) {
    if (!parts_.error.ok()) return parts_.error;
    if (parts_.IsCancelled()) return absl::CancelledError("the iterator was stopped");
    if (dispatcher.over()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the session with the dispatcher at ", dispatcher.address(), " is over (",
                       dispatcher.over_reason().message(),
                       "); Restore() this state in a new iterator and commit it there"));
    }
    if (BootTime() > deadline) {
      return absl::DeadlineExceededError(absl::StrCat("the dispatcher at ", dispatcher.address(),
                                                      " did not confirm a commit within ",
                                                      absl::FormatDuration(timeout)));
    }
    parts_.changed.WaitFor(lock, deadline - BootTime());
  }
  commits.Record(commit, repetition());
  return true;
}

void Session::Leave(absl::Duration bound) {
  MutexLock lock(parts_.mu);
  if (parts_.MayLeave()) SayGoodbye(lock, bound);
}

void Session::SayGoodbye(MutexLock& lock, absl::Duration bound) {
  parts_.dispatcher.BeginLeaving();
  parts_.WakeAgent();  // if there is no stream, the goodbye goes over the next stream
  parts_.WakeWaiting();
  parts_.changed.WaitFor(lock, bound, [this]() REQUIRES(parts_.mu) {
    return parts_.dispatcher.left() || parts_.dispatcher.over() || !parts_.error.ok();
  });
}

void Session::Abandon() {
  MutexLock lock(parts_.mu);
  parts_.dispatcher.Abandon();
}

}  // namespace penstock::client
