// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session/worker_links.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "control/protocol/trainer_token.h"
#include "control/stub/this_process.h"
#include "control/sync/clock.h"

namespace penstock::client {
namespace {

transfer::DialOptions DialOptionsFor(const WorkerLink& link, const SessionOptions& options,
                                     const control::Welcome& welcome) {
  const DistributeOptions& distribute = options.distribute;
  transfer::DialOptions dial;
  dial.hello.token =
      options.delivery.cross_trainer_cache.has_value()
          ? control::TrainerToken(welcome.token, options.delivery.cross_trainer_cache->trainer_id)
          : welcome.token;
  dial.hello.client = options.client;
  dial.hello.incarnation = options.incarnation;
  dial.hello.iteration = welcome.iteration;
  dial.hello.holdings = link.unacked_receives.Unreported();
  dial.spec = options.spec;
  dial.pool = options.pool;
  dial.hello.compression = distribute.compression;
  dial.tls = options.tls;
  dial.tcp = options.tcp;
  dial.filled = link.filled;
  dial.timeout = std::min(distribute.timeout, absl::Seconds(10));
  return dial;
}

// Returns whether no worker needs to know these receives any more. A worker may get a partition
// before this client hears of it, and may keep a partition after this client has heard that it lost
// it.
bool AreSettled(const UnackedReceives& receives, const control::MembershipView& membership) {
  const std::vector<transfer::Holding> unreported = receives.Unreported();
  return std::all_of(unreported.begin(), unreported.end(), [&](const transfer::Holding& holding) {
    return membership.MayForgetReceives(holding.partition, holding.placement);
  });
}

}  // namespace

WorkerLinks::Link* WorkerLinks::Find(WorkerId worker) {
  const auto link = links_.find(worker);
  return link == links_.end() ? nullptr : &link->second;
}

void WorkerLinks::OnAltered(WorkerId worker, const Link& link) {
  altered_.insert(worker);
  to_close_.Set(worker, link.CloseAt(none_wanted_));
  to_dial_.Set(worker, link.DialAt(none_wanted_));
  out_of_reach_.Set(worker, link.OutOfReachAt(options_.distribute.timeout));
  if (link.IsReady()) ready_.push_back(worker);
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
    if (membership.IsPlaced(id)) {
      unplaced_.erase(id);
    } else {
      unplaced_.insert(id);
    }
    OnAltered(id, link);
  }
  no_worker_since_ =
      membership.served() ? absl::InfiniteFuture() : std::min(no_worker_since_, BootTime());
}

// --- The links' events -----------------------------------------------------------

void WorkerLinks::OnOpen(WorkerId worker) {
  Link* link = Find(worker);
  if (link == nullptr) return;
  link->opened = true;
  OnAltered(worker, *link);
}

void WorkerLinks::OnEvent(WorkerId worker) {
  if (Link* link = Find(worker)) link->unacked_receives.OnEvent();
}

void WorkerLinks::OnReceived(const ReceivedElement& received, bool here) {
  Link* link = Find(received.from);
  if (link == nullptr) return;
  link->unacked_receives.OnReceived(received.identity, here);
  link->made_progress = true;
  recall_pace_.OnReceived();
  ++link->elements;
  link->bytes += static_cast<int64_t>(received.bytes);
  altered_.insert(received.from);
}

void WorkerLinks::OnRecalled(WorkerId worker, int64_t count) {
  credits_.OnRecalled(worker, count);
  Link* link = Find(worker);
  if (link == nullptr) return;
  link->unacked_receives.OnRecalled(count);
  altered_.insert(worker);
}

void WorkerLinks::OnFailed(WorkerId worker, const absl::Status& reason) {
  Link* link = Find(worker);
  if (link == nullptr) return;
  link->Fail(reason);
  OnAltered(worker, *link);
}

// --- Closing and dialling --------------------------------------------------------

void WorkerLinks::WantNone(bool none) {
  if (std::exchange(none_wanted_, none) == none) return;
  for (const auto& [worker, link] : links_) OnAltered(worker, link);
}

std::shared_ptr<Reader> WorkerLinks::NextToClose(absl::Time now, absl::Time& wake) {
  const std::optional<WorkerId> worker = to_close_.Next(now, wake);
  return worker.has_value() ? Find(*worker)->reader : nullptr;
}

void WorkerLinks::OnDown(WorkerId worker) {
  credits_.RemoveLink(worker);
  Link& link = *Find(worker);
  if (link.phase == Phase::kBroken && link.dialled) link.GiveUpAfterFailures();
  link.phase = Phase::kDown;
  link.dialled = link.opened = link.made_progress = false;
  OnAltered(worker, link);
}

std::optional<WorkerLinks::Dial> WorkerLinks::NextToDial(const control::Welcome& welcome,
                                                         absl::Time now, absl::Time& wake) {
  const std::optional<WorkerId> worker = to_dial_.Next(now, wake);
  if (!worker.has_value()) return std::nullopt;
  Link& link = *Find(*worker);
  link.phase = Phase::kDialling;
  if (link.down_since == absl::InfiniteFuture()) link.down_since = now;
  OnAltered(*worker, link);
  Dial dial{link.reader, ++link.number, link.given_up, DialOptionsFor(link, options_, welcome)};
  link.unacked_receives.OnDialled();
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
  OnAltered(worker, link);
}

