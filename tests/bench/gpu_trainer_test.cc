// SPDX-License-Identifier: Apache-2.0
// The bench's trainer with its elements on a fake GPU.
#include "bench/trainers/gpu_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/workloads/buffers.h"
#include "dataplane/transfer/transport.h"
#include "tests/cluster/cluster.h"
#include "tests/dataplane/replica/fake_gpus.h"
#include "tests/dataplane/transfer/ends.h"

namespace penstock::bench {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Workload T1-0 off by one: each element has the contents of the next one.
class Shifted final : public Buffers {
 public:
  Shifted() : Buffers("shifted", "", Touch::kEveryPage, /*cold=*/false) {}
  Dataset MakeDataset(const Setup& setup) const override {
    return Buffers::MakeDataset(setup).Skip(1);
  }
};

class GpuTrainer : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Side>> Start(const Workload& workload,
                                              const std::string& device = "GPU:0",
                                              const std::string& protocol = "shm") {
    return StartGpuTrainer(workload, {.workload = std::string(workload.name()),
                                      .protocol = protocol,
                                      .element_bytes = 65'536,
                                      .device = device,
                                      .window_s = 0.05,
                                      .source_bytes = 1 << 20,
                                      .service = cluster_.service()});
  }

  RunningGpus running_;
  Cluster cluster_{1};
};

TEST_F(GpuTrainer, CountsElementsOnTheGpu) {
  const absl::StatusOr<std::unique_ptr<Side>> trainer = Start(T1Zero());
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  const absl::StatusOr<Done> done = (*trainer)->Read(0.1);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_GT(done->elements, 0);
  EXPECT_EQ(done->bytes, static_cast<int64_t>(done->elements) * 65'536);
  EXPECT_GE(done->seconds, 0.1);
}

TEST_F(GpuTrainer, OverUcxItSaysWhetherANicWritesIntoTheGpu) {
  const absl::StatusOr<transfer::Transport*> ucx = transfer::FindTransport("ucx");
  if (!ucx.ok() || !transfer::Worker(**ucx).listening()) GTEST_SKIP() << "ucx does not run here";
  const absl::StatusOr<std::unique_ptr<Side>> trainer = Start(T1Zero(), "GPU:0", "ucx");
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  EXPECT_THAT((*trainer)->lanes(), Contains(StartsWith("GPUDirect off: ")));
}

TEST_F(GpuTrainer, TheContentsOfAnotherElementAreDataLoss) {
  const absl::StatusOr<std::unique_ptr<Side>> trainer = Start(Shifted());
  EXPECT_TRUE(absl::IsDataLoss(trainer.status())) << trainer.status();
}

TEST_F(GpuTrainer, ADeviceThatIsNotThereIsNamed) {
  EXPECT_THAT(Start(T1Zero(), "GPU:7").status().message(), HasSubstr("GPU:7"));
  EXPECT_THAT(Start(T1Zero(), "CPU:0").status().message(), HasSubstr("CPU:0 is no GPU"));
}

}  // namespace
}  // namespace penstock::bench
