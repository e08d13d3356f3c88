// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/delivery/other_consumers.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "control/sync/clock.h"
#include "dataplane/client/delivery/lost_consumers.h"
#include "dataplane/client/session_state/counters.h"

namespace penstock::client {
namespace {

using State = LostConsumer::State;

std::string TimeHeard(const LostConsumer& its) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", its.heard, absl::LocalTimeZone());
}

bool IsDead(const std::pair<const int64_t, LostConsumer>& lost) {
  return lost.second.state == State::kDead;
}

}  // namespace

OtherConsumers::~OtherConsumers() {
  if (!lost_.empty()) NoteLostConsumers(options_.job.name, 0);
}

void OtherConsumers::OnWaits(const std::string& waits_for) {
  waits_for_ = waits_for;
  NoteBlocked();
}

void OtherConsumers::NoteBlocked() {
  if (waits_for_.empty() && lost_.empty()) {
    waits_since_ = absl::InfiniteFuture();
    error_ = absl::OkStatus();
  } else {
    waits_since_ = std::min(waits_since_, BootTime());
  }
}

void OtherConsumers::DoubtEnded() {
  for (auto& [consumer, its] : lost_) {
    if (its.state != State::kEnded) continue;
    its.state = State::kSilent;
    NotifyLostConsumer(its);
  }
}

void OtherConsumers::Tell(const char* event, const LostConsumer& its, bool notify) const {
  options_.events->Write({event,
                          {{"job", its.job},
                           {"consumer", absl::StrCat(its.consumer)},
                           {"heard", TimeHeard(its)},
                           {"why", its.why}}});
  if (notify) NotifyLostConsumer(its);
}

bool OtherConsumers::OnLost(const control::ConsumersLost& lost, const std::string& next) {
  const absl::Time now = WallTime();  // a time that people read
  std::map<int64_t, LostConsumer> before;
  before.swap(lost_);
  // Consumers that were lost before this session began may be coming back, just as this consumer
  // may have come back.
  const bool news = std::exchange(heard_of_lost_, true);
  bool died = false;
  for (const control::ConsumersLost::Consumer& its : lost.consumers) {
    if (its.consumer == options_.delivery.consumer_index) continue;  // this consumer is here
    const LostConsumer& to = lost_[its.consumer] = {.job = options_.job.name,
                                                    .consumer = its.consumer,
                                                    .state = its.dead    ? State::kDead
                                                             : its.ended ? State::kEnded
                                                                         : State::kSilent,
                                                    .heard = now - its.silent,
                                                    .why = its.why};
    const auto was = before.find(its.consumer);
    if (was != before.end() && was->second.state == to.state) continue;
    Tell(its.dead ? "consumer_dead" : "consumer_suspected", to, news);
    died |= its.dead && was != before.end();
  }
  for (const auto& [consumer, its] : before) {
    if (lost_.contains(consumer)) continue;
    LostConsumer back = its;
    back.state = State::kBack;
    Tell("consumer_back", back, news);
  }
  // Clears an error that Next() did not return, because nobody called it while a consumer was dead.
  if (std::any_of(before.begin(), before.end(), IsDead) &&
      std::none_of(lost_.begin(), lost_.end(), IsDead)) {
    error_ = absl::OkStatus();
  }
  NoteLostConsumers(options_.job.name, static_cast<int64_t>(lost_.size()));
  NoteBlocked();
  if (!died) return false;
  waits_since_ = BootTime();  // the next Next() waits again
  error_ = absl::UnavailableError(
      absl::StrCat(next, " cannot be given out: ", BlockingReason(),
                   "; start it again from its state of this step, or all consumers from states of "
                   "one step"));
  return true;
}

bool OtherConsumers::Check(absl::Time now, absl::Duration waiting, const std::string& next,
                           absl::Time& wake) {
  if (waits_since_ == absl::InfiniteFuture()) return false;
  const absl::Time limit = std::max(waits_since_, now - waiting) + options_.distribute.timeout;
  if (now < limit) {
    wake = std::min(wake, limit);
    return false;
  }
  waits_since_ = now;  // the next Next() waits for the whole timeout again
  error_ = absl::UnavailableError(absl::StrCat(next, " could not be given out for ",
                                               absl::FormatDuration(options_.distribute.timeout),
                                               ": ", BlockingReason()));
  return true;
}

std::string OtherConsumers::BlockingReason() const {
  std::vector<std::string> parts;
  for (const auto& [consumer, its] : lost_) {
    parts.push_back(absl::StrCat("consumer ", consumer,
                                 its.state == State::kDead ? " is dead: not heard from since "
                                                           : " has not been heard from since ",
                                 TimeHeard(its), " (", its.why, ")"));
  }
  if (!waits_for_.empty()) parts.push_back(waits_for_);
  return absl::StrJoin(parts, "; ");
}

}  // namespace penstock::client
