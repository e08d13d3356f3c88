// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/shared_window.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/protocol/trainer_token.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "dataplane/worker/counters.h"
#include "include/status_macros.h"

namespace penstock::worker {
namespace {

bool Has(const transfer::Hello& hello, const Identity& identity) {
  return std::any_of(hello.holdings.begin(), hello.holdings.end(), [&](const auto& holding) {
    return holding.partition == identity.partition && holding.placement == identity.placement &&
           holding.indices.Contains(identity.index);
  });
}

}  // namespace

// The sink through which one partition puts elements into the window.
class SharedWindow::Producer final : public PartitionSink {
 public:
  Producer(std::shared_ptr<SharedWindow> window, const PartitionSinkOptions& options)
      : permit(options.permit), window_(std::move(window)), of_(options.of) {}

  absl::Status Send(transfer::Sent sent) override { return window_->Add(*this, std::move(sent)); }
  absl::Status Pass(Index) override { return absl::OkStatus(); }
  absl::Status End(Index elements) override {
    return absl::InvalidArgumentError(absl::StrCat(
        "cross-trainer caching requires an infinite dataset, but ", ToString(of_.partition),
        " ended after ", elements, " elements; put .Repeat() at its end"));
  }
  Index elements() const override { return 0; }  // a shared window has no end
  void Linger() override {}
  std::shared_ptr<Pool> SlotsFor(Index) override { return window_->BestPool(); }
  void Produces(Index) override {}
  Index ProducesAfter(int64_t elements) const override { return elements; }
  // Takes the place of an earlier process of the same client.
  void AddReader(const control::Reader& reader) override {
    MutexLock lock(window_->mu_);
    Erase(reader.client);
    window_->readers_.insert(reader);
    window_->UpdateServed();
  }
  void RemoveReader(ClientId client) override {
    MutexLock lock(window_->mu_);
    Erase(client);
    window_->UpdateServed();
  }
  void Allow(int64_t, const std::optional<protocol::Remainder>&) override {}
  void Cancel() override {
    {
      MutexLock lock(window_->mu_);
      cancelled = true;
    }
    window_->changed_.NotifyAll();
  }

  Permit* const permit;
  bool cancelled GUARDED_BY(&SharedWindow::mu_) = false;

 private:
  void Erase(ClientId client) REQUIRES(&SharedWindow::mu_) {
    std::erase_if(window_->readers_, [&](const auto& reader) { return reader.client == client; });
  }

