// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/iteration_sender.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/observe/secret.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "dataplane/worker/counters.h"
#include "dataplane/worker/iteration_link.h"
#include "dataplane/worker/partition_sender.h"
#include "include/status_macros.h"

namespace penstock::worker {
namespace {

using Clock = SteadyClock;
// The longest time for which an element waits for the client whose memory holds it, while other
// clients, which have enough elements, could get a copy.
constexpr std::chrono::milliseconds kPatience(500);
// Above the number of credits of any client. Credits beyond this number are not counted.
constexpr int64_t kMostCredits = int64_t{1} << 40;

// Returns the indices that the client holds under this placement. Elements from an earlier
// placement do not count, because either `skip` contains them or the client has given them back.
IndexSet HoldingOf(const std::vector<transfer::Holding>& holdings,
                   const control::PlacedPartition& of) {
  IndexSet all;
  for (const transfer::Holding& holding : holdings)
    if (holding.partition == of.partition && holding.placement == of.placement)
      all.Add(holding.indices);
  return all;
}

int64_t BytesOf(const Element& element) {
  return element ? static_cast<int64_t>(element.block().size()) : 0;
}

}  // namespace

// --- Sending -------------------------------------------------------------------

IterationSender::IterationSender(IterationId iteration, std::string token,
                                 std::shared_ptr<Budget> budget, const SharedSlots& slots)
    : iteration_(iteration),
      token_(std::move(token)),
      budget_(std::move(budget)),
      for_groups_(SharedPool::Create(slots.PoolFor(/*kept_bytes=*/0))) {}

IterationSender::~IterationSender() = default;

absl::Status IterationSender::Send(PartitionSender& partition, transfer::Sent sent) {
  // Small elements travel in frames. There are too many such elements to poll after each one.
  const bool passes_by = BytesOf(sent.element) >= int64_t{kFrameBelow};
  const Index index = sent.identity.index;
  MutexLock lock(mu_);
  RETURN_IF_ERROR(
      Await(partition, lock, [&]() REQUIRES(mu_) { return partition.MaySendLocked(index); }));
  RETURN_IF_ERROR(SendOne(partition, std::move(sent), lock));
  // Handles returned slots and credits, which the next element may need.
  if (passes_by) transfer::PollTransports();
  return absl::OkStatus();
}

template <class Ready>
absl::Status IterationSender::Await(PartitionSender& partition, MutexLock& lock,
                                    const Ready& ready) {
  // Under the lock, no link may be destroyed and no permit waited for.
  std::optional<PermitPause> pause;
  const auto unlocked = [&lock](auto&& act) {
    lock.UnlockUnchecked();
    act();
    lock.LockUnchecked();
  };
  while (true) {
    if (!partition.again_.empty()) {
      RETURN_IF_ERROR(SendOne(partition, partition.TakeAgainLocked(), lock));
      lock.LockUnchecked();
    } else if (ready()) {
      if (!pause.has_value()) return absl::OkStatus();
      unlocked([&] { pause.reset(); });
    } else if (partition.cancelled_) {
      lock.UnlockUnchecked();
      return absl::CancelledError("the partition was stopped");
    } else if (pause.has_value()) {
      changed_.WaitFor(lock, transfer::kMaxWait);
    } else {
      unlocked([&] {
        Flush();
        pause.emplace(partition.permit_);
      });
    }
  }
}

absl::StatusOr<protocol::Remainder> IterationSender::AwaitRemainder(PartitionSender& partition,
                                                                    Index elements) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(
      Await(partition, lock, [&]() REQUIRES(mu_) { return partition.remainder_.has_value(); }));
  partition.end_ = elements;
  return *partition.remainder_;
}

