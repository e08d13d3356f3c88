// SPDX-License-Identifier: Apache-2.0
// Connected iterators of two processes, which are threads here.
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include "tests/dataplane/replica/collectives.h"
#include "tests/dataplane/replica/replicas.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

// Calls fn(rank, iterator) in each of two processes with a replica each.
void OnIterators(const Dataset& dataset, const InputOptions& options,
                 const std::function<void(int, DistributedIterator&)>& fn) {
  const std::string address = replica::FreeAddress();
  replica::OnRanks(2, [&](int rank) {
    absl::StatusOr<ReplicaGroup> group = Process(rank, {1, 1}).Connect({.address = address});
    ASSERT_TRUE(group.ok()) << group.status();
    absl::StatusOr<DistributedDataset> distributed = DistributeDataset(*group, dataset, options);
    ASSERT_TRUE(distributed.ok()) << distributed.status();
    absl::StatusOr<DistributedIterator> it = distributed->MakeIterator();
    ASSERT_TRUE(it.ok()) << it.status();
    fn(rank, *it);
    // No rank leaves while the other needs it.
    EXPECT_TRUE(group->Reduce(ReduceOp::kSum, PerReplica<int>({rank})).ok());
  });
}

// The number of steps is unknown in advance: 5 and 10.
Dataset Uneven() {
  return Dataset::Range(40)
      .Shard(kShardHint, kShardHint)
      .Filter([](auto x) { return x < 20 * (x % 2 + 1); })
      .Batch(4);
}

InputOptions ByHint(PartialBatches policy) {
  InputOptions options;
  options.partial_batches = policy;
  options.auto_shard = AutoShardPolicy::kHint;
  return options;
}

TEST(ConnectedReduce, AddsVectorsAndRefusesDifferentTypes) {
  const std::string address = replica::FreeAddress();
  replica::OnRanks(2, [&](int rank) {
    absl::StatusOr<ReplicaGroup> group = Process(rank, {1, 2}).Connect({.address = address});
    ASSERT_TRUE(group.ok()) << group.status();
    std::vector<std::vector<float>> values(rank == 0 ? 1 : 2, {1.5f, static_cast<float>(rank)});
    EXPECT_EQ(*group->Reduce(ReduceOp::kSum, PerReplica(values)), std::vector<float>({4.5f, 2}));
    EXPECT_EQ(*group->Reduce(ReduceOp::kMean, PerReplica(values)),
              std::vector<float>({1.5f, 2.f / 3}));
    const absl::Status status =
        rank == 0 ? group->Reduce(ReduceOp::kSum, PerReplica<double>({1})).status()
                  : group->Reduce(ReduceOp::kSum, PerReplica<int64_t>({1, 2})).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  });
}

TEST(ConnectedIterators, GoBackFromTheEndAndFromBeforeIt) {
  for (const PartialBatches policy :
       {PartialBatches::kEmpty, PartialBatches::kDrop, PartialBatches::kError}) {
    OnIterators(Uneven(), ByHint(policy), [&](int, DistributedIterator& it) {
      ReadSteps(it, 2);
      const State state = it.Save().value();
      const auto some = ReadSteps(it, 2);
      ASSERT_EQ(some.size(), 2u);
      ASSERT_TRUE(it.Restore(state).ok());
      EXPECT_EQ(ReadSteps(it, 2), some);
      while (true) {
        const auto next = it.Next();
        if (!next.ok() || !next->has_value()) break;
      }
      ASSERT_TRUE(it.Restore(state).ok());
      EXPECT_EQ(ReadSteps(it, 2), some);
    });
  }
}

TEST(ConnectedIterators, RestoredToDifferentStepsAreRefused) {
  const Dataset endless = Dataset::Range(40).Batch(4).Repeat();
  for (const bool aligned : {true, false}) {
    OnIterators(aligned ? Uneven() : endless,
                aligned ? ByHint(PartialBatches::kEmpty) : InputOptions(),
                [&](int rank, DistributedIterator& it) {
                  ReadSteps(it, 1 + rank);
                  const State state = it.Save().value();
                  ReadSteps(it, 2 - rank);
                  ASSERT_TRUE(it.Restore(state).ok());
                  const absl::Status status = it.Next().status();
                  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
                  EXPECT_THAT(status.ToString(), HasSubstr("the next step is 1 in process(es) 0; "
                                                           "2 in process(es) 1"));
                });
  }
}

TEST(ConnectedIterators, StopEndsAStepThatOthersDoNotMake) {
  const Dataset dataset = Uneven();
  const std::string address = replica::FreeAddress();
  replica::OnRanks(2, [&](int rank) {
    absl::StatusOr<ReplicaGroup> group = Process(rank, {1, 1}).Connect({.address = address});
    ASSERT_TRUE(group.ok()) << group.status();
    absl::StatusOr<DistributedDataset> distributed =
        DistributeDataset(*group, dataset, ByHint(PartialBatches::kDrop));
    ASSERT_TRUE(distributed.ok()) << distributed.status();
    // Stopped at many moments, mostly while it waits.
    for (int round = 0; round < 30; ++round) {
      absl::StatusOr<DistributedIterator> it = distributed->MakeIterator();
      ASSERT_TRUE(it.ok()) << it.status();
      ASSERT_EQ(ReadSteps(*it, 1).size(), 1u);
      if (rank == 1) {
        std::optional<absl::Status> ended;
        std::thread waits([&] { ended = it->Next().status(); });
        for (int i = 0; i < round; ++i) std::this_thread::yield();
        EXPECT_TRUE(it->Stop().ok());
        waits.join();
        EXPECT_EQ(ended->code(), absl::StatusCode::kCancelled) << *ended;
      }
      EXPECT_TRUE(group->Reduce(ReduceOp::kSum, PerReplica<int>({rank})).ok());
    }
  });
}

TEST(ConnectedIterators, StopEndsAFirstStepThatOthersDoNotMake) {
  std::promise<void> stopped;
  const std::string address = replica::FreeAddress();
  replica::OnRanks(2, [&](int rank) {
    absl::StatusOr<ReplicaGroup> group = Process(rank, {1, 1}).Connect({.address = address});
    ASSERT_TRUE(group.ok()) << group.status();
    absl::StatusOr<DistributedDataset> distributed =
        DistributeDataset(*group, Uneven(), ByHint(PartialBatches::kEmpty));
    ASSERT_TRUE(distributed.ok()) << distributed.status();
    absl::StatusOr<DistributedIterator> it = distributed->MakeIterator();
    ASSERT_TRUE(it.ok()) << it.status();
    if (rank == 0) {
      stopped.get_future().wait();
      EXPECT_EQ(it->Next().status().code(), absl::StatusCode::kUnavailable);
      return;
    }
    std::optional<absl::Status> ended;
    std::thread waits([&] { ended = it->Next().status(); });
    for (int i = 0; i < 30; ++i) std::this_thread::yield();
    EXPECT_TRUE(it->Stop().ok());
    waits.join();
    EXPECT_EQ(ended->code(), absl::StatusCode::kCancelled) << *ended;
    stopped.set_value();
  });
}

}  // namespace
}  // namespace penstock
