// SPDX-License-Identifier: Apache-2.0
// Sends the elements of an iteration from a worker to the clients that
// read it, first come, first served. Each partition has a sender of its own.
//
// What is sent where is decided by protocol::Sender, one per placed partition
// (docs/exactly_once.md, rules 4, 5, 7 and 12); this file gives it links, keeps
// the bytes of what is in doubt, and waits.
//
// Threads: one lock for all of an iteration. No method of a link is called
// under it, since links may call back from inside their methods. The Sender is
// told of each sending before the link is, so that it sees the sending before its
// outcome; what the link refuses is taken back.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/protocol/session_messages.h"
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
  // `token`: what a client must say to get a link.
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
  // A client's process. `next` waits until `up` is closed and what was on its
  // way there is known.
  struct Session {
    LinkPtr up;
    LinkPtr next;
  };

  // What must be sent again first.
  absl::Status Send(PartitionSender& partition, transfer::Sent sent);
  // Where the remainder of a partition of so many elements goes, once that is known.
  absl::StatusOr<protocol::Remainder> AwaitRemainder(PartitionSender& partition, Index elements);
  // Waits until `ready`, which is asked under the lock; sends again meanwhile. OK with the
  // lock held, else without it.
  template <class Ready>
  absl::Status Await(PartitionSender& partition, std::unique_lock<std::mutex>& lock,
                     const Ready& ready) REQUIRES(mu_);
  // Lets go of the lock, in whatever way it ends, which the analysis does not see.
  absl::Status SendOne(PartitionSender& partition, transfer::Sent sent,
                       std::unique_lock<std::mutex>& lock) REQUIRES(mu_);
  // It leaves on the link.
  void NoteLocked(Link& link, PartitionSender& partition, const transfer::Sent& sent) REQUIRES(mu_);
  // It did not, for this reason. `grants`: the link's when it was picked.
  void TakeBackLocked(Link& link, PartitionSender& partition, transfer::Sent& sent,
                      const absl::Status& why, uint64_t grants) REQUIRES(mu_);
  absl::Status SendAgain(PartitionSender& partition, bool until_ended);
  // The link in whose client's memory it lies; nullptr: none.
  const Link* OwnerLocked(const Element& element) const REQUIRES(mu_);
  struct Pick {
    LinkPtr link;              // nullptr: nobody yet
    bool passed_over = false;  // another one has a credit
  };
  // Who gets it now. The one in whose memory it lies comes first; while `patient` it is waited for
  // as long as nobody else is hungry.
  Pick PickLocked(const PartitionSender& partition, const transfer::Sent& sent, bool patient)
      REQUIRES(mu_);
  // Of the client that is to get it, as far as that is known; those with credits in turn.
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
  // Of elements for groups, which all members on this host read where they lie.
  const std::shared_ptr<SharedPool> for_groups_;

  mutable Mutex mu_;
  transfer::PollingCondition changed_;
  std::map<control::Reader, Session> sessions_ GUARDED_BY(mu_);
  std::vector<LinkPtr> up_ GUARDED_BY(mu_);  // of all sessions, in the order they came up
  // In up_: who is asked first for the next element.
  size_t turn_ GUARDED_BY(mu_) = 0;
  int64_t credits_seen_ GUARDED_BY(mu_) = 0;  // of all links, since the beginning
  std::vector<std::shared_ptr<PartitionSender>> partitions_ GUARDED_BY(mu_);
  bool retired_ GUARDED_BY(mu_) = false;
};

}  // namespace penstock::worker
