// SPDX-License-Identifier: Apache-2.0
// Runs one partition under one placement: replays the partition from its bookmark, and sends the
// elements that are not in the assignment's skip set.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/heartbeat_counts.h"
#include "control/protocol/message_parts.h"
#include "control/protocol/worker_messages.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "dataplane/worker/iteration_sink.h"
#include "dataplane/worker/split_feed.h"
#include "dataplane/worker/watched_files.h"
#include "dataplane/worker/worker_context.h"

namespace penstock::worker {

// Works on a thread of its own, from Start() until Cancel(). A partition that has ended is kept,
// because its elements may have to be sent again. The runner holds a permit while it computes, and
// gives the permit up while it waits. Any thread may call the methods; only AwaitDone() waits.
class PartitionRunner : public std::enable_shared_from_this<PartitionRunner> {
 public:
  static std::shared_ptr<PartitionRunner> Start(std::shared_ptr<WorkerContext> context,
                                                std::shared_ptr<IterationSink> iteration_sink,
                                                control::Assign assign);
  ~PartitionRunner();

  const control::PlacedPartition& of() const { return assign_.of; }

  void AddReader(const control::Reader& reader);
  void RemoveReader(ClientId client);
  void OnSplits(const control::SplitRun& run);
  void Allow(const control::AllowRows& order);
  // Sends these messages again, because the dispatcher may have forgotten or never received them:
  // unanswered questions, the newest bookmark, the end or the failure.
  void SayAgain();

  // Returns the work as counted when the first element after the previous call was finished. Leaves
  // `iteration` unset. After the partition's end, the result counts 0 partitions.
  control::IterationWork Work();

  // Ends the runner. After this, nothing is sent or reported, except by a call of a link's Send()
  // that has already begun.
  void Cancel();
  // Waits until the thread has ended, or until `deadline`. Returns true if the thread has ended.
  bool AwaitDone(absl::Time deadline);

 private:
  // The last bookmark. The next is due after a number of outputs, or after some time.
  struct BookmarkClock {
    Index index = 0;  // of the last bookmark
    absl::Time at;
    bool sent = false;  // under this placement
  };

  PartitionRunner(std::shared_ptr<WorkerContext> context,
                  std::shared_ptr<IterationSink> iteration_sink, control::Assign assign);

  void Run();
  absl::Status Replay();
  // Waits briefly, so that a disk or file server may recover before the retry. Does not wait after
  // Cancel().
  void AwaitAnotherMoment();
  absl::StatusOr<std::shared_ptr<const Definition>> Define();
  // Sends all elements from the bookmark on; returns the number of elements of the partition.
  absl::StatusOr<Index> Produce(NodeIterator& iterator, const Dataset& dataset);
  void CountWork(int64_t made);
  // Returns `element` as it is sent, with that index.
  absl::StatusOr<Element> Finished(Element element, Index index) const;
  absl::Status SendNext(absl::StatusOr<std::optional<Element>> next, Index index);
  // The last step of the thread: reports an error and closes the sink.
  void End(const absl::Status& status);
  Identity IdentityOf(Index index) const;
  void MarkIfDue(NodeIterator& iterator, const Dataset& dataset, Index index, BookmarkClock& clock);
  void Say(control::WorkerUp message);
  absl::Status AwaitRoom();

  const std::shared_ptr<WorkerContext> context_;
  const std::shared_ptr<IterationSink> iteration_sink_;
  const control::Assign assign_;
  WatchedFiles files_;
  Permit permit_;
  PartitionSplits splits_;
  const std::shared_ptr<PartitionSink> sink_;
  std::stop_source stop_;               // requested by Cancel()
  std::atomic<bool> count_work_{true};  // count the work at the next element

  Mutex mu_;
  Condition done_changed_;
  bool done_ GUARDED_BY(mu_) = false;
  control::IterationWork work_ GUARDED_BY(mu_){.partitions = 1};
  std::optional<control::Bookmark> bookmark_ GUARDED_BY(mu_);  // the newest
  std::optional<control::AtEnd> at_end_ GUARDED_BY(mu_);
  std::optional<control::Ended> ended_ GUARDED_BY(mu_);
  std::optional<control::PartitionFailed> failed_ GUARDED_BY(mu_);
};

}  // namespace penstock::worker
