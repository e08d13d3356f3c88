// SPDX-License-Identifier: Apache-2.0
// One iteration with its coordinator, and names for its clients, workers and partition.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "control/protocol/coordinator/iteration_coordinator.h"

namespace penstock::protocol {

inline constexpr ClientId kAnna{1};
inline constexpr ClientId kBert{2};
inline constexpr ClientId kCleo{3};
inline constexpr Incarnation kFirst{1};
inline constexpr Incarnation kSecond{2};
inline constexpr WorkerId kWorker{7};
inline constexpr WorkerId kOther{8};
inline constexpr PartitionId kPartition{1};

// Readers are equal by identity; this compares the consumer too.
MATCHER_P(IsReader, reader, "") {
  return arg == reader && arg.consumer == reader.consumer;
}

// A record and its context, as a dispatcher keeps them; collects the messages.
class Harness {
 public:
  explicit Harness(CommitPolicy keep = CommitPolicy::kOnDelivery) {
    record.commit_policy = keep;
    context = MakeIterationContext(record);
    Do(OpenPartition(record, context));
  }
  void Do(Decision decision) {
    do {
      for (const IterationChange& change : decision.changes) {
        ASSERT_TRUE(Fits(record, change));
        Apply(record, change);
      }
      for (Message& message : decision.messages) sent.push_back(std::move(message));
      decision = Consequences(record, context);
    } while (!decision.empty());
  }
  void Joins(ClientId client) { Do(OnConnect(record, context, {client, kFirst, std::nullopt})); }
  void Restarts(ClientId client, ReceivedSets state) {
    Do(OnConnect(record, context, {client, kSecond, std::move(state)}));
  }
  void Reports(ClientId client, Placement g, IndexSet delivered, IndexSet received = {}) {
    Do(OnReport(record, context, client, kFirst, {kPartition, g, delivered, received}));
  }
  void Gives(ClientId client, Placement g, IndexSet returned) {
    Do(OnReport(record, context, client, kFirst,
                {.partition = kPartition, .placement = g, .returned = std::move(returned)}));
  }
  void Waits(ClientId client) {
    OnWaits(record, context, client, kFirst);
    Do({});
  }
  void Dies(ClientId client) { Do(OnReaderExpired(record, context, client)); }
  void Commits(ClientId client, ReceivedSets committed) {
    Do(OnCommit(record, context, client, kFirst, {1, std::move(committed)}));
  }
  void Assign(WorkerId worker = kWorker) { Do(AssignTo(record, context, kPartition, worker)); }
  void Ends(Index end) {
    Do(OnEnded(record, context, kWorker, kPartition, record.partition(kPartition).placement, end));
  }
  // Removes and returns the messages of one kind.
  template <class M>
  std::vector<M> Sent() {
    std::vector<M> some;
    std::erase_if(sent, [&](const Message& message) {
      const M* m = std::get_if<M>(&message);
      if (m) some.push_back(*m);
      return m != nullptr;
    });
    return some;
  }

  IterationRecord record;
  IterationContext context;
  std::vector<Message> sent;
};

inline IndexSet Range(Index begin, Index end) {
  return IndexSet::Of(begin, end);
}

}  // namespace penstock::protocol
