// SPDX-License-Identifier: Apache-2.0
// Where the calls of all ranks of a host communicator meet.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/sync/mutex.h"
#include "dataplane/replica/collective.h"

namespace penstock::replica {

// What a rank asks of a communicator.
struct RankCall {
  enum class Kind : uint8_t { kReduce = 0, kGather = 1, kSplit = 2 };
  Kind kind = Kind::kReduce;
  CollectiveOp op = CollectiveOp::kSum;
  std::vector<int64_t> values;   // kReduce
  std::string bytes;             // kGather
  int64_t color = 0;             // kSplit
  std::string ToString() const;  // "all-reduce(min) of 2 values"
  friend bool operator==(const RankCall&, const RankCall&) = default;
};

// What a rank gets for it.
struct RankResult {
  std::vector<int64_t> values;        // kReduce
  std::vector<std::string> gathered;  // kGather
  uint64_t communicator = 0;          // kSplit: the new one, and this rank's place there
  int64_t rank = 0;
  int64_t size = 0;
  friend bool operator==(const RankResult&, const RankResult&) = default;
};

// What a rank is told of a communicator: the result of its oldest call without one, or
// the end.
struct RankEvent {
  uint64_t communicator = 0;
  absl::StatusOr<RankResult> result;
};

// The calls of one communicator, matched by order. One thread at a time.
class CallMatcher {
 public:
  explicit CallMatcher(int ranks) : waiting_(static_cast<size_t>(ranks)) {}

  // The calls that stand at one place, by rank, once all ranks have made theirs.
  // FailedPrecondition naming two ranks whose calls there do not fit.
  absl::StatusOr<std::optional<std::vector<RankCall>>> Add(int rank, RankCall call);

 private:
  std::vector<std::deque<RankCall>> waiting_;
  int64_t place_ = 0;  // of the oldest waiting
};

// All communicators of one set of ranks: number 0 has all of them, splits have
// others. Any thread.
class CollectiveServer {
 public:
  // Called in the order of what happens, under the server's lock: must not call it.
  using EventCallback = std::function<void(const RankEvent&)>;
  explicit CollectiveServer(std::vector<EventCallback> ranks);

  // `rank` is a place in communicator 0, whichever is called. A call to one that has
  // ended is dropped: its end was told.
  void Call(int rank, uint64_t communicator, RankCall call);
  void End(int rank, uint64_t communicator, const absl::Status& why);
  // Ends all communicators that have the rank, and nothing is told to it any more.
  void Lose(int rank, const absl::Status& why);

 private:
  struct Communicator {
    std::vector<int> ranks;
    CallMatcher calls;
    int PlaceOf(int rank) const;  // -1: not in it
  };

  using Communicators = std::map<uint64_t, Communicator>;

  const Communicator& Add(std::vector<int> ranks) REQUIRES(mu_);
  // The communicator if the rank is in it, else end().
  Communicators::iterator Find(int rank, uint64_t communicator) REQUIRES(mu_);
  // The one behind it.
  Communicators::iterator EndAt(Communicators::iterator at, const absl::Status& why) REQUIRES(mu_);
  void Answer(uint64_t number, const std::vector<RankCall>& calls) REQUIRES(mu_);
  void AnswerSplit(uint64_t number, const std::vector<RankCall>& calls) REQUIRES(mu_);

  Mutex mu_;
  std::vector<EventCallback> callbacks_ GUARDED_BY(mu_);
  Communicators communicators_ GUARDED_BY(mu_);  // without those that have ended
  uint64_t next_ GUARDED_BY(mu_) = 0;
};

}  // namespace penstock::replica
