// SPDX-License-Identifier: Apache-2.0
// Sends the elements of an iteration from a worker to the clients that read the iteration, first
// come, first served. Each partition has a sender of its own.
//
// Each placed partition has a protocol::Sender, which decides what is sent to which client
// (docs/exactly_once.md, rules 4, 5, 7 and 12). This file provides the links, keeps the bytes of
// elements in doubt, and waits.
//
// Threads: each iteration has one lock. No method of a link is called under the lock, because links
// may call back from inside their methods. Each sending is recorded in the protocol::Sender before
// the link gets the element, so that the outcome of a sending never arrives there before the
// record. If the link refuses the element, the record is undone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/protocol/message_parts.h"
#include "control/sync/mutex.h"
#include "dataplane/transfer/polling.h"
#include "dataplane/transfer/transport.h"
#include "dataplane/worker/budget.h"
#include "dataplane/worker/iteration_sink.h"
#include "dataplane/worker/shared_slots.h"

namespace penstock::worker {

class IterationSender final : public IterationSink,
                              public std::enable_shared_from_this<IterationSender> {
 public:
  // `token`: a client must present this to get a link.
  IterationSender(IterationId iteration, std::string token, std::shared_ptr<Budget> budget,
                  const SharedSlots& slots = {});
  ~IterationSender() override;

  absl::StatusOr<std::shared_ptr<transfer::SendEvents>> Accept(
      const transfer::Hello& hello, std::shared_ptr<transfer::SendLink> link) override;
  std::shared_ptr<PartitionSink> Open(const PartitionSinkOptions& options) override;
  void Close(PartitionSink& sink) override;
  void Flush() override;
  void CloseLinks(const absl::Status& reason) override;
  bool RetireIfIdle() override;

 private:
  class Link;
  class PartitionSender;
  using LinkPtr = std::shared_ptr<Link>;
  // A client's process. `next` waits until `up` is closed and the outcome of every sending on `up`
  // is known.
  struct Session {
    LinkPtr up;
    LinkPtr next;
  };

  // Sends `sent`, after the elements that must be sent again.
  absl::Status Send(PartitionSender& partition, transfer::Sent sent);
  // Waits until the dispatcher has decided which consumers get the remainder of a partition of
  // `elements` elements.
  absl::StatusOr<protocol::Remainder> AwaitRemainder(PartitionSender& partition, Index elements);
  // Waits until `ready`, which is called under the lock, returns true. Meanwhile sends elements
  // again where needed. Returns OK with the lock held, or an error with the lock released.
  template <class Ready>
  absl::Status Await(PartitionSender& partition, MutexLock& lock, const Ready& ready) REQUIRES(mu_);
  // Releases the lock in all cases, which the thread-safety analysis does not see.
  absl::Status SendOne(PartitionSender& partition, transfer::Sent sent, MutexLock& lock)
      REQUIRES(mu_);
  // Records that `sent` is being sent on the link.
  void NoteLocked(Link& link, PartitionSender& partition, const transfer::Sent& sent) REQUIRES(mu_);
  // Undoes NoteLocked(), because the link refused `sent` with the error `why`. `grants`: the link's
  // `grants` when the link was picked.
  void TakeBackLocked(Link& link, PartitionSender& partition, transfer::Sent& sent,
                      const absl::Status& why, uint64_t grants) REQUIRES(mu_);
  absl::Status SendAgain(PartitionSender& partition, bool until_ended);
  // Returns the link whose client's memory holds the element; nullptr: none.
  const Link* OwnerLocked(const Element& element) const REQUIRES(mu_);
  struct Pick {
    LinkPtr link;              // nullptr: no client can get the element yet
    bool passed_over = false;  // another client has a credit
  };
  // Picks the client that gets the element now, preferably the client whose memory holds it. With
  // `patient`, the element waits for that client as long as no other client is hungry.
  Pick PickLocked(const PartitionSender& partition, const transfer::Sent& sent, bool patient)
      REQUIRES(mu_);
  // Returns the slots of the client that is likely to get the element: the client with the most
  // unused credits, else the client that is likely to have the next credit. nullptr: any memory.
  std::shared_ptr<Pool> SlotsFor(const PartitionSender& partition, Index index);
  void LinkUpLocked(PartitionSender& partition, const control::Reader& reader) REQUIRES(mu_);
  PartitionSender* FindLocked(PartitionId id, Placement placement) REQUIRES(mu_);

  void OnCredits(Link& link, int64_t count);
  void OnReceived(Link& link, absl::Span<const transfer::Acknowledged> received);
  void OnClosed(const LinkPtr& link, std::vector<transfer::Sent> unconfirmed);
  void RaiseLocked(const LinkPtr& link) REQUIRES(mu_);

  const IterationId iteration_;
  const std::string token_;
  const std::shared_ptr<Budget> budget_;
  // The pool for elements of groups, which all members on this host read in place.
  const std::shared_ptr<SharedPool> for_groups_;

  mutable Mutex mu_;
  transfer::PollingCondition changed_;
  std::map<control::Reader, Session> sessions_ GUARDED_BY(mu_);
  std::vector<LinkPtr> up_ GUARDED_BY(mu_);  // links of all sessions, in the order of opening
  // Index in up_ of the link that is tried first for the next element.
  size_t turn_ GUARDED_BY(mu_) = 0;
  int64_t credits_seen_ GUARDED_BY(mu_) = 0;  // credits that arrived on all links so far
  std::vector<std::shared_ptr<PartitionSender>> partitions_ GUARDED_BY(mu_);
  bool retired_ GUARDED_BY(mu_) = false;
};

}  // namespace penstock::worker
