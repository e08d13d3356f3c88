// SPDX-License-Identifier: Apache-2.0
// Jobs of a service whose elements are copied to devices. The backend's devices are fake.
#include <cstdlib>
#include <functional>

#include "control/observe/metrics.h"
#include "tests/cluster/cluster.h"
#include "tests/dataplane/replica/replicas.h"
#include "tests/dataplane/replica/without_page_locks.h"

namespace penstock {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;

// Returns all rows of each replica in the order they came. Calls `between` before each step.
std::vector<Rows> ReadOnDevices(const ReplicaGroup& group, const Dataset& dataset,
                                const InputOptions& options = {},
                                const std::function<void(int64_t)>& between = nullptr) {
  std::vector<Rows> all(static_cast<size_t>(group.num_local_replicas()));
  absl::StatusOr<DistributedDataset> distributed = DistributeDataset(group, dataset, options);
  EXPECT_TRUE(distributed.ok()) << distributed.status();
  if (!distributed.ok()) return all;
  int64_t step = 0;
  for (absl::StatusOr<DistributedValues>& values : distributed->PrefetchToDevice(2)->Elements()) {
    EXPECT_TRUE(values.ok()) << values.status();
    if (!values.ok()) break;
    if (between) between(step++);
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_TRUE(values->is_on_device(i));
      EXPECT_EQ(values->on_device(i).device(), static_cast<int>(i));
      const Rows rows = RowsOnDevice(values->on_device(i));
      all[i].insert(all[i].end(), rows.begin(), rows.end());
    }
  }
  return all;
}

Rows Together(const std::vector<Rows>& by_replica) {
  Rows all;
  for (const Rows& rows : by_replica) all.insert(all.end(), rows.begin(), rows.end());
  return Sorted(std::move(all));
}

// Returns the bytes that workers of this process have sent.
int64_t SentBytes() {
  return ProcessMetrics().GetCounter("penstock_worker_sent_bytes_total", "").value();
}

class DevicePrefetchOfJobs : public WithoutPageLocks,
                             public ::testing::WithParamInterface<std::string> {
 protected:
  ~DevicePrefetchOfJobs() override { EXPECT_THAT(FakeGpus().Misuses(), IsEmpty()); }

  DistributeOptions Job(const std::string& name, int64_t consumers = 0) const {
    DistributeOptions options = cluster_.Options(ShardingPolicy::kDynamic, name);
    options.data_transfer_protocol = GetParam();
    if (consumers > 0) options.delivery = CoordinatedRounds{.num_consumers = consumers};
    return options;
  }

  RunningGpus running_;
  Cluster cluster_{2};
};

TEST_P(DevicePrefetchOfJobs, ASharedJobsRowsAreOnOneDeviceEach) {
  const Dataset job = Dataset::Range(4000).Batch(8).Distribute(Job("shared"));
  EXPECT_EQ(Together(ReadOnDevices(Gpus(4), job)), UpTo(4000));
}

TEST_P(DevicePrefetchOfJobs, ACoordinatedJobsConsumersAreDevices) {
  const Dataset job = Dataset::Range(4000).Batch(8).Distribute(Job("coordinated", 4));
  InputOptions options;
  options.partial_batches = PartialBatches::kDrop;
  const std::vector<Rows> rows = ReadOnDevices(Gpus(4), job, options);
  for (const Rows& of : rows) EXPECT_GE(of.size(), 4000u / 4 - 3 * 8);
  EXPECT_GE(Together(rows).size(), 4000u - 3 * 8);
}

TEST_P(DevicePrefetchOfJobs, AWorkerThatGoesTakesNothingWithIt) {
  const Dataset job = Dataset::Range(8000).Batch(8).Distribute(Job("moved"));
  const std::vector<Rows> rows = ReadOnDevices(Gpus(2), job, {}, [&](int64_t step) {
    if (step == 100) cluster_.RemoveWorker(0);
  });
  EXPECT_EQ(Together(rows), UpTo(8000));
}

// Tensor parallelism: the bytes over the link do not grow with the number of ranks.
TEST_P(DevicePrefetchOfJobs, RanksThatShareElementsReadThemOnce) {
  std::vector<int64_t> bytes;
  for (const int ranks : {1, 2, 4}) {
    InputOptions options;
    options.replicas_per_element = ranks;
    const Dataset job =
        Dataset::Range(40'000).Batch(1000).Distribute(Job(absl::StrCat("ranks-", ranks)));
    const int64_t before = SentBytes();
    const std::vector<Rows> rows = ReadOnDevices(Gpus(ranks), job, options);
    bytes.push_back(SentBytes() - before);
    EXPECT_EQ(Sorted(rows[0]), UpTo(40'000));
    EXPECT_THAT(rows, Each(rows[0]));
  }
  EXPECT_GE(bytes[0], 40'000 * 8);
  // The last batches of partitions are short, and the workers decide where partitions end.
  EXPECT_NEAR(static_cast<double>(bytes[1]), static_cast<double>(bytes[0]), 0.05 * bytes[0]);
  EXPECT_NEAR(static_cast<double>(bytes[2]), static_cast<double>(bytes[0]), 0.05 * bytes[0]);
}

INSTANTIATE_TEST_SUITE_P(Protocols, DevicePrefetchOfJobs, ::testing::Values("tcp", "shm"));

}  // namespace
}  // namespace penstock
