// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session/link_events.h"

#include <utility>

#include "control/observe/fail_point.h"
#include "control/sync/mutex.h"
#include "dataplane/client/session_state/counters.h"

namespace penstock::client {

void LinkEvents::OnLinkOpen(WorkerId worker) {
  MutexLock lock(parts_.mu);
  parts_.links.OnOpen(worker);
  parts_.WakeAgent();
}

void LinkEvents::OnElements(WorkerId worker, absl::Span<Element> elements) {
  for (size_t i = 0; i < elements.size(); ++i) FailPoint("land_before_ack");
  MutexLock lock(parts_.mu);
  const bool waited_for = BeginReceive(worker);
  for (Element& element : elements) {
    ReceivedElement received{.identity = ToThisMember(element.identity()),
                             .from = worker,
                             .bytes = element.block().size()};
    received.element = std::move(element);
    Receive(std::move(received));
  }
  EndReceive(waited_for);
}

void LinkEvents::OnElementError(WorkerId worker, const Identity& identity,
                                const absl::Status& error) {
  MutexLock lock(parts_.mu);
  const bool waited_for = BeginReceive(worker);
  Receive({.identity = ToThisMember(identity), .error = error, .from = worker});
  EndReceive(waited_for);
}

Identity LinkEvents::ToThisMember(Identity identity) const {
  if (const auto& group = parts_.options.delivery.consumer_group) {
    identity.index += group->member - identity.index % group->size;
  }
  return identity;
}

bool LinkEvents::BeginReceive(WorkerId worker) {
  parts_.links.OnEvent(worker);
  return !parts_.delivery->ready();
}

void LinkEvents::Receive(ReceivedElement&& received) {
  using protocol::ReceiveResult;
  const Identity& identity = received.identity;
  const std::optional<control::Welcome>& welcome = parts_.dispatcher.welcome();
  const bool ours = welcome.has_value() && identity.iteration == welcome->iteration &&
                    parts_.ledger.Known(identity.partition) && identity.index >= 0;
  const ReceiveResult result =
      ours ? parts_.delivery->OnElement(received) : ReceiveResult::kOldPlacement;
  parts_.links.OnReceived(received, result != ReceiveResult::kOldPlacement);
  if (result != ReceiveResult::kAccepted) {
    parts_.credits.OnDropped(received.from);
    return parts_.WakeAgent();  // the agent may grant the freed credit
  }
  parts_.ledger.NoteNews();
  parts_.delivery->Keep(std::move(received));
}

void LinkEvents::EndReceive(bool waited_for) {
  Delivery& delivery = *parts_.delivery;
  NoteHeld(static_cast<int64_t>(delivery.held()));
  if (parts_.ledger.has_news() && parts_.dispatcher.welcomed() &&
      delivery.MustReport(parts_.calls.times())) {
    parts_.SendReport(News::kReceived);
  }
  if (parts_.ledger.has_news() && parts_.ledger.at_once()) parts_.WakeAgent();
  if (!waited_for || !delivery.ready()) return;
  parts_.calls.times().OnReceived();
  parts_.received.NotifyAll();
}

void LinkEvents::OnRecalled(WorkerId worker, int64_t count) {
  MutexLock lock(parts_.mu);
  parts_.links.OnRecalled(worker, count);
  parts_.WakeAgent();
}

void LinkEvents::OnLinkClosed(WorkerId worker, const absl::Status& reason) {
  MutexLock lock(parts_.mu);
  parts_.links.OnFailed(worker, reason);
  parts_.WakeAgent();
}

}  // namespace penstock::client
