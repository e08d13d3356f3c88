// SPDX-License-Identifier: Apache-2.0
// A link of an iteration to one client. Part of iteration_sender.h; other code includes only that
// header.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/pool.h"
#include "dataplane/transfer/transport.h"
#include "dataplane/worker/iteration_sender.h"
#include "dataplane/worker/link_times.h"

namespace penstock::worker {

// A link, and counts of the elements that were sent on it and are not known to have been received.
class IterationSender::Link final : public transfer::SendEvents,
                                    public std::enable_shared_from_this<IterationSender::Link> {
 public:
  Link(std::weak_ptr<IterationSender> parent, std::shared_ptr<transfer::SendLink> send)
      : parent_(std::move(parent)),
        send(std::move(send)),
        slots(this->send->pool()),
        owner(dynamic_cast<const SlotOwner*>(slots.get())),
        reader{this->send->hello().client, this->send->hello().incarnation} {}

  void OnCredits(transfer::Credits credits) override {
    if (auto parent = parent_.lock()) parent->OnCredits(*this, credits.count);
  }
  void OnReceived(absl::Span<const transfer::Acknowledged> received) override {
    if (auto parent = parent_.lock()) parent->OnReceived(*this, received);
  }
  void OnClosed(const absl::Status&, std::vector<transfer::Sent> unconfirmed) override {
    if (auto parent = parent_.lock()) parent->OnClosed(shared_from_this(), std::move(unconfirmed));
  }

 private:
  const std::weak_ptr<IterationSender> parent_;

 public:
  const std::shared_ptr<transfer::SendLink> send;
  const std::shared_ptr<Pool> slots;  // in the client's memory; nullptr: the client offers none
  const SlotOwner* const owner;       // the owner of loans from `slots`
  const control::Reader reader;

  std::atomic<bool> unflushed = false;  // something was sent since the last flush

  bool closing GUARDED_BY(&IterationSender::mu_) = false;        // sends nothing more
  bool gone GUARDED_BY(&IterationSender::mu_) = false;           // OnClosed was called
  bool out_of_credit GUARDED_BY(&IterationSender::mu_) = false;  // had no credit when last tried
  uint64_t grants GUARDED_BY(&IterationSender::mu_) = 0;         // how often credits arrived
  // The link's credits, and the most that the link has had at a time. The client may already have
  // recalled some of the credits.
  int64_t credits GUARDED_BY(&IterationSender::mu_) = 0;
  int64_t window GUARDED_BY(&IterationSender::mu_) = 0;
  // When this link's last credit arrived, and the recent mean interval between the link's credits.
  // The unit is the number of credits that have arrived on all links, because times would vary too
  // much.
  int64_t credited_at GUARDED_BY(&IterationSender::mu_) = 0;
  double interval GUARDED_BY(&IterationSender::mu_) = 0;
  // Updated whenever the reason why the link waits may have changed.
  LinkTimes times GUARDED_BY(&IterationSender::mu_){ToString(reader.client)};
  // The number of elements and errors that were sent and are not known to have been received, and
  // the sum of their bytes.
  int64_t on_the_way GUARDED_BY(&IterationSender::mu_) = 0;
  int64_t bytes_on_the_way GUARDED_BY(&IterationSender::mu_) = 0;

  // Returns true if the client has used up most of the elements that it holds at a time, so that
  // most of its credits are unused.
  bool IsHungry() const REQUIRES(&IterationSender::mu_) {
    return !out_of_credit && 4 * credits >= 3 * window;
  }

  // Returns the link's credits, minus the unsent elements that have been made for it or are being
  // made.
  int64_t Unused() const REQUIRES(&IterationSender::mu_) {
    if (slots == nullptr) return credits;
    const PoolCounters counters = slots->counters();
    const int64_t held =
        counters.slots_lent - counters.slots_returned;  // includes elements not received yet
    return credits - std::max<int64_t>(0, held - on_the_way);
  }
  // Returns the time at which the link is likely to have another unused credit, in the unit of
  // credited_at.
  double NextUnused(int64_t unused) const REQUIRES(&IterationSender::mu_) {
    return static_cast<double>(credited_at) + static_cast<double>(1 - unused) * interval;
  }

  // With credits, the link waits for the next element. Without credits, it waits for elements in
  // transit. If there are none in transit, it waits for the trainer, which holds all the client's
  // slots.
  void Account() REQUIRES(&IterationSender::mu_) {
    times.Now(!out_of_credit    ? LinkWaitsFor::kProduce
              : on_the_way == 0 ? LinkWaitsFor::kTrainer
                                : LinkWaitsFor::kTransport);
  }
};

}  // namespace penstock::worker
