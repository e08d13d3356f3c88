// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session/session_agent.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "dataplane/memory/catch_exhausted.h"
#include "include/status_macros.h"

namespace penstock::client {
namespace {

constexpr absl::Duration kLongestSleep = absl::Milliseconds(50);

}  // namespace

absl::Status SessionAgent::Start() {
  ASSIGN_OR_RETURN(thread_, StartThread("reading from the service", [this] { Run(); }));
  return absl::OkStatus();
}

void SessionAgent::Join() {
  if (thread_.joinable()) thread_.join();
}

void SessionAgent::Run() {
  MutexLock lock(parts_.mu);
  while (!parts_.stopping) {
    const absl::Time now = BootTime();
    absl::Time wake = now + kLongestSleep;
    if (parts_.IsCancelled() && parts_.MayLeave()) parts_.dispatcher.BeginLeaving();
    if (parts_.dispatcher.TakeReopens()) ReopenStream();
    TendStream(now, wake);
    TendLinks(now, wake);
    TendCredits(now, wake);
    TendWaiting(now, wake);
    CheckReach(now, wake);
    if (parts_.stopping) break;
    parts_.agent.WaitFor(lock, std::max(wake - BootTime(), absl::Microseconds(100)));
  }
}

void SessionAgent::ReopenStream() {
  absl::StatusOr<DispatcherSession::Stream> over = parts_.dispatcher.Open(stream_events_);
  if (!over.ok()) {
    parts_.dispatcher.OnOver(over.status());
    parts_.Fail(over.status());
    return parts_.WakeWaiting();
  }
  parts_.mu.unlock();
  over->reset();
  parts_.mu.lock();
}

void SessionAgent::TendStream(absl::Time now, absl::Time& wake) {
  DispatcherSession& dispatcher = parts_.dispatcher;
  if (!dispatcher.welcomed() || dispatcher.left()) return;
  ReceiveLedger& ledger = parts_.ledger;
  const Delivery& delivery = *parts_.delivery;
  if (now >= dispatcher.lease().next_heartbeat()) {
    Beat();
    dispatcher.lease().PlanHeartbeat(now, parts_.options.distribute.task_refresh_interval_hint);
    if (ledger.has_news() || delivery.reports_rounds()) parts_.SendReport(News::kAll);
  }
  if (ledger.has_news() && (ledger.at_once() || delivery.end().has_value()))
    parts_.SendReport(News::kAll);
  if (ledger.has_news() && (delivery.MustReport(parts_.calls.times()) ||
                            now >= delivery.reported_at() + kLongestSleep)) {
    parts_.SendReport(News::kReceived);
  }
  const bool over = parts_.end_seen && !delivery.HasSome() && ledger.handed() == 0;
  if (dispatcher.leaving() || over) {
    if (dispatcher.TakeLastBeat()) Beat();  // reports all that happened since the last heartbeat
    if (!dispatcher.leave_sent() && parts_.MayLeave()) dispatcher.SendLeave(ledger.Delivered());
  }
  wake = std::min(wake, dispatcher.lease().next_heartbeat());
}

void SessionAgent::Beat() {
  const uint64_t number = parts_.dispatcher.lease().Beat(BootTime());
  StepTimes& times = parts_.calls.times();
  times.Account();
  control::ClientHeartbeat heartbeat{.counter = number,
                                     .at_quota = parts_.credits.TakeWasBound(),
                                     .steps = times.Steps(),
                                     .marks = parts_.delivery->Marks()};
  parts_.links.WantNone(parts_.WantsNoLinks());
  if (parts_.dispatcher.welcome()->version < control::kFirstWithChangedLinks)
    parts_.links.ReportAll();
  parts_.links.Report(times, parts_.membership, *parts_.delivery, heartbeat);
  parts_.dispatcher.Send(std::move(heartbeat));
}

void SessionAgent::TendLinks(absl::Time now, absl::Time& wake) {
  while (!parts_.stopping && CloseOneLink(now, wake)) {
  }
  while (!parts_.stopping && DialOneLink(now, wake)) {
  }
}

bool SessionAgent::CloseOneLink(absl::Time now, absl::Time& wake) {
  parts_.links.WantNone(parts_.WantsNoLinks());
  const std::shared_ptr<Reader> closing = parts_.links.NextToClose(now, wake);
  if (closing == nullptr) return false;
  parts_.mu.unlock();
  closing->Close();  // elements received before Close() still count
  parts_.mu.lock();
  parts_.links.OnDown(closing->worker().worker);
  return true;
}

bool SessionAgent::DialOneLink(absl::Time now, absl::Time& wake) {
  const std::optional<control::Welcome>& welcome = parts_.dispatcher.welcome();
  if (!welcome.has_value() || parts_.WantsNoLinks()) return false;
  std::optional<WorkerLinks::Dial> dial = parts_.links.NextToDial(*welcome, now, wake);
  if (!dial.has_value()) return false;
  parts_.mu.unlock();
  absl::StatusOr<transfer::TransportSelection> begun = CatchExhausted("opening a link", [&] {
    return dial->reader->Dial(dial->number, parts_.options.transport_preference, dial->given_up,
                              std::move(dial->options));
  });
  parts_.mu.lock();
  if (!begun.ok()) parts_.Fail(begun.status());  // later attempts would fail in the same way
  parts_.links.OnDialled(dial->reader->worker().worker, std::move(begun));
  return true;
}

void SessionAgent::TendCredits(absl::Time now, absl::Time& wake) {
  const std::optional<control::Welcome>& welcome = parts_.dispatcher.welcome();
  std::vector<Event> opened =
      parts_.links.TakeOpened(welcome.has_value() ? welcome->iteration : IterationId());
  const WorkerLinks::Grants grants = parts_.TakeGrants();
  if (!grants.empty() || !opened.empty()) {
    parts_.mu.unlock();
    WorkerLinks::Apply(grants);
    for (Event& event : opened) parts_.options.events->Write(std::move(event));
    parts_.mu.lock();
  }
  Recall(parts_.links.TakeRecallsOfAll());
  Recall(parts_.links.TakeRecalls(now, parts_.NeedsElements(), wake));
}

void SessionAgent::Recall(const WorkerLinks::Readers& readers) {
  if (readers.empty()) return;
  parts_.mu.unlock();
  for (const std::shared_ptr<Reader>& reader : readers) reader->Recall();
  parts_.mu.lock();
}

void SessionAgent::TendWaiting(absl::Time now, absl::Time& wake) {
  CallTracker& calls = parts_.calls;
  calls.Look(now);
  if (calls.waiting() && !parts_.ReturnsEnd() && !parts_.dispatcher.leaving() &&
      parts_.error.ok()) {
    calls.lines().Waits(absl::FromChrono(calls.Waiting()),
                        [this]() REQUIRES(parts_.mu) { return WaitsFor(); });
  }
  // Near the end of a shared job, other readers may hold elements that they do not return.
  const Delivery& delivery = *parts_.delivery;
  if (!parts_.dispatcher.welcomed() || !delivery.shared() || !parts_.ledger.at_once() ||
      parts_.WantsNoLinks()) {
    return;
  }
  if (calls.MustTellOfWait(!delivery.HasSome(), now, wake))
    parts_.SendReport(News::kAll, /*waits=*/true);
}

void SessionAgent::CheckReach(absl::Time now, absl::Time& wake) {
  const Delivery& delivery = *parts_.delivery;
  if (delivery.end().has_value() || delivery.ready()) return;
  const absl::Duration waiting = absl::FromChrono(parts_.calls.Waiting());
  if (parts_.others.Check(now, waiting, delivery.NextName(), wake)) parts_.WakeWaiting();
  if (!parts_.calls.waiting()) return;  // a worker may be back in reach before Next() waits
  if (parts_.links.CheckReach(now, parts_.dispatcher.address(), wake)) parts_.WakeWaiting();
}

std::string SessionAgent::WaitsFor() const {
  const std::string& dispatcher = parts_.dispatcher.address();
  if (!parts_.dispatcher.welcomed())
    return absl::StrCat("the dispatcher at ", dispatcher, ", which does not answer");
  if (parts_.delivery->over())
    return absl::StrCat("the dispatcher at ", dispatcher, ", which must confirm the deliveries");
  if (std::string missing = parts_.links.OutOfReach(dispatcher); !missing.empty()) return missing;
  if (std::string reason = parts_.others.BlockingReason(); !reason.empty()) return reason;
  if (parts_.ledger.at_once() && parts_.delivery->shared())
    return "elements that other readers of the job hold";
  return absl::StrCat("elements of worker ", parts_.links.Addresses());
}

}  // namespace penstock::client
