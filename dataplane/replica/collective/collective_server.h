// SPDX-License-Identifier: Apache-2.0
// Matches the calls of all ranks of host communicators.
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
#include "dataplane/replica/collective/collective.h"

namespace penstock::replica {

// A rank's call on a communicator.
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

// A rank's result of a RankCall.
struct RankResult {
  std::vector<int64_t> values;        // kReduce
  std::vector<std::string> gathered;  // kGather
  uint64_t communicator = 0;          // kSplit: the new communicator, in which this rank is `rank`
  int64_t rank = 0;
  int64_t size = 0;
  friend bool operator==(const RankResult&, const RankResult&) = default;
};

// A message to a rank about a communicator: the result of the rank's oldest unanswered call, or the
// communicator's end.
struct RankEvent {
  uint64_t communicator = 0;
  absl::StatusOr<RankResult> result;
};

// Matches the calls on one communicator by their order. One thread at a time.
class CallMatcher {
 public:
  explicit CallMatcher(int ranks) : waiting_(static_cast<size_t>(ranks)) {}

  // Adds a call. Once all ranks have made their call at the same position in the order, returns
  // these calls, by rank. FailedPrecondition naming two ranks whose calls do not match.
  absl::StatusOr<std::optional<std::vector<RankCall>>> Add(int rank, RankCall call);

 private:
  std::vector<std::deque<RankCall>> waiting_;
  int64_t place_ = 0;  // the position in the order of the oldest waiting calls
};

// All communicators of one set of ranks: number 0 has all ranks; communicators made by Split() have
// other numbers. Any thread.
class CollectiveServer {
 public:
  // Called once per event, in the order of events, under the server's lock; must not call the
  // server.
  using EventCallback = std::function<void(const RankEvent&)>;
  explicit CollectiveServer(std::vector<EventCallback> ranks);

  // `rank` is always a rank of communicator 0. A call on a communicator that has ended is dropped,
  // because the rank has been notified of the end.
  void Call(int rank, uint64_t communicator, RankCall call);
  void End(int rank, uint64_t communicator, const absl::Status& why);
  // Ends all communicators that contain the rank. Afterwards the rank gets no more events.
  void Lose(int rank, const absl::Status& why);

 private:
  struct Communicator {
    std::vector<int> ranks;
    CallMatcher calls;
    int PlaceOf(int rank) const;  // -1: not a member
  };

  using Communicators = std::map<uint64_t, Communicator>;

  const Communicator& Add(std::vector<int> ranks) REQUIRES(mu_);
  // Returns the communicator if the rank is a member, else end().
  Communicators::iterator Find(int rank, uint64_t communicator) REQUIRES(mu_);
  // Ends the communicator and returns the next one.
  Communicators::iterator EndAt(Communicators::iterator at, const absl::Status& why) REQUIRES(mu_);
  void Answer(uint64_t number, const std::vector<RankCall>& calls) REQUIRES(mu_);
  void AnswerSplit(uint64_t number, const std::vector<RankCall>& calls) REQUIRES(mu_);

  Mutex mu_;
  std::vector<EventCallback> callbacks_ GUARDED_BY(mu_);
  Communicators communicators_ GUARDED_BY(mu_);  // those that have not ended
  uint64_t next_ GUARDED_BY(mu_) = 0;
};

}  // namespace penstock::replica