absl::Status IterationSender::SendOne(PartitionSender& partition, transfer::Sent sent,
                                      MutexLock& lock) {
  // Destroyed after the lock is released, because under the lock no link may be destroyed and no
  // permit waited for.
  std::optional<PermitPause> pause;
  Pick pick;
  std::optional<Clock::time_point> patient_until;  // once another client could have it
  while (true) {
    if (partition.cancelled_) {
      lock.UnlockUnchecked();
      return absl::CancelledError("the partition was stopped");
    }
    pick = PickLocked(partition, sent, !patient_until || Clock::now() < *patient_until);
    if (pick.passed_over && !patient_until) patient_until = Clock::now() + kPatience;
    if (pick.link == nullptr && pause.has_value()) {
      changed_.WaitFor(lock, pick.passed_over ? kPatience : transfer::kMaxWait);
      continue;
    }
    if (pick.link == nullptr) {  // flushes, then checks once more
      lock.UnlockUnchecked();
      Flush();
      pause.emplace(partition.permit_);
      lock.LockUnchecked();
      continue;
    }
    Link& link = *pick.link;
    const uint64_t grants = link.grants;
    NoteLocked(link, partition, sent);
    lock.UnlockUnchecked();
    const int64_t bytes = BytesOf(sent.element);
    const absl::Status status = link.send->Send(std::move(sent));
    if (status.ok()) {
      link.unflushed = true;
      CountSent(bytes);
      return absl::OkStatus();
    }
    lock.LockUnchecked();
    TakeBackLocked(link, partition, sent, status, grants);
    lock.UnlockUnchecked();
    pick.link.reset();  // may destroy the link
    lock.LockUnchecked();
  }
}

void IterationSender::NoteLocked(Link& link, PartitionSender& partition,
                                 const transfer::Sent& sent) {
  const int64_t bytes = BytesOf(sent.element);
  --link.credits;
  ++link.on_the_way;
  link.bytes_on_the_way += bytes;
  budget_->Add(bytes);
  partition.sender_.OnSent(link.reader.client, sent.identity.index);
}

void IterationSender::TakeBackLocked(Link& link, PartitionSender& partition, transfer::Sent& sent,
                                     const absl::Status& why, uint64_t grants) {
  const int64_t bytes = BytesOf(sent.element);
  if (!link.gone) {  // else OnClosed() has done this for everything on its way
    --link.on_the_way;
    link.bytes_on_the_way -= bytes;
    budget_->Subtract(bytes);
  }
  ++link.credits;
  partition.sender_.OnRefused(link.reader.client, sent.identity.index);
  if (absl::IsFailedPrecondition(why)) {
    link.out_of_credit = link.grants == grants;  // unless credits arrived in between
    if (link.out_of_credit && std::exchange(link.credits, 0) > 0) {
      link.window = 0;  // the client recalled credits, and may grant fewer from now on
    }
    link.Account();
  } else if (absl::IsInvalidArgument(why) && sent.error.ok()) {
    sent = transfer::Sent(sent.identity, why);  // sends the error, as the element cannot go
  } else {
    link.closing = true;  // OnClosed follows
  }
}

const IterationSender::Link* IterationSender::OwnerLocked(const Element& element) const {
  if (BytesOf(element) < int64_t{kFrameBelow}) return nullptr;  // the element travels in a frame
  for (const LinkPtr& link : up_)
    if (link->owner != nullptr && link->owner == element.loan().owner()) return link.get();
  return nullptr;
}

IterationSender::Pick IterationSender::PickLocked(const PartitionSender& partition,
                                                  const transfer::Sent& sent, bool patient) {
  const auto may_get = [&](const Link& link) REQUIRES(mu_) {
    return !link.closing && partition.Serves(link.reader) &&
           partition.sender_.MaySendTo(link.reader.client) &&
           partition.IsFor(sent.identity.index, link.reader);
  };
  const Link* owner = OwnerLocked(sent.element);
  if (owner != nullptr && !may_get(*owner)) owner = nullptr;
  bool passed_over = false;
  for (size_t i = 0; i < up_.size(); ++i) {
    const size_t at = (turn_ + i) % up_.size();
    const LinkPtr& link = up_[at];
    if (owner != nullptr && !owner->out_of_credit && link.get() != owner) continue;
    if (link->out_of_credit || !may_get(*link)) continue;
    if (owner != nullptr && link.get() != owner && patient && !link->IsHungry()) {
      passed_over = true;
      continue;
    }
    if (link.get() != owner) turn_ = (at + 1) % up_.size();
    return {link, false};
  }
  return {nullptr, passed_over};
}

std::shared_ptr<Pool> IterationSender::SlotsFor(const PartitionSender& partition, Index index) {
  MutexLock lock(mu_);
  const Link* best = nullptr;
  std::tuple<bool, double, int64_t> best_rank;
  for (const LinkPtr& link : up_) {
    if (link->closing || !partition.Serves(link->reader)) continue;
    if (partition.group_size_ > 1) {
      if (link->slots != nullptr) return for_groups_;
      continue;
    }
    if (!partition.IsFor(index, link->reader)) continue;
    // Picks the link with the most unused credits. If no link has one, picks the link that is
    // likely to have the next unused credit.
    const int64_t unused = link->Unused();
    const std::tuple rank(unused <= 0,
                          unused > 0 ? -static_cast<double>(unused) : link->NextUnused(unused),
                          link->credited_at);
    if (best != nullptr && best_rank <= rank) continue;
    best = link.get();
    best_rank = rank;
  }
  return best == nullptr ? nullptr : best->slots;
}

