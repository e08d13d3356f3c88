// SPDX-License-Identifier: Apache-2.0
// Needs a real GPU and NCCL's library: a group of one rank, whose reductions run on the device.
// NCCL puts no two ranks on one GPU.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <array>
#include <memory>

#include "dataplane/memory/device/device.h"
#include "dataplane/replica/collective/collective.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/replica.h"
#include "tests/dataplane/memory/device_conformance.h"

namespace penstock::replica {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct UniqueId {
  std::array<char, 128> bytes;
};

class NcclOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    DeviceBackend& gpu = LinkedDeviceBackend();
    if (!gpu.Count().ok() && DeviceRequired()) FAIL() << DescribeDevices(gpu);
    if (!gpu.Count().ok()) GTEST_SKIP() << DescribeDevices(gpu);
    void* const library = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) GTEST_SKIP() << "libnccl.so.2 is not in LD_LIBRARY_PATH";
    const auto make_id = reinterpret_cast<int (*)(UniqueId*)>(::dlsym(library, "ncclGetUniqueId"));
    const auto start =
        reinterpret_cast<int (*)(void**, int, UniqueId, int)>(::dlsym(library, "ncclCommInitRank"));
    destroy_ = reinterpret_cast<int (*)(void*)>(::dlsym(library, "ncclCommDestroy"));
    ASSERT_TRUE(make_id && start && destroy_);
    UniqueId id;
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    ASSERT_EQ(make_id(&id), 0);
    ASSERT_EQ(start(&trainers_, 1, id, 0), 0);
  }
  void TearDown() override {
    if (trainers_ != nullptr) {
      EXPECT_EQ(destroy_(trainers_), 0);
    }
  }

  void* trainers_ = nullptr;
  int (*destroy_)(void*) = nullptr;
};

TEST_F(NcclOnGpu, ReducesAndGathers) {
  const NcclRanks ranks = CollectiveOfNccl(trainers_).value();
  EXPECT_EQ(ranks.device, 0);
  Collective& own = *ranks.own;
  EXPECT_EQ(own.rank(), 0);
  EXPECT_EQ(own.size(), 1);
  for (int64_t i = 0; i < 100; ++i) {
    for (const CollectiveOp op : {CollectiveOp::kSum, CollectiveOp::kMin, CollectiveOp::kMax})
      ASSERT_TRUE(own.Start(op, {i, -i, int64_t{1} << 40}).ok());
    for (int op = 0; op < 3; ++op)
      ASSERT_THAT(own.Finish().value(), ElementsAre(i, -i, int64_t{1} << 40));
  }
  EXPECT_THAT(own.AllGather("a state").value(), ElementsAre("a state"));
  EXPECT_THAT(own.AllGather("").value(), ElementsAre(""));
  EXPECT_TRUE(own.AsyncError().ok());
}

TEST_F(NcclOnGpu, IsSplitAndOutlivedByItsParts) {
  std::unique_ptr<Collective> part;
  {
    const NcclRanks ranks = CollectiveOfNccl(trainers_).value();
    part = ranks.own->Split(0).value();
  }
  ASSERT_TRUE(part->Start(CollectiveOp::kSum, {7}).ok());
  EXPECT_THAT(part->Finish().value(), ElementsAre(7));
}

TEST_F(NcclOnGpu, AnAbortGivesItsReasonAndSparesTheTrainersCommunicator) {
  {
    const NcclRanks ranks = CollectiveOfNccl(trainers_).value();
    ASSERT_TRUE(ranks.own->Start(CollectiveOp::kSum, {7}).ok());
    ranks.own->Abort(absl::UnavailableError("a replica is lost"));
    EXPECT_THAT(std::string(ranks.own->Finish().status().message()),
                HasSubstr("a replica is lost"));
    EXPECT_THAT(std::string(ranks.own->Start(CollectiveOp::kSum, {7}).message()),
                HasSubstr("a replica is lost"));
  }
  const NcclRanks again = CollectiveOfNccl(trainers_).value();
  ASSERT_TRUE(again.own->Start(CollectiveOp::kSum, {7}).ok());
  EXPECT_THAT(again.own->Finish().value(), ElementsAre(7));
}

TEST_F(NcclOnGpu, IsAReplicaOnItsDevice) {
  const ReplicaGroup group = ReplicaGroup::FromNccl(trainers_).value();
  EXPECT_EQ(group.ToString(), "1 replica(s) in 1 process(es); here 0 on GPU:0");
}

}  // namespace
}  // namespace penstock::replica