  const std::shared_ptr<SharedWindow> window_;
  const control::PlacedPartition of_;
};

class SharedWindow::Link final : public transfer::SendEvents,
                                 public std::enable_shared_from_this<SharedWindow::Link> {
 public:
  Link(std::weak_ptr<SharedWindow> window, std::shared_ptr<transfer::SendLink> send,
       std::string trainer)
      : send(std::move(send)),
        trainer(std::move(trainer)),
        reader{this->send->hello().client, this->send->hello().incarnation},
        on_this_host(this->send->pool() != nullptr),
        window_(std::move(window)) {}

  void OnCredits(transfer::Credits) override {
    if (auto window = window_.lock()) window->OnCredits(*this);
  }
  void OnReceived(absl::Span<const transfer::Acknowledged> received) override {
    if (auto window = window_.lock())
      window->OnReceived(*this, static_cast<int64_t>(received.size()));
  }
  void OnClosed(const absl::Status&, std::vector<transfer::Sent>) override {
    if (auto window = window_.lock()) window->OnClosed(shared_from_this());
  }

  const std::shared_ptr<transfer::SendLink> send;
  const std::string trainer;
  const control::Reader reader;
  const bool on_this_host;  // the client can map segments

  bool served GUARDED_BY(&SharedWindow::mu_) = false;   // its client is one of readers_
  bool removed GUARDED_BY(&SharedWindow::mu_) = false;  // its client was one; to be closed
  bool closing GUARDED_BY(&SharedWindow::mu_) = false;  // sends nothing more
  bool closed GUARDED_BY(&SharedWindow::mu_) = false;   // OnClosed was called
  // The window's thread is inside Send(). Events wait until that thread has recorded the sending.
  bool sending GUARDED_BY(&SharedWindow::mu_) = false;
  bool out_of_credit GUARDED_BY(&SharedWindow::mu_) = false;  // had no credit when last tried
  bool unflushed GUARDED_BY(&SharedWindow::mu_) = false;  // something was sent since the last flush
  uint64_t grants GUARDED_BY(&SharedWindow::mu_) = 0;     // how often credits arrived
  // Number of elements confirmed by the client but not removed from `sent` yet.
  int64_t received GUARDED_BY(&SharedWindow::mu_) = 0;
  std::deque<Position> sent GUARDED_BY(&SharedWindow::mu_);  // sent but not received; -1: an error

 private:
  const std::weak_ptr<SharedWindow> window_;
};

absl::StatusOr<std::shared_ptr<SharedWindow>> SharedWindow::Start(IterationId iteration,
                                                                  std::string token,
                                                                  int64_t max_bytes,
                                                                  const SharedSlots& slots) {
  std::shared_ptr<SharedWindow> window(
      new SharedWindow(iteration, std::move(token), max_bytes, slots));
  ASSIGN_OR_RETURN(Thread thread, StartThread(ToString(iteration), [window] { window->Serve(); }));
  thread.detach();  // CloseLinks() waits for the thread's end
  return window;
}

SharedWindow::SharedWindow(IterationId iteration, std::string token, int64_t max_bytes,
                           const SharedSlots& slots)
    : iteration_(iteration),
      token_(std::move(token)),
      max_bytes_(max_bytes),
      pool_(SharedPool::Create(slots.PoolFor(max_bytes))) {}

// --- Producing -------------------------------------------------------------------

std::shared_ptr<PartitionSink> SharedWindow::Open(const PartitionSinkOptions& options) {
  auto producer = std::make_shared<Producer>(shared_from_this(), options);
  MutexLock lock(mu_);
  producers_.push_back(producer);
  readers_ = {options.readers.begin(), options.readers.end()};
  UpdateServed();
  return producer;
}

void SharedWindow::Close(PartitionSink& sink) {
  std::shared_ptr<Producer> gone;  // may be the last handle
  MutexLock lock(mu_);
  auto found = std::find_if(producers_.begin(), producers_.end(),
                            [&](const auto& producer) { return producer.get() == &sink; });
  if (found == producers_.end()) return;
  gone = std::move(*found);
  gone->cancelled = true;
  producers_.erase(found);
}

void SharedWindow::UpdateServed() {
  for (const LinkPtr& link : up_) {
    const bool served = readers_.contains(link->reader);
    if (std::exchange(link->served, served) && !served) link->removed = true;
  }
  changed_.NotifyAll();
}

std::shared_ptr<Pool> SharedWindow::BestPool() const {
  MutexLock lock(mu_);
  const bool read = std::any_of(up_.begin(), up_.end(), [&](const LinkPtr& link) REQUIRES(mu_) {
    return link->on_this_host && link->served && !link->closing;
  });
  return read ? pool_ : nullptr;
}

Element SharedWindow::Placed(Element element) const {
  const std::shared_ptr<Pool> pool = BestPool();
  if (pool == nullptr) return element;
  return InSharedSlot(*pool, std::move(element));
}

absl::Status SharedWindow::Add(Producer& producer, transfer::Sent sent) {
  if (sent.element) sent.element = Placed(std::move(sent.element));
  // Declared before the lock, so that the entries are destroyed, and the permit is waited for,
  // outside the lock.
  std::vector<Entry> fallen;
  std::optional<PermitPause> pause;
  MutexLock lock(mu_);
  while (asking_.empty() && !producer.cancelled && !retired_) {
    if (pause.has_value()) {
      changed_.WaitFor(lock, transfer::kMaxWait);
    } else {
      lock.unlock();
      pause.emplace(producer.permit);
      lock.lock();
    }
  }
  if (producer.cancelled || retired_) {
    lock.unlock();
    return absl::CancelledError("the partition was stopped");
  }
  Insert(std::move(sent), fallen);
  lock.unlock();
  changed_.NotifyAll();
  return absl::OkStatus();
}

void SharedWindow::Insert(transfer::Sent sent, std::vector<Entry>& fallen) {
  const int64_t bytes = sent.element ? static_cast<int64_t>(sent.element.block().size()) : 0;
  if (bytes > max_bytes_) {
    sent.error = absl::InvalidArgumentError(
        absl::StrCat("an element of ", bytes,
                     " bytes is larger than the cross-trainer cache; the worker's "
                     "cross_trainer_cache_size_bytes is ",
                     max_bytes_));
    sent.element = Element();
  }
  if (!sent.error.ok()) {
    asking_.front()->errors.push_back(std::move(sent));
    asking_.pop_front();
    return;
  }
  entries_.push_back({sent.identity, std::move(sent.element), bytes});
  bytes_ += bytes;
  int64_t freed = 0;
  while (bytes_ > max_bytes_) {
    bytes_ -= entries_.front().bytes;
    freed += entries_.front().bytes;
    fallen.push_back(std::move(entries_.front()));
    entries_.pop_front();
    ++first_;
  }
  CountCached(bytes - freed);
  asking_.clear();
  if (!fallen.empty()) ForgetTrainersGone();
}

// Forgets trainers without links whose position has fallen out of the window. Such a trainer loses
// nothing: if it comes back, it begins with the oldest element, as a new trainer does.
void SharedWindow::ForgetTrainersGone() {
  std::erase_if(trainers_, [this](const auto& entry) REQUIRES(mu_) {
    return entry.second.links == 0 && entry.second.next < first_;
  });
}

// --- Sending ---------------------------------------------------------------------

void SharedWindow::Serve() {
  MutexLock lock(mu_);
  while (!retired_) {
    if (LinkPtr link = Pick()) {
      SendOn(link);
    } else if (!FlushOne()) {
      changed_.WaitFor(lock, transfer::kMaxWait);
    }
  }
  std::deque<Entry> last;  // destroyed outside the lock
  first_ = end();
  last.swap(entries_);
  CountCached(-std::exchange(bytes_, 0));
  lock.unlock();
  last.clear();
  lock.lock();
  serving_ = false;
  served_.NotifyAll();
}

SharedWindow::LinkPtr SharedWindow::Pick() {
  for (size_t i = 0; i < up_.size(); ++i) {
    const LinkPtr& link = up_[(turn_ + i) % up_.size()];
    if (link->removed) return link;
    if (!link->served || link->closing || link->out_of_credit) continue;
    Trainer& trainer = trainers_.at(link->trainer);
    const bool asks = std::find(asking_.begin(), asking_.end(), &trainer) != asking_.end();
    if (asks && !HasNext(trainer)) continue;
    turn_ = (turn_ + i + 1) % up_.size();
    return link;
  }
  return nullptr;
}

void SharedWindow::Skip(Trainer& trainer) {
  int64_t skipped = std::max<int64_t>(first_ - trainer.next, 0);
  trainer.next = std::max(trainer.next, first_);
  const auto drop = [&](std::set<Position>& positions) REQUIRES(mu_) {
    const auto left = positions.lower_bound(first_);
    skipped += std::distance(positions.begin(), left);
    positions.erase(positions.begin(), left);
  };
  drop(trainer.again);
  for (auto& [reader, positions] : trainer.in_doubt) drop(positions);
  if (skipped == 0) return;
  trainer.skipped += skipped;
  CountSkipped(skipped);
}

bool SharedWindow::HasNext(Trainer& trainer) {
  Skip(trainer);
  return !trainer.errors.empty() || !trainer.again.empty() || trainer.next < end();
}

SharedWindow::PendingSend SharedWindow::Take(Trainer& trainer) {
  PendingSend pending;
  if (!trainer.errors.empty()) {
    pending.sent = std::move(trainer.errors.front());
    trainer.errors.pop_front();
    return pending;
  }
  pending.position =
      trainer.again.empty() ? trainer.next++ : trainer.again.extract(trainer.again.begin()).value();
  const Entry& entry = entries_[pending.position - first_];
  pending.sent.identity = entry.identity;
  pending.sent.element = entry.element.Share();
  CountCacheQuery(pending.position != trainer.asked_for);
  return pending;
}

void SharedWindow::SendOn(const LinkPtr& link) {
  if (std::exchange(link->removed, false)) {
    link->closing = true;
    mu_.unlock();
    link->send->Close(absl::PermissionDeniedError(
        absl::StrCat("the client is not a reader of ", ToString(iteration_), " any more")));
    return mu_.lock();
  }
  Trainer& trainer = trainers_.at(link->trainer);
  if (!HasNext(trainer)) return AskFor(link);
  PendingSend pending = Take(trainer);
  const uint64_t grants = link->grants;
  link->sending = true;
  mu_.unlock();
  const auto bytes =
      pending.sent.element ? static_cast<int64_t>(pending.sent.element.block().size()) : 0;
  const absl::Status status = link->send->Send(std::move(pending.sent));
  pending.sent.element = Element();
  mu_.lock();
  link->sending = false;
  if (status.ok()) {
    link->sent.push_back(pending.position);
    link->unflushed = true;
    CountSent(bytes);
  } else if (absl::IsInvalidArgument(status) && pending.position >= 0) {
    // The protocol cannot carry the element, so the trainer gets the error.
    trainer.errors.emplace_front(pending.sent.identity, status);
  } else {
    if (pending.position >= 0) {
      trainer.again.insert(pending.position);
    } else {
      trainer.errors.push_front(std::move(pending.sent));
    }
    if (absl::IsFailedPrecondition(status)) {
      link->out_of_credit = link->grants == grants;  // unless credits arrived in between
    } else {
      link->closing = true;  // OnClosed follows
    }
  }
  Confirm(*link);
  if (link->closed) Break(link);
}

void SharedWindow::AskFor(const LinkPtr& link) {
  const uint64_t grants = link->grants;
  mu_.unlock();
  const bool wants = link->send->credits() > 0;
  mu_.lock();
  if (!wants) {
    link->out_of_credit = link->grants == grants;
    return;
  }
  auto trainer = trainers_.find(link->trainer);
  if (link->closed || trainer == trainers_.end() || HasNext(trainer->second)) return;
  trainer->second.asked_for = end();
  asking_.push_back(&trainer->second);
  changed_.NotifyAll();
}

bool SharedWindow::FlushOne() {
  auto link = std::find_if(up_.begin(), up_.end(), [&](const LinkPtr& its) REQUIRES(mu_) {
    return std::exchange(its->unflushed, false);
  });
  if (link == up_.end()) return false;
  const LinkPtr flushed = *link;
  mu_.unlock();
  flushed->send->Flush();
  mu_.lock();
  return true;
}

// --- Links -----------------------------------------------------------------------

absl::StatusOr<std::shared_ptr<transfer::SendEvents>> SharedWindow::Accept(
    const transfer::Hello& hello, std::shared_ptr<transfer::SendLink> send) {
  std::optional<std::string> named = control::TrainerOf(hello.token, token_);
  if (!named.has_value()) {
    return absl::PermissionDeniedError(
        absl::StrCat("the client's token is not the token of ", ToString(iteration_)));
  }
  if (named->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(ToString(iteration_),
                     " is read through a cross-trainer cache, but the client names no trainer"));
  }
  auto link = std::make_shared<Link>(weak_from_this(), std::move(send), *std::move(named));
  std::vector<LinkPtr> replaced;
  {
    MutexLock lock(mu_);
    if (retired_) {
      return absl::UnavailableError(absl::StrCat("no partition of ", ToString(iteration_),
                                                 " is left on this worker; try again"));
    }
    for (const LinkPtr& old : up_) {
      if (old->reader != link->reader) continue;
      old->closing = true;
      replaced.push_back(old);
    }
    auto [its, is_new] = trainers_.try_emplace(link->trainer);
    Trainer& trainer = its->second;
    if (is_new) trainer.next = first_;
    ++trainer.links;
    if (auto doubt = trainer.in_doubt.extract(link->reader)) Settle(trainer, doubt.mapped(), hello);
    link->served = readers_.contains(link->reader);
    up_.push_back(link);
  }
  changed_.NotifyAll();
  for (const LinkPtr& old : replaced)
    old->send->Close(absl::AbortedError("the client opened another link to this worker"));
  return link;
}

