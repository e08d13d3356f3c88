// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session/worker_link.h"

#include <algorithm>

#include "control/sync/clock.h"
#include "dataplane/client/session_state/counters.h"

namespace penstock::client {
namespace {

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(20);
constexpr absl::Duration kMaxBackoff = absl::Seconds(2);
// A link that is no longer wanted is kept for this long, because a worker between two placements
// usually gets the next one soon.
constexpr absl::Duration kKeepUnwanted = absl::Seconds(2);
// After this many failures in a row, a protocol is not tried again.
constexpr int kMaxConsecutiveFailures = 3;

}  // namespace

void WorkerLink::Fail(const absl::Status& why) {
  CountLinkError(selection.offer.protocol, why);
  if (made_progress) backoff = absl::ZeroDuration();
  backoff = std::clamp(backoff * 2, kFirstBackoff, kMaxBackoff);
  retry_at = BootTime() + backoff;
  if (down_since == absl::InfiniteFuture()) down_since = BootTime();
  reason = why;
  phase = Phase::kBroken;
}

void WorkerLink::GiveUpAfterFailures() {
  const bool no_means = absl::IsResourceExhausted(reason) || absl::IsFailedPrecondition(reason);
  consecutive_failures = no_means && !made_progress ? consecutive_failures + 1 : 0;
  if (consecutive_failures < kMaxConsecutiveFailures) return;
  consecutive_failures = 0;
  given_up[selection.offer.protocol] = std::string(reason.message());
}

void WorkerLink::ForgetFailures() {
  down_since = absl::InfiniteFuture();
  retry_at = absl::InfinitePast();
  backoff = absl::ZeroDuration();
}

absl::Time WorkerLink::CloseAt(bool none_wanted) const {
  if (phase == Phase::kDown) return absl::InfiniteFuture();
  if (phase == Phase::kBroken || none_wanted) return absl::InfinitePast();
  return wanted ? absl::InfiniteFuture() : unwanted_since + kKeepUnwanted;
}

absl::Time WorkerLink::DialAt(bool none_wanted) const {
  return wanted && !none_wanted && phase == Phase::kDown ? retry_at : absl::InfiniteFuture();
}

absl::Time WorkerLink::OutOfReachAt(absl::Duration timeout) const {
  return IsOutOfReach() ? down_since + timeout : absl::InfiniteFuture();
}

control::LinkCounts WorkerLink::Counts(bool none_wanted) const {
  return {.protocol = selection.offer.protocol,
          .reason = selection.reason,
          .open = phase == Phase::kOpen,
          .elements = elements,
          .bytes = bytes,
          .down = IsOutOfReach() && !none_wanted,
          .filled = {.in_place = filled->Of(transfer::Filled::kInPlace),
                     .no_slot = filled->Of(transfer::Filled::kNoSlot),
                     .for_another = filled->Of(transfer::Filled::kForAnother),
                     .elsewhere = filled->Of(transfer::Filled::kElsewhere)}};
}

}  // namespace penstock::client
