// SPDX-License-Identifier: Apache-2.0
// The messages that arrive at an engine. The inbox puts a link's messages in order, fetches
// announced blocks, and passes the messages on. Used on the engine's thread only.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "dataplane/transfer/fifo.h"
#include "dataplane/transfer/ucx/active_worker.h"
#include "dataplane/transfer/ucx/link_table.h"
#include "dataplane/transfer/ucx/peers.h"

namespace penstock::transfer::ucx {

class Inbox {
 public:
  Inbox(ActiveWorker& active, LinkTable& links, Peers& peers)
      : active_(active), links_(links), peers_(peers) {}

  // Same as in Worker::Events, inside Progress().
  void OnMessage(std::string_view head, absl::Span<const std::byte> data);
  bool OnOffered(std::string_view head, size_t bytes, Offered offered);

  // After Progress(): the messages that have arrived, in any order.
  bool empty() const { return arrived_.empty(); }
  Incoming Pop() { return arrived_.Pop(); }
  // Passes the message on if its turn has come, else keeps it.
  void Sort(Incoming incoming);
  // Passes on the blocks that have been fetched; returns false if there are none.
  bool HandleFetched();

  // Fails the peers whose blocks did not arrive in time.
  void FailLateFetches(Clock::time_point now);
  // Call this when no link to the peer is left: blocks from that peer get a shorter time limit.
  void ShortenFetches(Worker::Peer peer);
  // Returns true if a block did not arrive in time, so that UCX may be in an undefined state. Any
  // thread.
  bool unusable() const { return unusable_; }

  // At the engine's end. Drops the messages that have arrived.
  void ReleaseOffered();
  // Keeps the memory of fetches in progress forever, because UCX did not end in time.
  void Abandon();
  // Releases everything. Call it after the worker object has been destroyed.
  void Clear();

 private:
  struct Fetching final : Work {
    explicit Fetching(Inbox& its) : inbox(its) {}
    void OnDone(const absl::Status& status) override;

    Inbox& inbox;
    Worker::Peer peer = 0;
    Head head;
    Loan loan;
    std::optional<DevicePlace> place;  // on a device; `loan` then has only the head
    bool active = false;
    Clock::time_point deadline;
    absl::Status status;
  };

  void Fetch(Link& link, Incoming& incoming);
  void Fetched(Fetching& fetching);
  static void Deliver(const std::shared_ptr<Link>& link);

  ActiveWorker& active_;
  LinkTable& links_;
  Peers& peers_;
  std::vector<std::unique_ptr<Fetching>> fetchings_;
  std::vector<Fetching*> idle_;
  // Noted inside Progress(), handled after it.
  Fifo<Incoming> arrived_;
  Fifo<Fetching*> fetched_;
  std::atomic<bool> unusable_{false};
};

}  // namespace penstock::transfer::ucx