absl::Status IterationSender::SendAgain(PartitionSender& partition, bool until_ended) {
  std::optional<PermitPause> pause;
  MutexLock lock(mu_);
  while (true) {
    if (partition.cancelled_) return absl::CancelledError("the partition was stopped");
    if (!partition.again_.empty()) {
      RETURN_IF_ERROR(SendOne(partition, partition.TakeAgainLocked(), lock));
      lock.LockUnchecked();
    } else if (until_ended && partition.sender_.ended()) {
      return absl::OkStatus();
    } else if (pause.has_value() && until_ended) {
      changed_.WaitFor(lock, transfer::kMaxWait);
    } else if (pause.has_value()) {
      changed_.WaitPassive(lock);
    } else {
      lock.unlock();
      Flush();
      pause.emplace(partition.permit_);
      lock.lock();
    }
  }
}

void IterationSender::Flush() {
  std::vector<LinkPtr> links;
  {
    MutexLock lock(mu_);
    for (const LinkPtr& link : up_)
      if (link->unflushed.exchange(false)) links.push_back(link);
  }
  for (const LinkPtr& link : links) link->send->Flush();
}

// --- Partitions ----------------------------------------------------------------

std::shared_ptr<PartitionSink> IterationSender::Open(const PartitionSinkOptions& options) {
  auto partition = std::make_shared<PartitionSender>(shared_from_this(), options);
  MutexLock lock(mu_);
  for (const control::Reader& reader : options.readers) LinkUpLocked(*partition, reader);
  partitions_.push_back(partition);
  return partition;
}

void IterationSender::LinkUpLocked(PartitionSender& partition, const control::Reader& reader) {
  auto session = sessions_.find(reader);
  // No element was sent to the reader under this placement on an earlier link, so the reader holds
  // none.
  if (session != sessions_.end() && session->second.up != nullptr)
    partition.sender_.OnLinkUp(reader.client, reader.incarnation, IndexSet());
}

void IterationSender::Close(PartitionSink& sink) {
  std::shared_ptr<PartitionSender> gone;  // may be the last handle
  {
    MutexLock lock(mu_);
    auto found = std::find_if(partitions_.begin(), partitions_.end(),
                              [&](const auto& other) { return other.get() == &sink; });
    if (found != partitions_.end()) {
      gone = std::move(*found);
      gone->cancelled_ = true;
      partitions_.erase(found);
    }
  }
  changed_.NotifyAll();
}

// --- Links -----------------------------------------------------------------------

absl::StatusOr<std::shared_ptr<transfer::SendEvents>> IterationSender::Accept(
    const transfer::Hello& hello, std::shared_ptr<transfer::SendLink> send) {
  if (!SameSecret(hello.token, token_)) {
    return absl::PermissionDeniedError(
        absl::StrCat("the client's token is not the token of ", ToString(iteration_)));
  }
  auto link = std::make_shared<Link>(weak_from_this(), std::move(send));
  std::vector<LinkPtr> replaced;
  {
    MutexLock lock(mu_);
    if (retired_) {
      return absl::UnavailableError(absl::StrCat("no partition of ", ToString(iteration_),
                                                 " is left on this worker; try again"));
    }
    Session& session = sessions_[link->reader];
    if (session.up == nullptr) {
      session.up = link;
      RaiseLocked(link);
    } else {
      if (session.next != nullptr) replaced.push_back(session.next);
      session.next = link;
      session.up->closing = true;
      replaced.push_back(session.up);
    }
  }
  for (const LinkPtr& old : replaced)
    old->send->Close(absl::AbortedError("the client opened another link to this worker"));
  return link;
}

void IterationSender::CloseLinks(const absl::Status& reason) {
  std::vector<LinkPtr> links;
  {
    MutexLock lock(mu_);
    retired_ = true;
    for (const auto& [reader, session] : sessions_) {
      if (session.up != nullptr) links.push_back(session.up);
      if (session.next != nullptr) links.push_back(session.next);
    }
    for (const LinkPtr& link : links) link->closing = true;
  }
  for (const LinkPtr& link : links) link->send->Close(reason);
}

