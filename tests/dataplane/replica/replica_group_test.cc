// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>

#include "penstock/penstock.h"
#include "tests/eventually.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Variables = std::vector<std::pair<std::string, std::string>>;

// Sets the launchers' variables to the given ones and no others, for one test.
class Environment {
 public:
  explicit Environment(Variables set = {}) {
    for (const char* name :
         {"RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID", "SLURM_PROCID", "SLURM_NTASKS",
          "SLURM_JOB_ID", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE"})
      unsetenv(name);
    for (const auto& variable : set) setenv(variable.first.c_str(), variable.second.c_str(), 1);
    set_ = std::move(set);
  }
  ~Environment() {
    for (const auto& variable : set_) unsetenv(variable.first.c_str());
  }

 private:
  Variables set_;
};

TEST(DeviceNames, HaveAGrammar) {
  for (const char* name : {"GPU:1", "gpu:1", "/gpu:1", "/device:GPU:1", "device:gpu:1"}) {
    absl::StatusOr<Device> device = ParseDevice(name);
    ASSERT_TRUE(device.ok()) << name << device.status();
    EXPECT_EQ(*device, (Device{Device::Kind::kGpu, 1})) << name;
  }
  EXPECT_EQ(ParseDevice("CPU")->ToString(), "CPU:0");
  EXPECT_EQ(ParseDevice("/CPU:12")->ToString(), "CPU:12");
}

TEST(DeviceNames, WrongOnesTellTheGrammar) {
  for (const char* name : {"", "GPU:", "TPU:0", "GPU:-1", "GPU:1x", "GPU 1", "/job:a/GPU:0",
                           "GPU:0:1", "GPUX", "GPU:99999999999"}) {
    const absl::Status status = ParseDevice(name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr("/device:GPU:0")) << name;
  }
}

TEST(ReplicaGroupTest, MirroredHasAReplicaPerDevice) {
  absl::StatusOr<ReplicaGroup> group = ReplicaGroup::Mirrored({"CPU:0", "/cpu:1", "CPU:0"});
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->num_replicas_in_sync(), 3);
  EXPECT_EQ(group->num_local_replicas(), 3);
  EXPECT_EQ(group->num_processes(), 1);
  EXPECT_EQ(group->devices()[1].index, 1);
}

TEST(ReplicaGroupTest, MirroredWithoutNamesTakesAllThereAre) {
  absl::StatusOr<ReplicaGroup> group = ReplicaGroup::Mirrored();
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_GE(group->num_replicas_in_sync(), 1);
}

TEST(ReplicaGroupTest, IsReadFromTheEnvironmentOfEachLauncher) {
  for (const Variables& variables :
       {Variables{{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"TORCHELASTIC_RUN_ID", "run"}},
        Variables{{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "run"}},
        Variables{{"OMPI_COMM_WORLD_RANK", "2"},
                  {"OMPI_COMM_WORLD_SIZE", "4"},
                  {"PMIX_NAMESPACE", "run"}}}) {
    Environment environment(variables);
    absl::StatusOr<ReplicaGroup> group = ReplicaGroup::FromEnvironment();
    ASSERT_TRUE(group.ok()) << group.status();
    EXPECT_EQ(group->num_replicas_in_sync(), 4);
    EXPECT_EQ(group->num_local_replicas(), 1);
    EXPECT_EQ(group->first_replica(), 2);
    EXPECT_EQ(group->launch_id(), "run");
  }
}

TEST(ReplicaGroupTest, SeveralDevicesInEachProcessOfTheEnvironment) {
  Environment environment(Variables{{"RANK", "1"}, {"WORLD_SIZE", "3"}});
  absl::StatusOr<ReplicaGroup> group = ReplicaGroup::FromEnvironment({"CPU:0", "CPU:1"});
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->num_replicas_in_sync(), 6);
  EXPECT_EQ(group->first_replica(), 2);
  EXPECT_EQ(group->ToString(), "6 replica(s) in 3 process(es); here 2 on CPU:0, 3 on CPU:1");
}

TEST(ReplicaGroupTest, AnEnvironmentThatMakesNoSenseIsNamed) {
  {
    Environment none;
    const absl::Status status = ReplicaGroup::FromEnvironment().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("RANK and WORLD_SIZE"));
  }
  {
    Environment half(Variables{{"RANK", "1"}});
    EXPECT_THAT(std::string(ReplicaGroup::FromEnvironment().status().message()),
                HasSubstr("WORLD_SIZE must be a non-negative integer, but is not set"));
  }
  {
    Environment beyond(Variables{{"RANK", "4"}, {"WORLD_SIZE", "4"}});
    const absl::Status status = ReplicaGroup::FromEnvironment().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("RANK=4"));
  }
  {
    Environment word(Variables{{"RANK", "first"}, {"WORLD_SIZE", "4"}});
    EXPECT_THAT(std::string(ReplicaGroup::FromEnvironment().status().message()),
                HasSubstr("not 'first'"));
  }
}