void SharedWindow::CloseLinks(const absl::Status& reason) {
  std::vector<LinkPtr> links;
  {
    MutexLock lock(mu_);
    retired_ = true;
    links = up_;
    for (const LinkPtr& link : links) link->closing = true;
  }
  changed_.NotifyAll();
  for (const LinkPtr& link : links) link->send->Close(reason);
  MutexLock lock(mu_);
  served_.Wait(lock, [this]() REQUIRES(mu_) { return !serving_; });
}

bool SharedWindow::RetireIfIdle() {
  MutexLock lock(mu_);
  if (producers_.empty() && up_.empty() && !std::exchange(retired_, true)) changed_.NotifyAll();
  return retired_;
}

int64_t SharedWindow::skipped(const std::string& trainer) const {
  MutexLock lock(mu_);
  auto found = trainers_.find(trainer);
  return found == trainers_.end() ? 0 : found->second.skipped;
}

void SharedWindow::OnCredits(Link& link) {
  {
    MutexLock lock(mu_);
    ++link.grants;
    if (!std::exchange(link.out_of_credit, false)) return;
  }
  changed_.NotifyAll();
}

void SharedWindow::OnReceived(Link& link, int64_t count) {
  MutexLock lock(mu_);
  link.received += count;
  if (!link.sending) Confirm(link);
}

