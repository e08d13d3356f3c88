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

// One link, and the elements sent on it that are not known to have been received.
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
  const std::shared_ptr<Pool> slots;  // in the client's memory, if it offers any
  const SlotOwner* const owner;       // the owner of loans from `slots`
  const control::Reader reader;

  std::atomic<bool> unflushed = false;  // something was sent since the last flush

  bool closing GUARDED_BY(&IterationSender::mu_) = false;        // sends nothing more
  bool gone GUARDED_BY(&IterationSender::mu_) = false;           // OnClosed was called
  bool out_of_credit GUARDED_BY(&IterationSender::mu_) = false;  // had no credit when last tried
  uint64_t grants GUARDED_BY(&IterationSender::mu_) = 0;         // how often credits arrived
  // The link's credits, and the most that it has had. The client may have recalled some without
  // this being noticed yet.
  int64_t credits GUARDED_BY(&IterationSender::mu_) = 0;
  int64_t window GUARDED_BY(&IterationSender::mu_) = 0;
  // When this link's last credit arrived, and the recent mean interval between its credits. The
  // unit is not time, which would be too noisy, but the number of credits that have arrived on all
  // links.
  int64_t credited_at GUARDED_BY(&IterationSender::mu_) = 0;
  double interval GUARDED_BY(&IterationSender::mu_) = 0;
  // Updated whenever the reason why the link waits may have changed.
  LinkTimes times GUARDED_BY(&IterationSender::mu_){ToString(reader.client)};
  // Elements and errors that were sent and are not known to have been received, and their bytes.
  int64_t on_the_way GUARDED_BY(&IterationSender::mu_) = 0;
  int64_t bytes_on_the_way GUARDED_BY(&IterationSender::mu_) = 0;

  // Returns true if the client has used up most of the elements that it holds at a time.
  bool IsHungry() const REQUIRES(&IterationSender::mu_) {
    return !out_of_credit && 4 * credits >= 3 * window;
  }

  // Returns its credits, minus the unsent elements that have been made for it or are being made.
  int64_t Unused() const REQUIRES(&IterationSender::mu_) {
    if (slots == nullptr) return credits;
    const PoolCounters counters = slots->counters();
    const int64_t held =
        counters.slots_lent - counters.slots_returned;  // includes elements not received yet
    return credits - std::max<int64_t>(0, held - on_the_way);
  }
  // Returns when the link is likely to have another unused credit, in the unit of credited_at.
  double NextUnused(int64_t unused) const REQUIRES(&IterationSender::mu_) {
    return static_cast<double>(credited_at) + static_cast<double>(1 - unused) * interval;
  }

  // With credits, the link waits for the next element. Without credits it waits for elements in
  // transit, or, if there are none, for the trainer, which holds all its slots.
  void Account() REQUIRES(&IterationSender::mu_) {
    times.Now(!out_of_credit    ? LinkWaitsFor::kProduce
              : on_the_way == 0 ? LinkWaitsFor::kTrainer
                                : LinkWaitsFor::kTransport);
  }
};

}  // namespace penstock::worker
