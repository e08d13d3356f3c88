// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session/stream_events.h"

#include <utility>
#include <variant>

#include "control/sync/clock.h"
#include "control/sync/mutex.h"

namespace penstock::client {

control::ClientUp StreamEvents::Hello() {
  MutexLock lock(parts_.mu);
  parts_.others.DoubtEnded();
  parts_.membership.ExpectWhole();
  parts_.links.ReportAll();
  return parts_.dispatcher.Hello();
}

void StreamEvents::OnMessage(control::ClientDown message, uint64_t sequence) {
  {
    MutexLock lock(parts_.mu);
    parts_.dispatcher.OnSequence(sequence);
    std::visit([this](const auto& its) REQUIRES(parts_.mu) { Handle(its); }, message);
    parts_.WakeWaiting();
  }
  given_back_.clear();
}

void StreamEvents::OnLost(const absl::Status&) {
  MutexLock lock(parts_.mu);
  parts_.dispatcher.OnLost();
  parts_.WakeWaiting();
}

void StreamEvents::OnGivenUp(const absl::Status& status) {
  MutexLock lock(parts_.mu);
  DispatcherSession& dispatcher = parts_.dispatcher;
  dispatcher.OnLost();
  const bool undelivered = parts_.ledger.handed() > 0 || parts_.AwaitsGoodbye();
  const bool over = parts_.delivery->over();
  // After the end it is safe to wait for a dispatcher that is away. If the session ended without
  // the dispatcher, uncommitted elements would be lost, or delivered again.
  if (absl::IsUnavailable(status) && parts_.error.ok() && over && !dispatcher.left() &&
      !dispatcher.for_good() && (parts_.Owes() || undelivered)) {
    dispatcher.ReopenSoon();
    parts_.WakeAgent();
    return parts_.WakeWaiting();
  }
  dispatcher.OnOver(status);
  // Without a lease, received elements can no longer be returned.
  if (!dispatcher.left() && (!over || undelivered)) parts_.Fail(status);
  parts_.WakeWaiting();
}

void StreamEvents::Handle(const control::Welcome& welcome) {
  if (absl::Status status = parts_.dispatcher.OnWelcome(welcome); !status.ok())
    return parts_.Fail(status);
  parts_.ledger.OnWelcome(welcome);
  parts_.delivery->OnConnected();
  parts_.SendReport(News::kAll);
  if (const auto& commit = parts_.commits.awaited(); commit.has_value())
    parts_.dispatcher.Send(*commit);
  if (absl::Status status = parts_.delivery->OnWelcome(welcome); !status.ok()) parts_.Fail(status);
  parts_.WakeAgent();
}

void StreamEvents::Handle(const control::ClientHeartbeatAnswer& answer) {
  parts_.dispatcher.lease().OnAnswer(answer.counter);
}

void StreamEvents::Handle(const control::Membership& membership) {
  const absl::StatusOr<std::vector<WorkerId>> altered = parts_.membership.Apply(membership);
  if (!altered.ok()) return parts_.dispatcher.BreakOff(altered.status());
  for (const control::Membership::Partition& partition : membership.partitions)
    parts_.ledger.OnNamed(partition.partition);
  parts_.ledger.OnNamed(PartitionId(membership.num_partitions));  // others are named to others
  const std::optional<control::Welcome>& welcome = parts_.dispatcher.welcome();
  parts_.links.OnMembership(
      parts_.membership, *altered,
      welcome.has_value() ? welcome->terms.target_workers : TargetWorkers::kAuto, link_events_);
  parts_.credits.BoundBytes(membership.max_bytes_in_flight);
  parts_.delivery->OnMembership(membership);
  parts_.WakeAgent();
}

void StreamEvents::Handle(const control::Fence& fence) {
  // The answer and the change to the receiver, which refuses older placements from now on, happen
  // under one lock, so that nothing is received in between.
  protocol::Receiver& receiver = parts_.ledger.Of(fence.partition);
  IndexSet returns;
  if (fence.give_back && parts_.delivery->shared() && !parts_.options.delivery.early_end &&
      fence.placement > receiver.lowest())
    returns = GiveBack(fence.partition);
  // The answer reports the deliveries of its partition. In a fixed order, those of other partitions
  // came before some of them, and must not be durable later.
  if (parts_.options.delivery.order == MergeOrder::kDeterministic) parts_.SendReport(News::kAll);
  parts_.dispatcher.Send(control::FenceAnswer{receiver.OnFence(fence.placement, returns)});
}

IndexSet StreamEvents::GiveBack(PartitionId partition) {
  const bool idle = parts_.calls.CheckIdle(BootTime());
  given_back_ = parts_.delivery->GiveBack(partition, idle);
  IndexSet returns;
  for (const ReceivedElement& received : given_back_) returns.Add(received.identity.index);
  if (idle) parts_.links.RecallAllSoon();
  parts_.WakeAgent();
  return returns;
}

void StreamEvents::Handle(const control::ReportAtOnce&) {
  parts_.ledger.ReportAtOnce();
  parts_.WakeAgent();
}

void StreamEvents::Handle(const control::Committed& committed) {
  parts_.commits.OnCommitted(committed.number);
}

void StreamEvents::Handle(const control::End& end) {
  parts_.delivery->OnEnd(end);
  parts_.WakeAgent();
}

void StreamEvents::Handle(const control::Left&) {
  parts_.dispatcher.OnLeft();
}

void StreamEvents::Handle(const control::Agreed& agreed) {
  Delivery& delivery = *parts_.delivery;
  if (absl::Status status = delivery.OnAgreed(agreed); !status.ok()) return parts_.Fail(status);
  parts_.others.OnWaits(agreed.waits_for);
  if (!delivery.reports_rounds()) return;
  if (delivery.ready()) parts_.calls.times().OnReceived();  // all consumers have received the row
  if (!agreed.waits_for.empty())
    parts_.SendReport(News::kReceived);  // the dispatcher may wait for this consumer's budget
}

void StreamEvents::Handle(const control::ConsumersLost& lost) {
  if (parts_.others.OnLost(lost, parts_.delivery->NextName())) parts_.WakeAgent();
}

void StreamEvents::Handle(const control::SessionError& error) {
  parts_.Fail(error.status);
}

}  // namespace penstock::client
