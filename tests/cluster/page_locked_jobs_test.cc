// SPDX-License-Identifier: Apache-2.0
// A job's elements that go to devices are received in page-locked memory.
#include "tests/cluster/cluster.h"
#include "tests/dataplane/replica/fake_gpus.h"

namespace penstock {
namespace {

class PageLockedJobs : public ::testing::TestWithParam<std::string> {
 protected:
  RunningGpus running_;
  Cluster cluster_{1};
};

TEST_P(PageLockedJobs, LargeElementsLieWhereDevicesReadByThemselves) {
  DistributeOptions options = cluster_.Options(ShardingPolicy::kDynamic, "job");
  options.data_transfer_protocol = GetParam();
  const Dataset job = Dataset::Range(1'000'000).Batch(100'000).Distribute(options);
  const ReplicaGroup group = ReplicaGroup::Mirrored({"GPU:0"}).value();
  DistributedIterator it = DistributeDataset(group, job)->MakeIterator().value();
  for (int step = 0; step < 10; ++step) EXPECT_TRUE(it.GetNext().ok());
  ASSERT_EQ(it.CopyStats().size(), 1u);
  EXPECT_EQ(it.CopyStats()[0].elements, 10);
  EXPECT_EQ(it.CopyStats()[0].not_page_locked, 0);
  EXPECT_EQ(it.CopyStats()[0].gpu_direct, "not asked for");  // no NIC writes to the device
}

INSTANTIATE_TEST_SUITE_P(Protocols, PageLockedJobs, ::testing::Values("tcp", "grpc"));

}  // namespace
}  // namespace penstock