void SharedWindow::OnClosed(const LinkPtr& link) {
  MutexLock lock(mu_);
  link->closing = link->closed = true;
  if (!link->sending) Break(link);
}

void SharedWindow::Confirm(Link& link) {
  const int64_t count = std::min(link.received, static_cast<int64_t>(link.sent.size()));
  link.received -= count;
  link.sent.erase(link.sent.begin(), link.sent.begin() + count);
  CountReceived(count);
}

void SharedWindow::Break(const LinkPtr& link) {
  auto up = std::find(up_.begin(), up_.end(), link);
  if (up == up_.end()) return;
  up_.erase(up);
  Confirm(*link);
  std::set<Position> unconfirmed(link->sent.begin(), link->sent.end());
  unconfirmed.erase(-1);
  Trainer& trainer = trainers_.at(link->trainer);
  if (--trainer.links == 0) std::erase(asking_, &trainer);
  auto newer = std::find_if(up_.begin(), up_.end(),
                            [&](const LinkPtr& its) { return its->reader == link->reader; });
  if (newer != up_.end()) {
    Settle(trainer, unconfirmed, (*newer)->send->hello());
  } else if (!unconfirmed.empty()) {
    trainer.in_doubt[link->reader].merge(unconfirmed);
  }
  changed_.NotifyAll();
}

void SharedWindow::Settle(Trainer& trainer, const std::set<Position>& positions,
                          const transfer::Hello& hello) {
  for (const Position position : positions) {
    const bool fallen = position < first_;
    if (fallen || !Has(hello, entries_[position - first_].identity)) trainer.again.insert(position);
  }
}

}  // namespace penstock::worker
