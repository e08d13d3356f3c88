// SPDX-License-Identifier: Apache-2.0
// Communicators that need no GPU and follow NCCL's rules. The ranks are threads of one process, as
// in tests, or the processes of a launch (rank_processes.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "dataplane/replica/collective/collective.h"
#include "dataplane/replica/collective/collective_server.h"

namespace penstock::replica {

// The maximum total size of an all-gather's results in bytes; all-gathers are for small values.
inline constexpr size_t kMostGatheredBytes = size_t{512} << 20;

// A rank's connection to the collective server, which matches its calls with those of the other
// ranks. Any thread.
class CollectiveChannel {
 public:
  virtual ~CollectiveChannel() = default;
  virtual void Call(uint64_t communicator, RankCall call) = 0;
  virtual void End(uint64_t communicator, const absl::Status& why) = 0;
};

// A rank's events from the collective server that Take() has not returned yet. Any thread.
class Inbox {
 public:
  void Push(const RankEvent& event);
  // Ends every communicator, including communicators made later.
  void EndAll(const absl::Status& why);

  // Waits for a result for `communicator` and returns the oldest one, or the error that ended the
  // communicator.
  absl::StatusOr<RankResult> Take(uint64_t communicator);
  absl::Status EndOf(uint64_t communicator) const;  // OK: it has not ended
  // Drops the events of a communicator that is no longer used.
  void Forget(uint64_t communicator);

 private:
  struct Of {
    std::deque<RankResult> results;
    absl::Status end;
  };

  mutable Mutex mu_;
  Condition changed_;
  std::map<uint64_t, Of> communicators_ GUARDED_BY(mu_);
  absl::Status all_ GUARDED_BY(mu_);
};

class HostCollective final : public Collective {
 public:
  HostCollective(std::shared_ptr<CollectiveChannel> channel, std::shared_ptr<Inbox> inbox,
                 uint64_t number, int rank, int size);
  ~HostCollective() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::Status Start(CollectiveOp op, absl::Span<const int64_t> values) override;
  absl::StatusOr<std::vector<int64_t>> Finish() override;
  absl::StatusOr<std::vector<std::string>> AllGather(std::string_view bytes) override;
  absl::StatusOr<std::unique_ptr<Collective>> Split(int color) override;
  absl::Status AsyncError() const override { return inbox_->EndOf(number_); }
  void Abort(const absl::Status& why) override;

 private:
  absl::StatusOr<RankResult> Ask(RankCall call);

  const std::shared_ptr<CollectiveChannel> channel_;
  const std::shared_ptr<Inbox> inbox_;
  const uint64_t number_;
  const int rank_;
  const int size_;
  int64_t started_ = 0;  // reductions that are not finished
};

// Makes one communicator of `ranks` threads of this process. Returns its ends, by rank.
std::vector<std::unique_ptr<Collective>> CollectiveOfThreads(int ranks);

}  // namespace penstock::replica
