// SPDX-License-Identifier: Apache-2.0
// The session's links, and the thread that maintains them and the stream.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/observe/fail_point.h"
#include "control/protocol/trainer_token.h"
#include "control/sync/boot_time.h"
#include "control/sync/mutex.h"
#include "dataplane/client/counters.h"
#include "dataplane/client/session.h"
#include "dataplane/memory/catch_exhausted.h"
#include "penstock/status.h"

namespace penstock::client {
namespace {

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(20);
constexpr absl::Duration kMaxBackoff = absl::Seconds(2);
// A worker between two placements usually gets the next one soon.
constexpr absl::Duration kKeepUnwanted = absl::Seconds(2);
constexpr absl::Duration kRecallAfter = absl::Milliseconds(1);
// How long Next() waits before the dispatcher is notified. The pause before the next notice grows
// from kSayWaits to kSayWaitsAtMost.
constexpr absl::Duration kSayWaits = absl::Milliseconds(5);
constexpr absl::Duration kSayWaitsAtMost = absl::Milliseconds(500);
constexpr absl::Duration kLongestSleep = absl::Milliseconds(50);
// A worker may send elements of a partition before the dispatcher's message about it arrives. At
// most this many such partitions are accepted, so that the memory per partition is bounded,
// whatever workers name.
constexpr uint64_t kMostUnheard = 1024;
// After this many failures in a row a protocol is not tried again.
constexpr int kMaxConsecutiveFailures = 3;

// Returns true if this process has not yet logged that it does without a named protocol for this
// worker.
bool FirstFallBack(WorkerId worker) {
  static Mutex mu;
  static std::set<WorkerId>& said = *new std::set<WorkerId>;
  MutexLock lock(mu);
  return said.insert(worker).second;
}

}  // namespace

// --- The links' events -----------------------------------------------------------

void Session::OnLinkOpen(WorkerId worker) {
  MutexLock lock(mu_);
  Reader* reader = FindReader(worker);
  if (reader == nullptr) return;
  reader->progress().opened = true;
  WakeAgent();
}

void Session::OnElements(WorkerId worker, absl::Span<Element> elements) {
  for (size_t i = 0; i < elements.size(); ++i) FailPoint("land_before_ack");
  MutexLock lock(mu_);
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

void Session::OnElementError(WorkerId worker, const Identity& identity, const absl::Status& error) {
  MutexLock lock(mu_);
  const bool waited_for = BeginReceive(worker);
  Receive({.identity = ToThisMember(identity), .error = error, .from = worker});
  EndReceive(waited_for);
}

bool Session::Known(PartitionId partition) const {
  return partition && partition.value() <= partitions_ + kMostUnheard;
}

void Session::Receive(ReceivedElement received) {
  const Identity& identity = received.identity;
  const bool ours = welcome_.has_value() && identity.iteration == welcome_->iteration &&
                    Known(identity.partition) && identity.index >= 0 &&
                    (!ordered() || merge_.ordered().Expects(identity.partition, identity.index));
  const protocol::ReceiveResult result =
      !ours ? protocol::ReceiveResult::kOldPlacement
      : reads_window()
          ? protocol::ReceiveResult::kAccepted
          : ReceiverOf(identity.partition).OnElement(identity.placement, PositionOf(identity));
  if (Reader* reader = FindReader(received.from)) {
    Reader::Progress& progress = reader->progress();
    progress.unacked_receives.OnReceived(identity,
                                         result != protocol::ReceiveResult::kOldPlacement);
    progress.made_progress = true;
    ++progress.elements;
    progress.bytes += static_cast<int64_t>(received.bytes);
  }
  if (result != protocol::ReceiveResult::kAccepted) {
    credits_.OnDropped(received.from);
    return WakeAgent();  // its credit is free
  }
  news_ = true;
  if (ordered()) {  // credits are no bound here
    credits_.OnDropped(received.from);
    receive_limits_.OnReceived(static_cast<int64_t>(received.bytes));
    return merge_.Push(std::move(received));
  }
  credits_.OnReceived(received.from, static_cast<int64_t>(received.bytes));
  if (shared() && options_.distribute.early_end)
    ReceiverOf(identity.partition).OnHanded(PositionOf(identity));
  if (coordinated()) return KeepForRound(std::move(received));
  merge_.Push(std::move(received));
}

bool Session::BeginReceive(WorkerId worker) {
  if (Reader* reader = FindReader(worker)) reader->progress().unacked_receives.OnEvent();
  return !merge_.ready();
}

void Session::EndReceive(bool waited_for) {
  NoteHeld(static_cast<int64_t>(coordinated() ? for_rounds_.size() : merge_.size()));
  if (coordinated() && news_ && welcomed_ && MustSay()) ReportReceived();
  if (news_ && report_at_once_) WakeAgent();
  if (!waited_for || !merge_.ready()) return;
  times_.OnReceived();
  received_.NotifyAll();
}

void Session::OnRecalled(WorkerId worker, int64_t count) {
  MutexLock lock(mu_);
  if (Reader* reader = FindReader(worker)) reader->progress().unacked_receives.OnRecalled(count);
  credits_.OnRecalled(worker, count);
  WakeAgent();
}

void Session::OnLinkClosed(WorkerId worker, const absl::Status& reason) {
  MutexLock lock(mu_);
  if (Reader* reader = FindReader(worker)) LinkFailed(*reader, reason);
}

// --- The agent -------------------------------------------------------------------

void Session::Run() {
  Lock lock(mu_);
  while (!stopping_) {
    const absl::Time now = BootTime();
    absl::Time wake = now + kLongestSleep;
    if (IsCancelled() && MayLeave()) leaving_ = true;
    if (std::exchange(reopens_, false)) ReopenStream();
    TendStream(now, wake);
    TendLinks(now, wake);
    TendCredits(now, wake);
    TendWaiting(now, wake);
    SayWaits();
    CheckReach(now, wake);
    if (stopping_) break;
    agent_.wait_for(
        lock, absl::ToChronoMicroseconds(std::max(wake - BootTime(), absl::Microseconds(100))));
  }
}

void Session::ReopenStream() {
  absl::StatusOr<std::unique_ptr<control::ReconnectingClientSession>> stream =
      stub_.KeepClientSession(this, {.timeout = options_.distribute.timeout});
  if (!stream.ok()) {
    over_ = true;
    given_up_ = stream.status();
    Fail(given_up_);
    return WakeWaiting();
  }
  auto over = std::exchange(stream_, *std::move(stream));
  mu_.unlock();
  over.reset();
  mu_.lock();
}

void Session::TendStream(absl::Time now, absl::Time& wake) {
  if (!welcomed_ || left_) return;
  if (now >= next_heartbeat_) {
    Beat();
    const absl::Duration hint = options_.distribute.task_refresh_interval_hint;
    next_heartbeat_ =
        now + (hint > absl::ZeroDuration() ? std::min(hint, welcome_->heartbeat_interval)
                                           : welcome_->heartbeat_interval);
    if (news_ || coordinated()) SendReport();
  }
  if (news_ && (report_at_once_ || end_)) SendReport();
  if (news_ && coordinated() && (MustSay() || now >= said_ + kLongestSleep)) ReportReceived();
  const bool over = end_seen_ && !HasSome() && handed_ == 0;
  if (leaving_ || over) {
    if (!std::exchange(last_beat_sent_, true)) Beat();  // reports what came since the last one
    if (!leave_sent_ && MayLeave()) SendLeave();
  }
  wake = std::min(wake, next_heartbeat_);
}

void Session::Beat() {
  unanswered_[++heartbeats_] = BootTime();
  times_.Account();
  stream_->Send(control::ClientHeartbeat{heartbeats_, CountLinks(), credits_.TakeWasBound(),
                                         times_.Steps(), marks_.Marks()});
  ForgetGone();
}

// Forgets workers that are gone. Their unacknowledged receives need not be reported: partitions
// come to such a worker only under new placements.
void Session::ForgetGone() {
  std::erase_if(readers_, [this](const auto& entry) REQUIRES(mu_) {
    const Reader::Progress& progress = entry.second->progress();
    return !progress.placed && progress.phase == Reader::Phase::kDown && merge_.Forget(entry.first);
  });
}

std::vector<control::LinkCounts> Session::CountLinks() const {
  std::vector<control::LinkCounts> links;
  const bool none_wanted = end_ || leaving_ || !error_.ok();
  for (const auto& [worker, reader] : readers_) {
    const Reader::Progress& progress = reader->progress();
    links.push_back({.worker = worker,
                     .protocol = progress.selection.offer.protocol,
                     .reason = progress.selection.reason,
                     .open = progress.phase == Reader::Phase::kOpen,
                     .elements = progress.elements,
                     .bytes = progress.bytes,
                     .credits = credits_.asked(worker)});
    links.back().down =
        progress.wanted && !none_wanted && progress.down_since != absl::InfiniteFuture();
    links.back().filled = {.in_place = progress.filled->Of(transfer::Filled::kInPlace),
                           .no_slot = progress.filled->Of(transfer::Filled::kNoSlot),
                           .for_another = progress.filled->Of(transfer::Filled::kForAnother),
                           .elsewhere = progress.filled->Of(transfer::Filled::kElsewhere)};
    times_.Into(links.back(), reader->worker().address);
  }
  return links;
}

void Session::TendLinks(absl::Time now, absl::Time& wake) {
  while (!stopping_ && CloseOneLink(now, wake)) {
  }
  while (!stopping_ && DialOneLink(now, wake)) {
  }
}

bool Session::CloseOneLink(absl::Time now, absl::Time& wake) {
  const bool none_wanted = end_ || leaving_ || !error_.ok();
  for (auto& [worker, reader] : readers_) {
    Reader::Progress& progress = reader->progress();
    const bool late = !progress.wanted && now >= progress.unwanted_since + kKeepUnwanted;
    if (!progress.wanted && !late) {
      wake = std::min(wake, progress.unwanted_since + kKeepUnwanted);
    }
    if (progress.phase == Reader::Phase::kDown) continue;
    if (progress.phase != Reader::Phase::kBroken && !none_wanted && !late) continue;
    std::shared_ptr<Reader> closing = reader;
    mu_.unlock();
    closing->Close();  // elements received until then count
    mu_.lock();
    credits_.RemoveLink(closing->worker().worker);
    if (progress.phase == Reader::Phase::kBroken && progress.dialled) GiveUpAfterFailures(progress);
    progress.phase = Reader::Phase::kDown;
    progress.dialled = progress.opened = progress.made_progress = false;
    return true;
  }
  return false;
}

bool Session::DialOneLink(absl::Time now, absl::Time& wake) {
  if (!welcome_.has_value() || end_ || leaving_ || !error_.ok()) return false;
  for (auto& [worker, reader] : readers_) {
    Reader::Progress& progress = reader->progress();
    if (!progress.wanted || progress.phase != Reader::Phase::kDown) continue;
    if (now < progress.retry_at) {
      wake = std::min(wake, progress.retry_at);
      continue;
    }
    std::shared_ptr<Reader> dialling = reader;
    progress.phase = Reader::Phase::kDialling;
    if (progress.down_since == absl::InfiniteFuture()) progress.down_since = now;
    const int64_t number = ++progress.link;
    transfer::DialOptions dial = DialOptionsFor(progress);
    const std::map<std::string, std::string> given_up = progress.given_up;
    progress.unacked_receives.OnDialled();
    mu_.unlock();
    absl::StatusOr<transfer::TransportSelection> begun = CatchExhausted("opening a link", [&] {
      return dialling->Dial(number, options_.transport_preference, given_up, std::move(dial));
    });
    mu_.lock();
    progress.dialled = begun.ok();
    if (begun.ok()) {
      progress.selection = *std::move(begun);
    } else {
      LinkFailed(*dialling, begun.status());
      Fail(begun.status());  // no later attempt can do better
    }
    return true;
  }
  return false;
}

transfer::DialOptions Session::DialOptionsFor(const Reader::Progress& progress) const {
  transfer::DialOptions dial;
  dial.hello.token = reads_window()
                         ? control::TrainerToken(
                               welcome_->token, options_.distribute.cross_trainer_cache->trainer_id)
                         : welcome_->token;
  dial.hello.client = options_.client;
  dial.hello.incarnation = options_.incarnation;
  dial.hello.iteration = welcome_->iteration;
  dial.hello.holdings = progress.unacked_receives.Unreported();
  dial.spec = options_.spec;
  dial.pool = options_.pool;
  dial.hello.compression = options_.distribute.compression;
  dial.tls = options_.tls;
  dial.tcp = options_.tcp;
  dial.filled = progress.filled;
  dial.timeout = std::min(options_.distribute.timeout, absl::Seconds(10));
  return dial;
}

void Session::GiveUpAfterFailures(Reader::Progress& progress) {
  const absl::Status& reason = progress.reason;
  const bool no_means = absl::IsResourceExhausted(reason) || absl::IsFailedPrecondition(reason);
  progress.consecutive_failures =
      no_means && !progress.made_progress ? progress.consecutive_failures + 1 : 0;
  if (progress.consecutive_failures < kMaxConsecutiveFailures) return;
  progress.consecutive_failures = 0;
  progress.given_up[progress.selection.offer.protocol] = std::string(reason.message());
}

void Session::LinkFailed(Reader& reader, const absl::Status& reason) {
  Reader::Progress& progress = reader.progress();
  CountLinkError(progress.selection.offer.protocol, reason);
  if (progress.made_progress) progress.backoff = absl::ZeroDuration();
  progress.backoff = std::clamp(progress.backoff * 2, kFirstBackoff, kMaxBackoff);
  progress.retry_at = BootTime() + progress.backoff;
  if (progress.down_since == absl::InfiniteFuture()) progress.down_since = BootTime();
  progress.reason = reason;
  progress.phase = Reader::Phase::kBroken;
  WakeAgent();
}

void Session::TendCredits(absl::Time now, absl::Time& wake) {
  std::vector<Event> opened;
  for (auto& [worker, reader] : readers_) {
    Reader::Progress& progress = reader->progress();
    if (progress.phase != Reader::Phase::kDialling || !progress.dialled || !progress.opened) {
      continue;
    }
    progress.phase = Reader::Phase::kOpen;
    progress.down_since = absl::InfiniteFuture();
    credits_.AddLink(worker);
    opened.push_back({"link_opened",
                      {{"worker", reader->worker().address},
                       {"iteration", absl::StrCat(welcome_->iteration.value())},
                       {"protocol", progress.selection.offer.protocol},
                       {"reason", progress.selection.reason}}});
    if (const transfer::TransportSelection& selection = progress.selection;
        !selection.instead_of.empty() && FirstFallBack(worker)) {
      opened.push_back({"fell_back",
                        {{"worker", reader->worker().address},
                         {"from", selection.instead_of},
                         {"to", selection.offer.protocol},
                         {"reason", selection.reason}}});
    }
  }
  if (ToGrants grants = TakeGrants(); !grants.empty() || !opened.empty()) {
    mu_.unlock();
    Apply(grants);
    for (Event& event : opened) options_.events->Write(std::move(event));
    mu_.lock();
  }
  if (std::exchange(recalls_all_, false)) RecallAll();
  recalls_soon_ = credits_.Starving();
  if (!recalls_soon_) return;
  wake = std::min(wake, now + kRecallAfter);
  if (now < last_recall_ + kRecallAfter) return;
  last_recall_ = now;
  std::vector<std::shared_ptr<Reader>> idle;
  for (WorkerId worker : credits_.TakeRecalls()) {
    if (auto reader = readers_.find(worker); reader != readers_.end()) {
      idle.push_back(reader->second);
    }
  }
  mu_.unlock();
  for (const std::shared_ptr<Reader>& reader : idle) reader->Recall();
  mu_.lock();
}

void Session::RecallAll() {
  std::vector<std::shared_ptr<Reader>> asked;
  for (const auto& [worker, reader] : readers_) {
    if (credits_.asked(worker) > 0) asked.push_back(reader);
  }
  mu_.unlock();
  for (const std::shared_ptr<Reader>& reader : asked) reader->Recall();
  mu_.lock();
}

// Near the end of a shared job, reports that Next() waits: others may hold elements that they do
// not return.
void Session::TendWaiting(absl::Time now, absl::Time& wake) {
  if (calls_ != calls_seen_ || times_.waiting()) {
    calls_seen_ = calls_;
    called_ = now;
  }
  if (!welcomed_ || !shared() || !report_at_once_ || end_ || leaving_ || !error_.ok()) return;
  const absl::Duration waiting = absl::FromChrono(times_.Waiting());
  if (!times_.waiting() || HasSome() || waiting < kSayWaits) {
    between_waits_ = absl::ZeroDuration();
    say_waits_ = absl::InfinitePast();
    if (times_.waiting()) wake = std::min(wake, now + kSayWaits);
    return;
  }
  if (now >= say_waits_) {
    SendReport(/*waits=*/true);
    between_waits_ = std::clamp(2 * between_waits_, kSayWaits, kSayWaitsAtMost);
    say_waits_ = now + between_waits_;
  }
  wake = std::min(wake, say_waits_);
}

void Session::CheckReach(absl::Time now, absl::Time& wake) {
  if (end_ || merge_.ready() || rounds_.Next() != nullptr) return;
  CheckConsumers(now, wake);
  if (!times_.waiting()) return;  // the outage may end before anybody waits
  CheckServed(now, wake);
  for (auto& [worker, reader] : readers_) {
    Reader::Progress& progress = reader->progress();
    if (!progress.wanted || progress.down_since == absl::InfiniteFuture()) continue;
    const absl::Time limit = progress.down_since + options_.distribute.timeout;
    if (now < limit) {
      wake = std::min(wake, limit);
      continue;
    }
    progress.down_since = now;  // the next call waits as long again
    unreachable_ = absl::UnavailableError(absl::StrCat(
        "worker ", reader->worker().address, " was out of reach for ",
        absl::FormatDuration(options_.distribute.timeout), ": ", progress.reason.message()));
    WakeWaiting();
  }
}

void Session::CheckServed(absl::Time now, absl::Time& wake) {
  if (no_worker_since_ == absl::InfiniteFuture()) return;
  const absl::Time limit = no_worker_since_ + options_.distribute.timeout;
  if (now < limit) {
    wake = std::min(wake, limit);
    return;
  }
  no_worker_since_ = now;  // the next call waits as long again
  unreachable_ = absl::UnavailableError(absl::StrCat(
      "no worker has served the iteration for ", absl::FormatDuration(options_.distribute.timeout),
      ", says the dispatcher at ", stub_.address(), "; start a worker there"));
  WakeWaiting();
}

// --- Credits -----------------------------------------------------------------------

Reader* Session::FindReader(WorkerId worker) {
  auto reader = readers_.find(worker);
  return reader == readers_.end() ? nullptr : reader->second.get();
}

Session::ToGrants Session::TakeGrants() {
  ToGrants grants;
  if (idle_) return grants;
  for (const CreditManager::Grant& grant : credits_.TakeGrants()) {
    if (auto reader = readers_.find(grant.worker); reader != readers_.end()) {
      Reader::Progress& progress = reader->second->progress();
      progress.unacked_receives.OnGranted(grant.count);
      grants.push_back({reader->second, progress.link, grant.count});
    }
  }
  return grants;
}

void Session::Apply(const ToGrants& grants) {
  for (const ToGrant& grant : grants) grant.reader->Grant(grant.link, grant.count);
}

}  // namespace penstock::client
