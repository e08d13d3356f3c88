// SPDX-License-Identifier: Apache-2.0
// Values of replicas on devices, through the public interface.
#include <cstdlib>
#include <set>

#include "dataplane/memory/pool.h"
#include "tests/dataplane/replica/replicas.h"
#include "tests/dataplane/replica/without_page_locks.h"
#include "tests/eventually.h"

namespace penstock {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StrEq;

using Steps = std::vector<std::vector<Rows>>;

Steps ReadOnDevices(DistributedIterator& it, int64_t most = INT64_MAX) {
  Steps steps;
  while (static_cast<int64_t>(steps.size()) < most) {
    absl::StatusOr<std::optional<DistributedValues>> values = it.Next();
    EXPECT_TRUE(values.ok()) << values.status();
    if (!values.ok() || !values->has_value()) break;
    std::vector<Rows>& step = steps.emplace_back();
    for (size_t i = 0; i < (*values)->size(); ++i) {
      EXPECT_TRUE((*values)->is_on_device(i));
      EXPECT_FALSE((**values)[i]);
      EXPECT_EQ((*values)->on_device(i).device(), static_cast<int>(i));
      step.push_back(RowsOnDevice((*values)->on_device(i)));
    }
  }
  return steps;
}

class DevicePrefetch : public WithoutPageLocks {
 protected:
  ~DevicePrefetch() override { EXPECT_THAT(FakeGpus().Misuses(), IsEmpty()); }
  RunningGpus running_;
};

TEST_F(DevicePrefetch, EachReplicaHasItsValuesOnItsDeviceAtEveryDepth) {
  const Dataset batches = Dataset::Range(1000).Batch(8);
  const Steps expected = ReadSteps(DistributeDataset(Mirrored(3), batches));
  for (const int depth : {0, 1, 2, 4}) {
    DistributedIterator it =
        DistributeDataset(Gpus(3), batches)->PrefetchToDevice(depth)->MakeIterator().value();
    EXPECT_EQ(ReadOnDevices(it), expected) << depth;
    ASSERT_EQ(it.CopyStats().size(), 3u);
    for (const DeviceCopyStats& stats : it.CopyStats()) {
      EXPECT_EQ(stats.elements, 125);
      EXPECT_EQ(stats.places, depth + 2);
      EXPECT_EQ(stats.grown, 0);
      EXPECT_EQ(stats.ahead > 0, depth > 0);
      // This process has page-locking off, and everything works without it.
      EXPECT_EQ(stats.not_page_locked, stats.elements);
      EXPECT_EQ(stats.page_locking, "off: it was set to off");
    }
  }
}

// Each step's element comes once, and its values are on each of the devices that share it.
TEST_F(DevicePrefetch, ReplicasThatShareAnElementCopyItEachForItself) {
  InputOptions options;
  options.replicas_per_element = 2;
  const Dataset batches = Dataset::Range(1000).Batch(8);
  const Steps expected = ReadSteps(DistributeDataset(Mirrored(2), batches));
  for (const int depth : {0, 2}) {
    DistributedIterator it = DistributeDataset(Gpus(4), batches, options)
                                 ->PrefetchToDevice(depth)
                                 ->MakeIterator()
                                 .value();
    Steps steps = ReadOnDevices(it);
    ASSERT_EQ(steps.size(), expected.size()) << depth;
    for (size_t step = 0; step < steps.size(); ++step) {
      EXPECT_EQ(steps[step], (std::vector<Rows>{expected[step][0], expected[step][0],
                                                expected[step][1], expected[step][1]}));
    }
    for (const DeviceCopyStats& stats : it.CopyStats()) {
      EXPECT_EQ(stats.elements, 125);
      EXPECT_EQ(stats.ahead > 0, depth > 0);
    }
  }
}

TEST_F(DevicePrefetch, ASharedSlotGoesBackAfterTheLastCopy) {
  InputOptions options;
  options.replicas_per_element = 4;
  const Dataset batches = Dataset::Range(100'000).Batch(8);
  const int64_t lent = DefaultPool().counters().bytes_lent;
  {
    DistributedIterator it =
        DistributeDataset(Gpus(4), batches, options)->PrefetchToDevice(2)->MakeIterator().value();
    for (int i = 0; i < 20; ++i) {
      ReadOnDevices(it, 100);
      // Only the few elements ahead and under way are lent; those that were read are not.
      EXPECT_LT(DefaultPool().counters().bytes_lent - lent, 64 << 10);
    }
  }
  EXPECT_TRUE(Eventually([&] { return DefaultPool().counters().bytes_lent <= lent; }));
}

TEST_F(DevicePrefetch, SharingDividesTheReplicasOfEveryProcess) {
  InputOptions options;
  options.replicas_per_element = 3;
  const absl::Status status =
      DistributeDataset(Gpus(4), Dataset::Range(8).Batch(2), options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("groups of 3 replicas are not possible: process 0 has 4, which is not a "
                        "multiple of 3; replicas_per_element"));
}

TEST_F(DevicePrefetch, EachReplicaMayHaveAPipelineOfItsOwn) {
  InputOptions options;
  options.replication_mode = ReplicationMode::kPerReplica;
  const Dataset batches = Dataset::Range(64).Batch(8);
  DistributedIterator it = DistributeDataset(Gpus(2), batches, options)->MakeIterator().value();
  EXPECT_EQ(ReadOnDevices(it), ReadSteps(DistributeDataset(Mirrored(2), batches, options)));
}

TEST_F(DevicePrefetch, AStateIsAfterTheReturnedStepHoweverManyAreAhead) {
  const Dataset batches = Dataset::Range(400).Shuffle(64, {.seed = 3}).Batch(8);
  for (const int depth : {0, 1, 4}) {
    const auto first_pass = [&] {
      return *DistributeDataset(Gpus(2), batches, {.seed = 5})
                  ->PrefetchToDevice(depth)
                  ->MakeIterator();
    };
    DistributedIterator whole = first_pass();
    const Steps all = ReadOnDevices(whole);
    DistributedIterator first = first_pass();
    Steps steps = ReadOnDevices(first, 17);
    const State state = first.Save().value();
    ReadOnDevices(first, 3);
    ASSERT_TRUE(first.Restore(state).ok());  // even while copies of other steps are ahead
    DistributedIterator second = first_pass();
    ASSERT_TRUE(second.Restore(state).ok());
    const Steps rest = ReadOnDevices(second);
    EXPECT_EQ(ReadOnDevices(first), rest);
    steps.insert(steps.end(), rest.begin(), rest.end());
    EXPECT_EQ(steps, all) << depth;
  }
}

TEST_F(DevicePrefetch, LastStepsAreFilledUpAndCopiedToo) {
  InputOptions options;
  options.partial_batches = PartialBatches::kPad;
  const Dataset batches = Dataset::Range(10).Batch(8);
  DistributedIterator it = DistributeDataset(Gpus(2), batches, options)->MakeIterator().value();
  std::vector<float> weights;
  Steps steps;
  for (int step = 0; step < 2; ++step) {
    const DistributedValues values = it.GetNext().value();
    steps.push_back({RowsOnDevice(values.on_device(0)), RowsOnDevice(values.on_device(1))});
    const auto of = values.weights(0);
    weights.assign(of.begin(), of.end());
  }
  EXPECT_EQ(steps, ReadSteps(DistributeDataset(Mirrored(2), batches, options)));
  EXPECT_THAT(weights, ::testing::ElementsAre(1, 1, 0, 0));
}

TEST_F(DevicePrefetch, MapsStandBeforeIt) {
  const auto twice = [](auto x) { return x * 2; };
  const DistributedDataset dataset = *DistributeDataset(Gpus(2), Dataset::Range(8).Batch(4));
  DistributedIterator it = dataset.Map(twice)->PrefetchToDevice(2)->MakeIterator().value();
  EXPECT_EQ(ReadOnDevices(it), (Steps{{{0, 2}, {4, 6}}, {{8, 10}, {12, 14}}}));
  const absl::Status behind = dataset.PrefetchToDevice(2)->Map(twice).status();
  EXPECT_EQ(behind.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(behind.message()), HasSubstr("move it before"));
  EXPECT_EQ(dataset.PrefetchToDevice(-1).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(DevicePrefetch, FunctionsTakeTheElementOnTheirDevice) {
  const ReplicaGroup group = Gpus(2);
  DistributedIterator it =
      DistributeDataset(group, Dataset::Range(8).Batch(8))->MakeIterator().value();
  const DistributedValues values = it.GetNext().value();
  EXPECT_THAT(values.ToString(), StrEq("PerReplica:{\n  0: int64 [4] on GPU:0,\n"
                                       "  1: int64 [4] on GPU:1\n}"));
  EXPECT_EQ(values.spec()[0].ToString(),
            DistributeDataset(group, Dataset::Range(8).Batch(8))->element_spec()[0].ToString());
  const absl::StatusOr<PerReplica<int64_t>> firsts =
      group.Run([](const DeviceElement& batch) { return RowsOnDevice(batch)[0]; }, values);
  ASSERT_TRUE(firsts.ok()) << firsts.status();
  EXPECT_EQ((*firsts)[1], 4);
  for (const absl::Status& status :
       {group.Run([](const Element& batch) { return batch.size(); }, values).status(),
        group.Reduce(ReduceOp::kSum, values).status(), group.Gather(values).status(),
        group.RunTraced([](auto x) { return x; }, values).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("on GPU:0"));
  }
}

TEST_F(DevicePrefetch, ReplicasOnCpusKeepTheirsInHostMemory) {
  const ReplicaGroup group = *ReplicaGroup::Mirrored({"CPU:0", "GPU:2"});
  DistributedIterator it =
      DistributeDataset(group, Dataset::Range(4).Batch(4))->MakeIterator().value();
  const DistributedValues values = it.GetNext().value();
  EXPECT_EQ(RowsOf(values[0]), (Rows{0, 1}));
  EXPECT_EQ(RowsOnDevice(values.on_device(1)), (Rows{2, 3}));
  EXPECT_EQ(values.on_device(1).device(), 2);
  EXPECT_EQ(it.CopyStats().size(), 1u);
}

TEST_F(DevicePrefetch, PlacesOnADeviceAreBoundedAndUsedAgain) {
  const Dataset batches = Dataset::Range(4000).Batch(4);
  DistributedIterator it =
      DistributeDataset(Gpus(1), batches)->PrefetchToDevice(2)->MakeIterator().value();
  std::set<const void*> places;
  const int64_t before = FakeGpus().allocations();
  while (auto values = it.Next().value()) places.insert(values->on_device(0).tensor(0).raw());
  EXPECT_LE(places.size(), 4u);
  EXPECT_EQ(FakeGpus().allocations(), before + 1);
  EXPECT_LE(it.CopyStats()[0].events, 16);
}

TEST_F(DevicePrefetch, AnErrorOfADeviceNamesReplicaAndStep) {
  DistributedIterator it = DistributeDataset(Gpus(2), Dataset::Range(80).Batch(4))
                               ->PrefetchToDevice(0)
                               ->MakeIterator()
                               .value();
  ASSERT_TRUE(it.Next().ok());
  FakeGpus().FailNext(FakeDevice::Call::kCopy, absl::InternalError("the bus is gone"));
  const absl::Status failed = it.Next().status();
  EXPECT_THAT(std::string(failed.message()), HasSubstr("replica 0 on GPU:0, step 1"));
  EXPECT_THAT(std::string(failed.message()), HasSubstr("the bus is gone"));
  EXPECT_EQ(RowsOnDevice(it.GetNext().value().on_device(1)), (Rows{10, 11}));
}

class LandingByHand : public WithoutPageLocks {};

TEST_F(LandingByHand, HostSlotsComeBackThoughNobodyAsksForTheNext) {
  DistributedIterator it =
      DistributeDataset(Gpus(1), Dataset::Range(80).Batch(4), {.per_replica_buffer_size = 0})
          ->MakeIterator()
          .value();
  const DistributedValues values = it.GetNext().value();
  const int64_t lent = DefaultPool().counters().bytes_lent;
  FakeGpus().Run();
  EXPECT_TRUE(Eventually([&] { return DefaultPool().counters().bytes_lent < lent; }));
  EXPECT_EQ(RowsOnDevice(values.on_device(0)), (Rows{0, 1, 2, 3}));
}

TEST_F(DevicePrefetch, StopEndsAWaitForAPlace) {
  DistributedIterator it = DistributeDataset(Gpus(1), Dataset::Range(80).Batch(4))
                               ->PrefetchToDevice(1)
                               ->MakeIterator()
                               .value();
  std::vector<DistributedValues> held;
  absl::StatusOr<DistributedValues> next = it.GetNext();
  for (; next.ok(); next = it.GetNext()) held.push_back(*std::move(next));
  EXPECT_EQ(held.size(), 3u);
  EXPECT_EQ(next.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(it.Stop().ok());
  EXPECT_EQ(it.Next().status().code(), absl::StatusCode::kCancelled);
}

TEST_F(DevicePrefetch, AGpuThatIsNotThereIsRefusedInWords) {
  const ReplicaGroup group = *ReplicaGroup::Mirrored({"GPU:0", "GPU:7"});
  const absl::Status refused = DistributeDataset(group, Dataset::Range(4).Batch(4)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("GPU:7"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("fetch_to_device = false"));
}

}  // namespace
}  // namespace penstock
