// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session/session_parts.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "control/sync/clock.h"

namespace penstock::client {
namespace {

// Twice the time between two looks for idle workers of a session that needs no elements
// (recall_pace.h).
constexpr absl::Duration kSoon = absl::Seconds(2);

}  // namespace

SessionParts::SessionParts(SessionOptions session_options, control::DispatcherStub& stub)
    : options(std::move(session_options)),
      dispatcher(options, stub),
      ledger(options.state),
      commits(options.state.value_or(IndicesByPartition())),
      calls(options),
      others(options),
      credits(MakeCredits(options)),
      links(options, credits),
      delivery(Delivery::Make({options, dispatcher, ledger, credits, others})) {}

bool SessionParts::IsCancelled() const {
  return dispatcher.leaving() || options.stop.stop_requested();
}

bool SessionParts::LeaseHolds() {
  return dispatcher.lease().Holds(BootTime());
}

void SessionParts::Fail(const absl::Status& status) {
  if (error.ok()) error = status;
  WakeAgent();
  WakeWaiting();
}

void SessionParts::WakeWaiting() {
  changed.NotifyAll();
  received.NotifyAll();
}

void SessionParts::SendReport(News news, bool waits) {
  control::Report report{.partitions = ledger.TakeNews(news),
                         .rounds = delivery->TakeRounds(),
                         .waits = waits,
                         .complete = ledger.TakeCompletes()};
  if (!report.partitions.empty() || report.rounds.has_value() || waits || report.complete)
    dispatcher.Send(std::move(report));
}

bool SessionParts::Owes() const {
  const std::optional<control::Welcome>& welcome = dispatcher.welcome();
  return welcome.has_value() && welcome->terms.ack_mode == AckMode::kOnCommit &&
         !commits.Covers(ledger.Delivered());
}

bool SessionParts::AwaitsGoodbye() const {
  return end_may_miss && !dispatcher.left() &&
         dispatcher.welcome()->terms.ack_mode == AckMode::kOnDelivery;
}

bool SessionParts::ReturnsEnd() const {
  return end_seen && (ledger.handed() > 0 ? error.ok() : !AwaitsGoodbye());
}

bool SessionParts::MayLeave() const {
  // A commit names other repetitions too.
  return error.ok() && !commits.awaited().has_value() && dispatcher.IsOpen() &&
         (dispatcher.for_good() || !Owes());
}

bool SessionParts::WantsNoLinks() const {
  return delivery->end().has_value() || dispatcher.leaving() || !error.ok();
}

bool SessionParts::NeedsElements() const {
  const int64_t window = credits.limit();
  const int64_t few = std::max(window / 4, std::min<int64_t>(window / 2, 4));
  const auto held = static_cast<int64_t>(delivery->held());
  return !delivery->ready() || (held < few && calls.pace().TimeFor(held) < kSoon);
}

WorkerLinks::Grants SessionParts::TakeGrants() {
  return calls.idle() ? WorkerLinks::Grants() : links.TakeGrants();
}

}  // namespace penstock::client
