// SPDX-License-Identifier: Apache-2.0
// A small coordinated read: the dispatcher's record and context, the consumers' real Receivers and
// RoundQueues, and workers that send whatever they may. Messages to a consumer wait in a queue; a
// consumer or a worker sends its own at some later step. So each order of events is a path of
// steps.
#pragma once

#include <array>
#include <deque>
#include <string>
#include <vector>

#include "control/protocol/coordinator/iteration_coordinator.h"
#include "control/protocol/queues/round_queue.h"
#include "control/protocol/receiver.h"

namespace penstock::protocol {

struct RoundsScene {
  std::vector<Index> ends;  // elements of each partition
  int late = 0;             // number of last partitions, whose workers join later
  int consumers = 2;
  RemainderPolicy remainder_policy = RemainderPolicy::kPad;
  int worker_deaths = 0;
  int dispatcher_restarts = 0;
  int consumer_deaths = 0;  // each comes back with the state it wrote last
  int leases_run_out = 0;   // of consumers that have died and are not back
  int broken_streams = 0;
  int64_t receive_budget = 0;  // elements that a consumer holds; 0: not reported
  int state_every = 0;         // rounds between two states; 0: none are written
  Broken broken = Broken::kNone;
};

struct RoundsStep {
  enum class Kind : uint8_t {
    kDeliver,  // the next message to consumer `a`
    kReceive,  // an element of partition `b` at consumer `a`
    kTake,     // consumer `a` takes a round
    kReport,   // consumer `a` reports news
    kConnect,  // consumer `a` opens its stream
    kAtEnd,    // the worker reports the end of partition `b`
    kEnded,    // the worker reports that partition `b` ended
    kLeave,    // consumer `a`, at its end
    kCommit,   // consumer `a` commits the state it wrote last
    kKill,     // of the worker of partition `b`
    kRestart,  // of the dispatcher
    kBreak,    // of consumer `a`'s stream
    kGoBack,   // consumer `a` dies, and starts from its state
    kExpire,   // consumer `a`'s lease runs out before it is back
    kJoin,     // a worker joins with one more partition
  };
  Kind kind;
  int a = 0;
  int b = 0;
  bool failure() const { return kind >= Kind::kKill; }  // optional: the end is reached without it
};
std::string ToString(const RoundsStep& step);

class RoundsWorld {
 public:
  explicit RoundsWorld(const RoundsScene& scene);

  std::vector<RoundsStep> Next() const;
  void Take(const RoundsStep& step);
  // Returns the fault in this state; empty if there is none.
  const std::string& fault() const { return fault_; }
  bool Done() const;
  int64_t delivered(int consumer) const {
    return consumers_[static_cast<size_t>(consumer)].queue.delivered();
  }
  // A consumer came back at a round that others are past: no more rounds are agreed on.
  bool WaitsForStates() const;
  std::string Describe() const;  // equal for equal states

 private:
  struct Consumer {
    uint64_t incarnation = 1;
    bool presented = false;
    std::deque<Message> inbox;
    std::vector<Receiver> receivers;  // by partition
    RoundQueue queue;
    bool says = false;  // there is something to report
    bool end = false;
    bool left = false;
    int64_t rounds = 0;
    ReceivedSets state;  // the last one written
    int64_t state_rounds = 0;
    int64_t committed_rounds = 0;
  };
  struct Sending {  // a partition's worker
    WorkerId worker;
    Placement placement;
    IndexSet skip;  // and delivered indices
    int64_t rows = 0;
    std::optional<Remainder> remainder;
    bool sent_end = false;
    bool sent_ended = false;
  };

  void Settle(Decision decision);
  void Route(const Message& message);
  void Hear(Consumer& consumer, const Message& message);
  void Report(int consumer, bool all);
  std::optional<Index> NextFor(int partition, int consumer) const;
  bool AllSent(int partition) const;
  bool MayExpire(int consumer) const;
  Index Whole(int partition) const;
  void Fault(std::string what) {
    if (fault_.empty()) fault_ = std::move(what);
  }

  const RoundsScene* scene_;
  IterationRecord record_;
  IterationContext context_;
  std::vector<Consumer> consumers_;
  std::vector<Sending> workers_;
  uint64_t next_worker_ = 1;
  int kills_ = 0;
  int restarts_ = 0;
  int deaths_ = 0;
  int expired_ = 0;
  int breaks_ = 0;
  std::vector<std::vector<PartitionRow>> announced_;  // by round, the first one, by consumer
  std::string fault_;
};

}  // namespace penstock::protocol