std::vector<Event> WorkerLinks::TakeOpened(IterationId iteration) {
  std::vector<Event> events;
  for (const WorkerId worker : std::exchange(ready_, {})) {
    Link* found = Find(worker);
    if (found == nullptr || !found->IsReady()) continue;
    Link& link = *found;
    link.phase = Phase::kOpen;
    link.down_since = absl::InfiniteFuture();
    OnAltered(worker, link);
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
      altered_.insert(grant.worker);
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

WorkerLinks::Readers WorkerLinks::TakeRecalls(absl::Time now, bool needs, absl::Time& wake) {
  Readers idle;
  recalls_soon_ = credits_.Starving();
  if (!recalls_soon_) {
    recall_pace_.OnRest(now);
    return idle;
  }
  // A worker is asked at the second look at the earliest.
  const int64_t turns = 2 * credits_.turns();
  const absl::Time next = recall_pace_.Plan(now, needs, turns);
  wake = std::min(wake, next);
  if (next > now) return idle;
  for (WorkerId worker : credits_.TakeRecalls()) {
    if (Link* link = Find(worker)) idle.push_back(link->reader);
  }
  recall_pace_.OnLook(now);
  wake = std::min(wake, recall_pace_.Plan(now, needs, turns));
  return idle;
}

// --- Reports -----------------------------------------------------------------------

void WorkerLinks::CountWait(WorkerId worker, StepTimes& times) {
  const Link* link = Find(worker);
  if (link == nullptr) return times.Goes("", "");
  times.Goes(link->reader->worker().address, link->selection.offer.protocol);
  altered_.insert(worker);
}

void WorkerLinks::Report(const StepTimes& times, const control::MembershipView& membership,
                         Delivery& delivery, control::ClientHeartbeat& heartbeat) {
  const auto report = [&](WorkerId worker, const Link& link) {
    control::LinkCounts& counts = heartbeat.links.emplace_back(link.Counts(none_wanted_));
    counts.worker = worker;
    counts.credits = credits_.asked(worker);
    times.Into(counts, link.reader->worker().address);
  };
  heartbeat.only_changed_links = !std::exchange(reports_all_, false);
  if (heartbeat.only_changed_links) {
    for (const WorkerId worker : altered_) report(worker, links_.at(worker));
    heartbeat.gone_links = forgotten_;
  } else {
    for (const auto& [worker, link] : links_) report(worker, link);
  }
  altered_.clear();
  forgotten_.clear();
  std::erase_if(unplaced_, [&](WorkerId worker) {
    const Link& link = *Find(worker);
    if (link.phase != Phase::kDown || !AreSettled(link.unacked_receives, membership)) return false;
    if (!delivery.Forget(worker)) return false;
    Agenda<WorkerId>* const agendas[] = {&to_close_, &to_dial_, &out_of_reach_};
    for (Agenda<WorkerId>* agenda : agendas) agenda->Set(worker, absl::InfiniteFuture());
    links_.erase(worker);
    forgotten_.push_back(worker);
    return true;
  });
}

bool WorkerLinks::CheckReach(absl::Time now, const std::string& dispatcher, absl::Time& wake) {
  const absl::Duration timeout = options_.distribute.timeout;
  std::string error;
  if (now >= no_worker_since_ + timeout) {
    error = absl::StrCat("no worker has served the iteration for ", absl::FormatDuration(timeout),
                         ", according to the dispatcher at ", dispatcher,
                         "; start a worker that uses this dispatcher");
  } else if (const std::optional<WorkerId> worker = out_of_reach_.Next(now, wake)) {
    const Link& link = *Find(*worker);
    error = absl::StrCat("worker ", link.reader->worker().address, " was out of reach for ",
                         absl::FormatDuration(timeout), ": ", link.reason.message());
  }
  if (error.empty()) {
    wake = std::min(wake, no_worker_since_ + timeout);
    return false;
  }
  error_ = absl::UnavailableError(std::move(error));
  // The next Next() waits for the whole timeout again, whatever is missing.
  if (no_worker_since_ != absl::InfiniteFuture()) no_worker_since_ = now;
  for (auto& [worker, link] : links_) {
    if (!link.IsOutOfReach()) continue;
    link.down_since = now;
    OnAltered(worker, link);
  }
  return true;
}

std::string WorkerLinks::OutOfReach(const std::string& dispatcher) const {
  if (no_worker_since_ != absl::InfiniteFuture()) {
    return absl::StrCat("a worker: the dispatcher at ", dispatcher,
                        " has none for this job; start a worker that uses this dispatcher");
  }
  for (const auto& [worker, link] : links_) {
    if (!link.IsOutOfReach()) continue;
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
