// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session/worker_links.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "control/protocol/trainer_token.h"
#include "control/stub/this_process.h"
#include "control/sync/clock.h"
#include "dataplane/client/session_state/counters.h"

namespace penstock::client {
namespace {

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(20);
constexpr absl::Duration kMaxBackoff = absl::Seconds(2);
// A link that is no longer wanted is kept for this long, because a worker between two placements
// usually gets the next one soon.
constexpr absl::Duration kKeepUnwanted = absl::Seconds(2);
constexpr absl::Duration kRecallAfter = absl::Milliseconds(1);
// After this many failures in a row, a protocol is not tried again.
constexpr int kMaxConsecutiveFailures = 3;

}  // namespace

WorkerLinks::Link* WorkerLinks::Find(WorkerId worker) {
  const auto link = links_.find(worker);
  return link == links_.end() ? nullptr : &link->second;
}

void WorkerLinks::OnMembership(const control::MembershipView& membership,
                               absl::Span<const WorkerId> altered, TargetWorkers target,
                               ReaderEvents& events) {
  for (const WorkerId id : altered) {
    const control::Membership::Worker* worker = membership.Find(id);
    const bool wanted =
        worker != nullptr &&
        control::Reads(target, worker->process == control::ThisProcess(), worker->tags);
    if (!wanted && Find(id) == nullptr) continue;
    Link& link = links_[id];
    if (link.reader == nullptr) link.reader = std::make_shared<Reader>(*worker, events);
    if (link.wanted && !wanted) link.unwanted_since = BootTime();
    if (!link.wanted && wanted) link.ForgetFailures();
    link.wanted = wanted;
    link.placed = membership.IsPlaced(id);
  }
  no_worker_since_ =
      membership.served() ? absl::InfiniteFuture() : std::min(no_worker_since_, BootTime());
}

// --- The links' events -----------------------------------------------------------

void WorkerLinks::OnOpen(WorkerId worker) {
  if (Link* link = Find(worker)) link->opened = true;
}

void WorkerLinks::OnEvent(WorkerId worker) {
  if (Link* link = Find(worker)) link->unacked_receives.OnEvent();
}

void WorkerLinks::OnReceived(const ReceivedElement& received, bool here) {
  Link* link = Find(received.from);
  if (link == nullptr) return;
  link->unacked_receives.OnReceived(received.identity, here);
  link->made_progress = true;
  ++link->elements;
  link->bytes += static_cast<int64_t>(received.bytes);
}

void WorkerLinks::OnRecalled(WorkerId worker, int64_t count) {
  if (Link* link = Find(worker)) link->unacked_receives.OnRecalled(count);
  credits_.OnRecalled(worker, count);
}

void WorkerLinks::OnFailed(WorkerId worker, const absl::Status& reason) {
  if (Link* link = Find(worker)) link->Fail(reason);
}

void WorkerLinks::Link::Fail(const absl::Status& why) {
  CountLinkError(selection.offer.protocol, why);
  if (made_progress) backoff = absl::ZeroDuration();
  backoff = std::clamp(backoff * 2, kFirstBackoff, kMaxBackoff);
  retry_at = BootTime() + backoff;
  if (down_since == absl::InfiniteFuture()) down_since = BootTime();
  reason = why;
  phase = Phase::kBroken;
}

// --- Closing and dialling --------------------------------------------------------

std::shared_ptr<Reader> WorkerLinks::NextToClose(bool none_wanted, absl::Time now,
                                                 absl::Time& wake) const {
  for (const auto& [worker, link] : links_) {
    const bool late = !link.wanted && now >= link.unwanted_since + kKeepUnwanted;
    if (!link.wanted && !late) wake = std::min(wake, link.unwanted_since + kKeepUnwanted);
    if (link.phase == Phase::kDown) continue;
    if (link.phase == Phase::kBroken || none_wanted || late) return link.reader;
  }
  return nullptr;
}

void WorkerLinks::OnDown(WorkerId worker) {
  credits_.RemoveLink(worker);
  Link& link = *Find(worker);
  if (link.phase == Phase::kBroken && link.dialled) link.GiveUpAfterFailures();
  link.phase = Phase::kDown;
  link.dialled = link.opened = link.made_progress = false;
}

void WorkerLinks::Link::GiveUpAfterFailures() {
  const bool no_means = absl::IsResourceExhausted(reason) || absl::IsFailedPrecondition(reason);
  consecutive_failures = no_means && !made_progress ? consecutive_failures + 1 : 0;
  if (consecutive_failures < kMaxConsecutiveFailures) return;
  consecutive_failures = 0;
  given_up[selection.offer.protocol] = std::string(reason.message());
}

std::optional<WorkerLinks::Dial> WorkerLinks::NextToDial(const control::Welcome& welcome,
                                                         absl::Time now, absl::Time& wake) {
  for (auto& [worker, link] : links_) {
    if (!link.wanted || link.phase != Phase::kDown) continue;
    if (now < link.retry_at) {
      wake = std::min(wake, link.retry_at);
      continue;
    }
    link.phase = Phase::kDialling;
    if (link.down_since == absl::InfiniteFuture()) link.down_since = now;
    Dial dial{link.reader, ++link.number, link.given_up, DialOptionsFor(link, welcome)};
    link.unacked_receives.OnDialled();
    return dial;
  }
  return std::nullopt;
}

transfer::DialOptions WorkerLinks::DialOptionsFor(const Link& link,
                                                  const control::Welcome& welcome) const {
  const DistributeOptions& distribute = options_.distribute;
  transfer::DialOptions dial;
  dial.hello.token =
      options_.delivery.cross_trainer_cache.has_value()
          ? control::TrainerToken(welcome.token, options_.delivery.cross_trainer_cache->trainer_id)
          : welcome.token;
  dial.hello.client = options_.client;
  dial.hello.incarnation = options_.incarnation;
  dial.hello.iteration = welcome.iteration;
  dial.hello.holdings = link.unacked_receives.Unreported();
  dial.spec = options_.spec;
  dial.pool = options_.pool;
  dial.hello.compression = distribute.compression;
  dial.tls = options_.tls;
  dial.tcp = options_.tcp;
  dial.filled = link.filled;
  dial.timeout = std::min(distribute.timeout, absl::Seconds(10));
  return dial;
}

void WorkerLinks::OnDialled(WorkerId worker, absl::StatusOr<transfer::TransportSelection> begun) {
  Link& link = *Find(worker);
  link.dialled = begun.ok();
  if (begun.ok()) {
    link.selection = *std::move(begun);
  } else {
    link.Fail(begun.status());
  }
}

std::vector<Event> WorkerLinks::TakeOpened(IterationId iteration) {
  std::vector<Event> events;
  for (auto& [worker, link] : links_) {
    if (link.phase != Phase::kDialling || !link.dialled || !link.opened) continue;
    link.phase = Phase::kOpen;
    link.down_since = absl::InfiniteFuture();
    credits_.AddLink(worker);
    const std::string& address = link.reader->worker().address;
    const transfer::TransportSelection& selection = link.selection;
    events.push_back({"link_opened",
                      {{"worker", address},
                       {"iteration", absl::StrCat(iteration.value())},
                       {"protocol", selection.offer.protocol},
                       {"reason", selection.reason}}});
    if (!selection.instead_of.empty() && !std::exchange(link.told_of_fall_back, true)) {
      events.push_back({"fell_back",
                        {{"worker", address},
                         {"from", selection.instead_of},
                         {"to", selection.offer.protocol},
                         {"reason", selection.reason}}});
    }
  }
  return events;
}

void WorkerLinks::CloseAll() {
  for (auto& [worker, link] : links_) link.reader->Close();
}

// --- Credits -----------------------------------------------------------------------

WorkerLinks::Grants WorkerLinks::TakeGrants() {
  Grants grants;
  for (const CreditManager::Grant& grant : credits_.TakeGrants()) {
    if (Link* link = Find(grant.worker)) {
      link->unacked_receives.OnGranted(grant.count);
      grants.push_back({link->reader, link->number, grant.count});
    }
  }
  return grants;
}

void WorkerLinks::Apply(const Grants& grants) {
  for (const Grant& grant : grants) grant.reader->Grant(grant.link, grant.count);
}

WorkerLinks::Readers WorkerLinks::TakeRecallsOfAll() {
  Readers asked;
  if (!std::exchange(recalls_all_, false)) return asked;
  for (const auto& [worker, link] : links_) {
    if (credits_.asked(worker) > 0) asked.push_back(link.reader);
  }
  return asked;
}

WorkerLinks::Readers WorkerLinks::TakeRecalls(absl::Time now, absl::Time& wake) {
  Readers idle;
  recalls_soon_ = credits_.Starving();
  if (!recalls_soon_) return idle;
  wake = std::min(wake, now + kRecallAfter);
  if (now < last_recall_ + kRecallAfter) return idle;
  last_recall_ = now;
  for (WorkerId worker : credits_.TakeRecalls()) {
    if (Link* link = Find(worker)) idle.push_back(link->reader);
  }
  return idle;
}

// --- Reports -----------------------------------------------------------------------

std::vector<control::LinkCounts> WorkerLinks::Count(bool none_wanted,
                                                    const StepTimes& times) const {
  std::vector<control::LinkCounts> counts;
  for (const auto& [worker, link] : links_) {
    counts.push_back({.worker = worker,
                      .protocol = link.selection.offer.protocol,
                      .reason = link.selection.reason,
                      .open = link.phase == Phase::kOpen,
                      .elements = link.elements,
                      .bytes = link.bytes,
                      .credits = credits_.asked(worker)});
    counts.back().down = link.wanted && !none_wanted && link.down_since != absl::InfiniteFuture();
    counts.back().filled = {.in_place = link.filled->Of(transfer::Filled::kInPlace),
                            .no_slot = link.filled->Of(transfer::Filled::kNoSlot),
                            .for_another = link.filled->Of(transfer::Filled::kForAnother),
                            .elsewhere = link.filled->Of(transfer::Filled::kElsewhere)};
    times.Into(counts.back(), link.reader->worker().address);
  }
  return counts;
}

// The unacknowledged receives of the forgotten workers need not be reported, because such a worker
// gets partitions only under new placements.
void WorkerLinks::ForgetGone(Delivery& delivery) {
  std::erase_if(links_, [&](const auto& entry) {
    return !entry.second.placed && entry.second.phase == Phase::kDown &&
           delivery.Forget(entry.first);
  });
}

bool WorkerLinks::CheckReach(absl::Time now, const std::string& dispatcher, absl::Time& wake) {
  bool failed = false;
  // Records the error if at least the timeout has passed since `since`. The next Next() then waits
  // for the whole timeout again.
  const auto check = [&](absl::Time& since, const auto& error) {
    if (since == absl::InfiniteFuture()) return;
    const absl::Time limit = since + options_.distribute.timeout;
    if (now < limit) {
      wake = std::min(wake, limit);
      return;
    }
    since = now;
    error_ = absl::UnavailableError(error(absl::FormatDuration(options_.distribute.timeout)));
    failed = true;
  };
  check(no_worker_since_, [&](const std::string& timeout) {
    return absl::StrCat("no worker has served the iteration for ", timeout,
                        ", according to the dispatcher at ", dispatcher,
                        "; start a worker that uses this dispatcher");
  });
  for (auto& [worker, link] : links_) {
    if (!link.wanted) continue;
    check(link.down_since, [&, &its = link](const std::string& timeout) {
      return absl::StrCat("worker ", its.reader->worker().address, " was out of reach for ",
                          timeout, ": ", its.reason.message());
    });
  }
  return failed;
}

std::string WorkerLinks::AddressOf(WorkerId worker) const {
  const auto link = links_.find(worker);
  return link == links_.end() ? "" : link->second.reader->worker().address;
}

std::string WorkerLinks::ProtocolOf(WorkerId worker) const {
  const auto link = links_.find(worker);
  return link == links_.end() ? "" : link->second.selection.offer.protocol;
}

std::string WorkerLinks::OutOfReach(const std::string& dispatcher) const {
  if (no_worker_since_ != absl::InfiniteFuture()) {
    return absl::StrCat("a worker: the dispatcher at ", dispatcher,
                        " has none for this job; start a worker that uses this dispatcher");
  }
  for (const auto& [worker, link] : links_) {
    if (!link.wanted || link.down_since == absl::InfiniteFuture()) continue;
    return absl::StrCat("worker ", link.reader->worker().address, ", which is out of reach",
                        link.reason.ok() ? "" : ": ", link.reason.message());
  }
  return "";
}

std::string WorkerLinks::Addresses() const {
  std::vector<std::string> addresses;
  for (const auto& [worker, link] : links_) {
    if (link.wanted) addresses.push_back(link.reader->worker().address);
  }
  return absl::StrJoin(addresses, ", ");
}

}  // namespace penstock::client
