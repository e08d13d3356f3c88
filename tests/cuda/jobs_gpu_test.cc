// SPDX-License-Identifier: Apache-2.0
// Needs a real GPU: jobs whose elements a replica gets there, over each protocol. Without a GPU all
// of it is skipped, or fails if PENSTOCK_REQUIRE_GPU is set.
#include <functional>
#include <iostream>
#include <memory>
#include <optional>

#include "dataplane/transfer/transport.h"
#include "tests/cluster/cluster.h"
#include "tests/dataplane/memory/device_conformance.h"
#include "tests/dataplane/replica/on_device.h"
#include "tests/dataplane/transfer/ends.h"

namespace penstock {
namespace {

constexpr int64_t kBatch = 40'000;  // rows: elements of 320,000 bytes
constexpr int64_t kBatches = 60;
constexpr int64_t kRows = kBatches * kBatch;
constexpr int64_t kPartOfSteps = 10;

class JobsOnGpu : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    DeviceBackend& gpu = LinkedDeviceBackend();
    if (!gpu.Count().ok() && DeviceRequired()) FAIL() << DescribeDevices(gpu);
    if (!gpu.Count().ok()) GTEST_SKIP() << DescribeDevices(gpu);
    stream_ = gpu.MakeStream(0).value();  // UCX looks for a GPU in use when it is opened
    const absl::StatusOr<transfer::Transport*> transport = transfer::FindTransport(GetParam());
    if (!transport.ok()) GTEST_SKIP() << GetParam() << " is not built in";
    if (GetParam() == "ucx" && !transfer::Worker(**transport).listening())
      GTEST_SKIP() << "ucx does not run here";
    cluster_.emplace(0);
    for (int i = 0; i < 2; ++i) cluster_->AddWorker({.data_transfer_protocol = GetParam()});
  }

  DistributedDataset Distributed(bool deterministic = false) {
    DistributeOptions options = cluster_->Options(ShardingPolicy::kDynamic, "job");
    options.data_transfer_protocol = GetParam();
    options.max_outstanding_requests = 8;
    if (deterministic) options.delivery = DeterministicOrder();
    options.ack_mode = deterministic ? AckMode::kOnCommit : AckMode::kOnDelivery;
    const Dataset dataset = Dataset::Range(kRows).Batch(kBatch).Distribute(options);
    return *DistributeDataset(Gpus(1), dataset)->PrefetchToDevice(2);
  }

  // Reads at most that many steps and counts each row.
  void Read(DistributedIterator& it, int64_t most, const std::function<void()>& after_each = {}) {
    for (int64_t step = 0; step < most; ++step) {
      const absl::StatusOr<std::optional<DistributedValues>> values = it.Next();
      ASSERT_TRUE(values.ok()) << values.status();
      if (!values->has_value()) return;
      const DeviceElement& element = (*values)->on_device(0);
      ASSERT_EQ(LinkedDeviceBackend().KindOf(element.tensor(0).raw()).value(), MemoryKind::kDevice);
      for (const int64_t row : RowsOnDevice(element)) ++times_.at(static_cast<size_t>(row));
      if (after_each) after_each();
    }
  }
  void ExpectAllOnce() { EXPECT_EQ(times_, std::vector<int8_t>(kRows, 1)); }

  std::unique_ptr<DeviceStream> stream_;
  std::optional<Cluster> cluster_;
  std::vector<int8_t> times_ = std::vector<int8_t>(kRows);
};

TEST_P(JobsOnGpu, EveryRowComesOnce) {
  DistributedIterator it = Distributed().MakeIterator().value();
  Read(it, kRows);
  ExpectAllOnce();
  const std::vector<DeviceCopyStats> stats = it.CopyStats();
  ASSERT_EQ(stats.size(), 1u);
  // Each worker's last batch may be a partial one.
  EXPECT_GE(stats[0].elements + stats[0].direct, kBatches);
  std::cout << GetParam() << ": gpu_direct is " << stats[0].gpu_direct << "\n";
}

TEST_P(JobsOnGpu, AWorkerThatGoesTakesNothingWithIt) {
  DistributedIterator it = Distributed().MakeIterator().value();
  int step = 0;
  Read(it, kRows, [&] {
    if (++step == kPartOfSteps) cluster_->RemoveWorker(0);
  });
  ExpectAllOnce();
}

TEST_P(JobsOnGpu, AStateIsThatAfterTheStepGiven) {
  const DistributedDataset dataset = Distributed(/*deterministic=*/true);
  State state;
  {
    DistributedIterator it = dataset.MakeIterator().value();
    Read(it, kPartOfSteps);
    state = it.Save().value();
  }
  DistributedIterator it = dataset.MakeIterator().value();
  ASSERT_TRUE(it.Restore(state).ok());
  Read(it, kRows);
  ExpectAllOnce();
}

INSTANTIATE_TEST_SUITE_P(Over, JobsOnGpu, testing::Values("local", "shm", "ucx", "tcp", "grpc"),
                         [](const auto& protocol) { return protocol.param; });

}  // namespace
}  // namespace penstock
