// SPDX-License-Identifier: Apache-2.0
// Values that pipelines of the process make for devices are in page-locked memory.
#include "tests/dataplane/replica/fake_gpus.h"
#include "tests/dataplane/replica/replicas.h"

namespace penstock {
namespace {

using ::testing::IsEmpty;

// Reads all of it; returns the sum of all replicas' stats.
DeviceCopyStats ReadToDevices(const absl::StatusOr<DistributedDataset>& dataset) {
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  DistributedIterator it = dataset->MakeIterator().value();
  while (true) {
    const absl::StatusOr<std::optional<DistributedValues>> values = it.Next();
    EXPECT_TRUE(values.ok()) << values.status();
    if (!values.ok() || !values->has_value()) break;
  }
  DeviceCopyStats all;
  for (const DeviceCopyStats& stats : it.CopyStats()) {
    all.elements += stats.elements;
    all.not_page_locked += stats.not_page_locked;
    all.page_locking = stats.page_locking;
  }
  return all;
}

// 100 rows of this many bytes each.
Dataset RowsOfBytes(int64_t bytes) {
  return Dataset::Range(100).Map(
      [bytes](Expr x) { return BroadcastTo(Cast(x, kUInt8), std::vector<int64_t>{bytes}); });
}

class PageLockedPrefetch : public ::testing::Test {
 protected:
  ~PageLockedPrefetch() override { EXPECT_THAT(FakeGpus().Misuses(), IsEmpty()); }
  RunningGpus running_;
};

TEST_F(PageLockedPrefetch, AppliesThroughNodesThatPassElementsOn) {
  const Dataset batches = RowsOfBytes(4096).Batch(10);
  for (const Dataset& dataset : {batches, batches.Prefetch(2), batches.Take(8).Skip(1).Repeat(2)}) {
    for (const int depth : {0, 2}) {
      const DeviceCopyStats stats =
          ReadToDevices(DistributeDataset(TwoGpus(), dataset)->PrefetchToDevice(depth));
      EXPECT_EQ(stats.page_locking, "on");
      EXPECT_GE(stats.elements, 20);
      EXPECT_EQ(stats.not_page_locked, 0) << dataset.Explain() << depth;
    }
  }
}

TEST_F(PageLockedPrefetch, ForALoneReplicaToo) {
  const ReplicaGroup group = *ReplicaGroup::Mirrored({"GPU:0"});
  const Dataset batches = RowsOfBytes(4096).Batch(10).Prefetch(2);
  EXPECT_EQ(ReadToDevices(DistributeDataset(group, batches)).not_page_locked, 0);
  // A Shuffle passes on values that other nodes made in ordinary memory; they are copied all the
  // same.
  const DeviceCopyStats shuffled = ReadToDevices(DistributeDataset(group, batches.Shuffle(4)));
  EXPECT_EQ(shuffled.elements, 10);
  EXPECT_EQ(shuffled.not_page_locked, 10);
}

TEST_F(PageLockedPrefetch, AppliesToMapsAfterTheDistribution) {
  const auto twice = [](Expr x) { return x + x; };
  const DeviceCopyStats stats = ReadToDevices(
      DistributeDataset(TwoGpus(), RowsOfBytes(4096).Batch(10))->Map(twice)->Map(twice));
  EXPECT_EQ(stats.elements, 20);
  EXPECT_EQ(stats.not_page_locked, 0);
}

TEST_F(PageLockedPrefetch, AppliesToTheFillOfTheLastStep) {
  InputOptions options;
  options.partial_batches = PartialBatches::kPad;
  const DeviceCopyStats stats =
      ReadToDevices(DistributeDataset(TwoGpus(), RowsOfBytes(4096).Batch(18), options));
  EXPECT_EQ(stats.elements, 12 + 1);  // the short batch is sent before it is filled up
  EXPECT_EQ(stats.not_page_locked, 0);
}

TEST_F(PageLockedPrefetch, ASteadyStateLocksNothingMore) {
  const Dataset batches = RowsOfBytes(4096).Batch(10).Repeat(3);
  ReadToDevices(DistributeDataset(TwoGpus(), batches));
  const int64_t locked = FakeGpus().page_locked_bytes();
  EXPECT_GT(locked, 0);
  ReadToDevices(DistributeDataset(TwoGpus(), batches));
  EXPECT_EQ(FakeGpus().page_locked_bytes(), locked);
}

TEST_F(PageLockedPrefetch, StepsDownWhereMemoryCannotBeLocked) {
  // No segment was made for this size yet.
  FakeGpus().FailNext(FakeDevice::Call::kPageLock, absl::ResourceExhaustedError("no more to lock"));
  const DeviceCopyStats stats =
      ReadToDevices(DistributeDataset(TwoGpus(), RowsOfBytes(100'000).Batch(20)));
  EXPECT_EQ(stats.elements, 10);
  EXPECT_GT(stats.not_page_locked, 0);
  EXPECT_EQ(stats.page_locking, "on");
}

}  // namespace
}  // namespace penstock
