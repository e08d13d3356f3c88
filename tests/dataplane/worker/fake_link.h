// SPDX-License-Identifier: Apache-2.0
// A worker's link without a client: the test decides when credits come, what is received and when
// the link breaks.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "dataplane/transfer/transport.h"

namespace penstock::worker {

class FakeLink final : public transfer::SendLink {
 public:
  explicit FakeLink(transfer::Hello hello) : hello_(std::move(hello)) {}

  // --- Functions for tests -----------------------------------------------------

  std::weak_ptr<transfer::SendEvents> events;  // returned by Accept; holds this link
  std::function<void()> before_send;           // called in each Send()
  std::function<void()> inside_send;           // called in each Send() that succeeds
  absl::Status answer;                         // of Send() for an element, if not OK

  void Grant(int64_t count) {
    {
      std::lock_guard lock(mu_);
      credits_ += count;
    }
    events.lock()->OnCredits({count});
  }
  // Calls all credits back without an event.
  void Recall() {
    std::lock_guard lock(mu_);
    credits_ = 0;
  }
  void Acknowledge(int64_t count) {
    std::vector<transfer::Acknowledged> received;
    {
      std::lock_guard lock(mu_);
      for (; count > 0; --count) {
        const transfer::Sent& sent = sent_[received_++];
        const size_t bytes = sent.element ? sent.element.block().size() : 0;
        received.push_back({sent.identity, static_cast<int64_t>(bytes)});
      }
    }
    events.lock()->OnReceived(received);
  }
  // Breaks the link; elements that were not received become unconfirmed.
  void Break() {
    std::vector<transfer::Sent> unconfirmed;
    {
      std::lock_guard lock(mu_);
      broken_ = true;
      for (size_t i = received_; i < sent_.size(); ++i) {
        unconfirmed.push_back(std::move(sent_[i]));
        sent_[i].identity = unconfirmed.back().identity;
      }
    }
    events.lock()->OnClosed(absl::UnavailableError("the connection broke"), std::move(unconfirmed));
  }
  // Returns the indices sent so far, in order; waits until there are at least `count`.
  std::vector<Index> AwaitSent(size_t count) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return sent_.size() >= count; });
    return IndicesLocked();
  }
  std::vector<Index> SentIndices() {
    std::lock_guard lock(mu_);
    return IndicesLocked();
  }
  absl::Status ErrorAt(size_t i) {
    std::lock_guard lock(mu_);
    return sent_[i].error;
  }
  Identity IdentityAt(size_t i) {
    std::lock_guard lock(mu_);
    return sent_[i].identity;
  }
  const std::byte* BlockAt(size_t i) {
    std::lock_guard lock(mu_);
    return sent_[i].element.block().data();
  }
  absl::Status closed_with() {
    std::lock_guard lock(mu_);
    return closed_with_;
  }
  // Waits until the worker closes the link, and returns its reason.
  absl::Status AwaitClosed() {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return !closed_with_.ok(); });
    return closed_with_;
  }
  int flushes() {
    std::lock_guard lock(mu_);
    return flushes_;
  }

  // --- SendLink ------------------------------------------------------------------

  const transfer::Hello& hello() const override { return hello_; }
  int64_t credits() const override {
    std::lock_guard lock(mu_);
    return credits_;
  }
  absl::Status Send(transfer::Sent&& sent) override {
    if (before_send) before_send();
    {
      std::lock_guard lock(mu_);
      if (!answer.ok() && sent.error.ok()) return answer;
      if (broken_) return absl::UnavailableError("closed");
      if (credits_ == 0) return absl::FailedPreconditionError("no credit");
      --credits_;
      sent_.push_back(std::move(sent));
    }
    changed_.notify_all();
    if (inside_send) inside_send();
    return absl::OkStatus();
  }
  void Flush() override {
    std::lock_guard lock(mu_);
    ++flushes_;
  }
  void Close(const absl::Status& reason) override {
    {
      std::lock_guard lock(mu_);
      closed_with_ = reason;
    }
    changed_.notify_all();
  }

 private:
  std::vector<Index> IndicesLocked() const {
    std::vector<Index> indices;
    for (const transfer::Sent& sent : sent_) indices.push_back(sent.identity.index);
    return indices;
  }

  const transfer::Hello hello_;
  mutable std::mutex mu_;
  std::condition_variable changed_;
  // Guarded by mu_.
  int64_t credits_ = 0;
  size_t received_ = 0;
  bool broken_ = false;
  int flushes_ = 0;
  absl::Status closed_with_;
  std::vector<transfer::Sent> sent_;
};

}  // namespace penstock::worker
