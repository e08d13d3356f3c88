// SPDX-License-Identifier: Apache-2.0
// The cross-trainer cache: a window that slides over the elements that an iteration's partitions
// produce on this worker. Every trainer reads the window in order, at its own pace.
//
// An element is prepared when a trainer asks for more than the window holds. The window has each
// element once, read-only, for all trainers; the element is in a segment of this worker while any
// trainer reads in place (shm). The oldest elements fall out when the window exceeds its size in
// bytes. A trainer that had not read them then continues with the oldest remaining element, and the
// elements that it missed are counted. A new trainer also begins with the oldest element. No
// trainer waits for another, and no element is delivered again, except elements that a broken link
// leaves in doubt. An error is sent only to the trainer whose request it answers, and is not kept.
//
// Only the readers that the dispatcher named get elements. A link of another client waits until the
// dispatcher names this client. All partitions of an iteration have the same readers, so the newest
// order counts for the whole window.
//
// Threads: there is one lock, and one thread, which sends on all links. No method of a link is
// called under the lock.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/shared_pool.h"
#include "dataplane/transfer/polling.h"
#include "dataplane/worker/iteration_sink.h"
#include "dataplane/worker/shared_slots.h"

namespace penstock::worker {

class SharedWindow final : public IterationSink, public std::enable_shared_from_this<SharedWindow> {
 public:
  // Starts the window's thread, which runs until RetireIfIdle() has returned true or CloseLinks()
  // is called; one of these must happen. `max_bytes`: the limit for all elements in the window.
  // ResourceExhausted if the process gets no thread.
  static absl::StatusOr<std::shared_ptr<SharedWindow>> Start(IterationId iteration,
                                                             std::string token, int64_t max_bytes,
                                                             const SharedSlots& slots = {});

  // Same as for every sink, but also returns InvalidArgument for a token that names no trainer
  // (trainer_token.h). All links of a trainer share the trainer's place in the window.
  absl::StatusOr<std::shared_ptr<transfer::SendEvents>> Accept(
      const transfer::Hello& hello, std::shared_ptr<transfer::SendLink> link) override;
  std::shared_ptr<PartitionSink> Open(const PartitionSinkOptions& options) override;
  void Close(PartitionSink& sink) override;
  void Flush() override {}  // the window's thread flushes
  // Also waits until the window's thread has ended.
  void CloseLinks(const absl::Status& reason) override;
  bool RetireIfIdle() override;

  // Returns the number of elements that a trainer has missed since its first link; 0 for an unknown
  // trainer.
  int64_t skipped(const std::string& trainer) const;

 private:
  class Producer;
  class Link;
  using LinkPtr = std::shared_ptr<Link>;
  using Position = int64_t;  // in the order of production; 0: the first

  struct Entry {
    Identity identity;
    Element element;
    int64_t bytes = 0;
  };
  struct Trainer {
    Position next = 0;
    std::set<Position> again;  // not sent, or not received
    // Elements sent on links that broke, by client, because only the client can report whether the
    // elements were received.
    std::map<control::Reader, std::set<Position>> in_doubt;
    std::deque<transfer::Sent> errors;  // answers to the trainer's requests
    Position asked_for = -1;            // the missing element that the trainer asked for
    int64_t skipped = 0;
    int links = 0;
  };
  // The next item to send on a link: an element of the window, or an error.
  struct PendingSend {
    Position position = -1;
    transfer::Sent sent;
  };

  SharedWindow(IterationId iteration, std::string token, int64_t max_bytes,
               const SharedSlots& slots);

  // Call this after readers_ has changed. Links of clients that were readers are then closed.
  void UpdateServed() REQUIRES(mu_);

  // Returns the best pool for elements for the current trainers; nullptr: any pool.
  std::shared_ptr<Pool> BestPool() const;
  // Returns `element`, or one copy of it for all trainers, in memory where they can read the copy
  // in place.
  Element Placed(Element element) const;

  // Waits until a trainer asks for an element, then adds `sent` to the window. Called by the
  // producers.
  absl::Status Add(Producer& producer, transfer::Sent sent);
  void Insert(transfer::Sent sent, std::vector<Entry>& fallen) REQUIRES(mu_);
  void ForgetTrainersGone() REQUIRES(mu_);

  // The body of the thread.
  void Serve();
  // Returns a link that must be closed, has an item to send or may ask for more.
  LinkPtr Pick() REQUIRES(mu_);
  // SendOn(), AskFor() and FlushOne() release the lock while they call the link. SendOn() also
  // closes a link that must be closed.
  void SendOn(const LinkPtr& link) REQUIRES(mu_);
  void AskFor(const LinkPtr& link) REQUIRES(mu_);
  bool FlushOne() REQUIRES(mu_);
  PendingSend Take(Trainer& trainer) REQUIRES(mu_);
  bool HasNext(Trainer& trainer) REQUIRES(mu_);
  void Skip(Trainer& trainer) REQUIRES(mu_);

  void OnCredits(Link& link);
  void OnReceived(Link& link, int64_t count);
  void OnClosed(const LinkPtr& link);
  void Confirm(Link& link) REQUIRES(mu_);
  void Break(const LinkPtr& link) REQUIRES(mu_);
  // Marks the elements of `positions` that `hello` does not name, so that they are sent again.
  void Settle(Trainer& trainer, const std::set<Position>& positions, const transfer::Hello& hello)
      REQUIRES(mu_);

  Position end() const REQUIRES(mu_) { return first_ + static_cast<Position>(entries_.size()); }

  const IterationId iteration_;
  const std::string token_;
  const int64_t max_bytes_;
  const std::shared_ptr<SharedPool> pool_;

  mutable Mutex mu_;
  transfer::PollingCondition changed_;
  Condition served_;
  std::deque<Entry> entries_ GUARDED_BY(mu_);
  Position first_ GUARDED_BY(mu_) = 0;  // position of the first of entries_
  int64_t bytes_ GUARDED_BY(mu_) = 0;
  std::map<std::string, Trainer> trainers_ GUARDED_BY(mu_);
  std::deque<Trainer*> asking_ GUARDED_BY(mu_);  // for the next element, in the order of asking
  std::set<control::Reader> readers_ GUARDED_BY(mu_);
  std::vector<LinkPtr> up_ GUARDED_BY(mu_);
  size_t turn_ GUARDED_BY(mu_) = 0;  // index in up_
  std::vector<std::shared_ptr<Producer>> producers_ GUARDED_BY(mu_);
  bool retired_ GUARDED_BY(mu_) = false;
  bool serving_ GUARDED_BY(mu_) = true;
};

}  // namespace penstock::worker
