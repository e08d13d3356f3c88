// SPDX-License-Identifier: Apache-2.0
// The cross-trainer cache: a window that slides over what the partitions of an
// iteration produce here, and that every trainer reads in order, at its own pace.
//
// An element is prepared when a trainer asks for more than the window holds, and
// lies in it once, read-only, for all of them: in a segment of this worker's while a
// trainer is there that reads it where it lies (shm). The oldest fall out when their
// bytes are more than the window's. A trainer that is slower than that goes on
// with the oldest that is left, and what it missed is counted; a new one begins
// there. Nobody waits for another, and nothing is delivered again but what a
// broken link leaves in doubt. An error is told to one trainer, whose request it
// answers, and is not kept.
//
// Threads: one lock, and one thread that sends on all links, none of whose methods
// is called under the lock.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "control/sync/mutex.h"
#include "dataplane/memory/shared_pool.h"
#include "dataplane/transfer/polling.h"
#include "dataplane/worker/iteration_sink.h"
#include "dataplane/worker/shared_slots.h"

namespace penstock::worker {

class SharedWindow final : public IterationSink, public std::enable_shared_from_this<SharedWindow> {
 public:
  // Its thread ends when it is retired or its links are closed; one of the two has
  // to come. `max_bytes`: of the elements in the window together. ResourceExhausted where the
  // process gets no thread.
  static absl::StatusOr<std::shared_ptr<SharedWindow>> Start(IterationId iteration,
                                                             std::string token, int64_t max_bytes,
                                                             const SharedSlots& slots = {});

  // As of every sink; InvalidArgument for a token that names no trainer
  // (trainer_token.h). Links of the same one share its place in the window.
  absl::StatusOr<std::shared_ptr<transfer::SendEvents>> Accept(
      const transfer::Hello& hello, std::shared_ptr<transfer::SendLink> link) override;
  std::shared_ptr<PartitionSink> Open(const PartitionSinkOptions& options) override;
  void Close(PartitionSink& sink) override;
  void Flush() override {}  // its own thread does
  // Waits until nothing more is sent.
  void CloseLinks(const absl::Status& reason) override;
  bool RetireIfIdle() override;

  // What a trainer has missed since its first link; 0 for one that is not known.
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
    std::set<Position> again;  // were to be sent, or were not received
    // On links that broke, by the client that alone can say whether they were received.
    std::map<control::Reader, std::set<Position>> in_doubt;
    std::deque<transfer::Sent> errors;  // the answers to its requests
    Position asked_for = -1;            // not in the window when it was asked for
    int64_t skipped = 0;
    int links = 0;
  };
  // What is sent next on a link: one of the window, or an error.
  struct PendingSend {
    Position position = -1;
    transfer::Sent sent;
  };

  SharedWindow(IterationId iteration, std::string token, int64_t max_bytes,
               const SharedSlots& slots);

  // Where elements are best made for the trainers there are; nullptr: anywhere.
  std::shared_ptr<Pool> BestPool() const;
  // `element`, or the same copied to where trainers read it in place: once, for all of them.
  Element Placed(Element element) const;

  // For the producers. Waits until a trainer asks.
  absl::Status Add(Producer& producer, transfer::Sent sent);
  void Insert(transfer::Sent sent, std::vector<Entry>& fallen) REQUIRES(mu_);
  void ForgetTrainersGone() REQUIRES(mu_);

  // The thread.
  void Serve();
  LinkPtr Pick() REQUIRES(mu_);  // with something to send, or to be asked whether it wants more
  // These let go of the lock while they call the link.
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
  // Those of `positions` that the hello does not name are to be sent again.
  void Settle(Trainer& trainer, const std::set<Position>& positions, const transfer::Hello& hello)
      REQUIRES(mu_);

  Position end() const REQUIRES(mu_) { return first_ + static_cast<Position>(entries_.size()); }

  const IterationId iteration_;
  const std::string token_;
  const int64_t max_bytes_;
  const std::shared_ptr<SharedPool> pool_;

  mutable Mutex mu_;
  transfer::PollingCondition changed_;
  std::condition_variable served_;
  std::deque<Entry> entries_ GUARDED_BY(mu_);
  Position first_ GUARDED_BY(mu_) = 0;  // of entries_
  int64_t bytes_ GUARDED_BY(mu_) = 0;
  std::map<std::string, Trainer> trainers_ GUARDED_BY(mu_);
  std::deque<Trainer*> asking_ GUARDED_BY(mu_);  // for what comes next, in that order
  std::vector<LinkPtr> up_ GUARDED_BY(mu_);
  size_t turn_ GUARDED_BY(mu_) = 0;  // in up_
  std::vector<std::shared_ptr<Producer>> producers_ GUARDED_BY(mu_);
  bool retired_ GUARDED_BY(mu_) = false;
  bool serving_ GUARDED_BY(mu_) = true;
};

}  // namespace penstock::worker