void IterationSender::OnCredits(Link& link, int64_t count) {
  {
    MutexLock lock(mu_);
    ++link.grants;
    const bool was_hungry = link.IsHungry();
    link.credits = std::min(link.credits + std::min(count, kMostCredits), kMostCredits);
    if (count > 0) {
      credits_seen_ += std::min(count, kMostCredits);
      const auto gap = static_cast<double>(credits_seen_ - link.credited_at);
      link.interval += (gap / static_cast<double>(count) - link.interval) / 8;
      link.credited_at = credits_seen_;
    }
    link.window = std::max(link.window, link.credits);
    const bool was_out_of_credit = std::exchange(link.out_of_credit, false);
    if (was_out_of_credit) link.Account();
    if (!was_out_of_credit && (was_hungry || !link.IsHungry())) return;  // nobody waits for that
  }
  changed_.NotifyAll();
}

void IterationSender::OnReceived(Link& link, absl::Span<const transfer::Acknowledged> received) {
  MutexLock lock(mu_);
  for (size_t i = 0; i < received.size();) {
    const Identity& first = received[i].identity;
    IndexSet indices;
    int64_t bytes = 0;
    for (; i < received.size() && received[i].identity.partition == first.partition &&
           received[i].identity.placement == first.placement;
         ++i) {
      indices.Add(received[i].identity.index);
      bytes += received[i].bytes;
      --link.on_the_way;
    }
    link.bytes_on_the_way -= bytes;
    budget_->Subtract(bytes);
    CountReceived(indices.size());
    if (PartitionSender* partition = FindLocked(first.partition, first.placement))
      partition->sender_.OnReceived(link.reader.client, indices);
  }
  link.Account();
}

void IterationSender::RaiseLocked(const LinkPtr& link) {
  up_.push_back(link);
  const ClientId client = link->reader.client;
  for (const std::shared_ptr<PartitionSender>& partition : partitions_) {
    if (!partition->Serves(link->reader)) continue;
    partition->sender_.OnLinkUp(client, link->reader.incarnation,
                                HoldingOf(link->send->hello().holdings, partition->of_));
    auto doubt = partition->in_doubt_.extract(client);
    if (doubt.empty()) continue;
    for (transfer::Sent& sent : doubt.mapped()) {
      const Index index = sent.identity.index;
      if (partition->sender_.again().Contains(index))
        partition->again_.emplace(index, std::move(sent));
    }
  }
  changed_.NotifyAll();
}

void IterationSender::OnClosed(const LinkPtr& link, std::vector<transfer::Sent> unconfirmed) {
  MutexLock lock(mu_);
  link->closing = link->gone = true;
  link->on_the_way = 0;
  budget_->Subtract(std::exchange(link->bytes_on_the_way, 0));
  auto found = sessions_.find(link->reader);
  if (found == sessions_.end()) return;
  Session& session = found->second;
  if (session.next == link) session.next = nullptr;
  if (session.up != link) return;
  up_.erase(std::find(up_.begin(), up_.end(), link));
  for (const std::shared_ptr<PartitionSender>& partition : partitions_)
    if (partition->Serves(link->reader)) partition->sender_.OnLinkBroken(link->reader.client);
  for (transfer::Sent& sent : unconfirmed) {
    PartitionSender* partition = FindLocked(sent.identity.partition, sent.identity.placement);
    if (partition != nullptr && partition->Serves(link->reader))
      partition->in_doubt_[link->reader.client].push_back(std::move(sent));
  }
  session.up = std::exchange(session.next, nullptr);
  if (session.up != nullptr) {
    RaiseLocked(session.up);
  } else {
    sessions_.erase(found);
  }
  changed_.NotifyAll();
}

IterationSender::PartitionSender* IterationSender::FindLocked(PartitionId id, Placement placement) {
  for (const std::shared_ptr<PartitionSender>& partition : partitions_)
    if (partition->of_.partition == id && partition->of_.placement == placement)
      return partition.get();
  return nullptr;
}

bool IterationSender::RetireIfIdle() {
  MutexLock lock(mu_);
  if (partitions_.empty() && sessions_.empty()) retired_ = true;
  return retired_;
}

}  // namespace penstock::worker