TEST(ReplicaGroupTest, ByHandProcessesMayDiffer) {
  absl::StatusOr<ReplicaGroup> group = ReplicaGroup::Create(
      {.devices = {"CPU:0", "CPU:1"}, .replicas_of_process = {1, 2, 1}, .process = 1});
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->num_replicas_in_sync(), 4);
  EXPECT_EQ(group->first_replica(), 1);
  const absl::Status wrong =
      ReplicaGroup::Create({.devices = {"CPU:0"}, .replicas_of_process = {1, 2}, .process = 1})
          .status();
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("2 for process 1, which has 1 device(s)"));
  EXPECT_EQ(ReplicaGroup::Create({.devices = {}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReplicaGroup::Create({.replicas_of_process = {1}, .process = 1}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

ReplicaGroup Two() {
  return *ReplicaGroup::Mirrored({"CPU:0", "CPU:1"});
}

TEST(RunTest, CallsEachReplicaOnAThreadOfItsOwn) {
  std::atomic<int> inside = 0;
  absl::StatusOr<PerReplica<bool>> met = Two().Run(
      [&](int) {
        ++inside;
        EXPECT_TRUE(Eventually([&] { return inside == 2; }));  // only if both are inside at once
        return InReplicaFunction();
      },
      PerReplica<int>({1, 2}));
  ASSERT_TRUE(met.ok()) << met.status();
  EXPECT_TRUE((*met)[0] && (*met)[1]);
  EXPECT_FALSE(InReplicaFunction());
}

TEST(RunTest, GivesValuesInTheReplicasOrderAndTheFirstError) {
  const PerReplica<int> values({3, 4});
  absl::StatusOr<PerReplica<int>> squares =
      Two().Run([](int x) -> absl::StatusOr<int> { return x * x; }, values);
  ASSERT_TRUE(squares.ok()) << squares.status();
  EXPECT_THAT(std::vector<int>(squares->begin(), squares->end()), ElementsAre(9, 16));
  const absl::Status status = Two()
                                  .Run(
                                      [](int x) -> absl::StatusOr<int> {
                                        return absl::DataLossError(absl::StrCat("of ", x));
                                      },
                                      values)
                                  .status();
  EXPECT_EQ(status, absl::DataLossError("of 3"));
}

TEST(RunTest, RefusesToRunInsideAndOtherNumbersOfReplicas) {
  const ReplicaGroup group = Two();
  const PerReplica<int> values({1, 2});
  const absl::Status inside =
      group.Run([&](int) { return group.Run([](int x) { return x; }, values).status(); }, values);
  EXPECT_EQ(inside.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(group.Run([](int x) { return x; }, PerReplica<int>({1})).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ReduceTest, SumAndMeanOverReplicas) {
  const PerReplica<float> losses({0.1f, 0.3f});
  EXPECT_FLOAT_EQ(*Two().Reduce(ReduceOp::kSum, losses), 0.4f);
  EXPECT_FLOAT_EQ(*Two().Reduce(ReduceOp::kMean, losses), 0.2f);
}

TEST(ReduceTest, OverProcessesNeedsAConnectedGroup) {
  absl::StatusOr<ReplicaGroup> group = ReplicaGroup::Create({.replicas_of_process = {1, 1}});
  const absl::Status status = group->Reduce(ReduceOp::kSum, PerReplica<int>({1})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("Connect()"));
}

TEST(ValuesFromFunction, GetTheirReplica) {
  absl::StatusOr<ReplicaGroup> group = ReplicaGroup::Create(
      {.devices = {"CPU:0", "CPU:1"}, .replicas_of_process = {1, 2}, .process = 1});
  const PerReplica<int> values =
      DistributeValuesFromFunction(*group, [](const ValueContext& context) {
        return context.replica_id_in_sync_group * 10 + context.num_replicas_in_sync;
      });
  EXPECT_THAT(LocalResults(values), ElementsAre(13, 23));
  EXPECT_EQ(values.ToString(), "PerReplica:{\n  0: 13,\n  1: 23\n}");
  EXPECT_EQ(PerReplica<int>({7}).ToString(), "7");
}

TEST(InputContextTest, DividesTheGlobalBatchAndSaysWhichItIs) {
  const InputContext context{2, 1, 4};
  EXPECT_EQ(*context.GetPerReplicaBatchSize(8), 2);
  EXPECT_EQ(context.GetPerReplicaBatchSize(9).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(InputContext().ToString(), "InputContext(input pipeline id 0, total: 1)");
}

}  // namespace
}  // namespace penstock
