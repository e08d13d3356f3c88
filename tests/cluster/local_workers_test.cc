// SPDX-License-Identifier: Apache-2.0
// Which workers a client reads from: those in its own process, in another one, and by tags.
#include <cstdlib>
#include <numeric>

#include "control/stub/dispatcher_stub.h"
#include "tests/cluster/worker_elsewhere.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Dataset Ten(const Cluster& cluster, TargetWorkers target,
            ShardingPolicy mode = ShardingPolicy::kOff, const std::string& job = "") {
  DistributeOptions options = cluster.Options(mode, job);
  options.target_workers = target;
  return Dataset::Range(10).Distribute(options);
}

constexpr auto kOnce = [](const std::vector<int64_t>& values) {
  return Sorted(values) == std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
};

TEST(TargetWorkers, LocalReadsTheWorkerInThisProcessAlone) {
  Cluster cluster(1);
  WorkerElsewhere elsewhere(cluster);
  EXPECT_TRUE(kOnce(ReadAll(Ten(cluster, TargetWorkers::kLocal))));
  EXPECT_TRUE(kOnce(ReadAll(Ten(cluster, TargetWorkers::kLocal, ShardingPolicy::kDynamic))));
  EXPECT_EQ(ReadAll(Ten(cluster, TargetWorkers::kAuto)).size(), 20);
  EXPECT_EQ(ReadAll(Ten(cluster, TargetWorkers::kAny)).size(), 20);
}

TEST(TargetWorkers, LocalGoesOverTheProtocolLocal) {
  Cluster cluster(1);
  DistributeOptions options = cluster.Options(ShardingPolicy::kOff, "local");
  options.target_workers = TargetWorkers::kLocal;
  options.data_transfer_protocol = "tcp";
  options.max_outstanding_requests = 4;
  absl::StatusOr<Iterator> it = Dataset::Range(int64_t{1} << 40).Distribute(options).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  auto stub = control::DispatcherStub::Make(cluster.service());
  ASSERT_TRUE(stub.ok()) << stub.status();
  std::vector<control::LinkStatus> links;
  while (links.empty() || links[0].counts.elements == 0) {
    ASSERT_TRUE(it->Next().ok());
    absl::StatusOr<control::DispatcherStatus> status =
        (*stub)->GetStatus({.timeout = absl::Minutes(1), .stop = {}});
    ASSERT_TRUE(status.ok()) << status.status();
    links = status->links;
  }
  EXPECT_EQ(links[0].counts.protocol, "local");
  EXPECT_EQ(links[0].counts.reason, "local: target_workers LOCAL");
}

TEST(TargetWorkers, AutoLeavesColocatedWorkersToTheirTrainers) {
  Cluster cluster(0);
  cluster.AddWorker({.worker_tags = {"cpu", "Colocated"}});
  WorkerElsewhere elsewhere(cluster, "colocated");
  EXPECT_TRUE(kOnce(ReadAll(Ten(cluster, TargetWorkers::kAuto))));
  EXPECT_EQ(ReadAll(Ten(cluster, TargetWorkers::kAny)).size(), 20);
}

TEST(TargetWorkers, LocalNeedsALocalWorker) {
  Cluster cluster(0);
  WorkerElsewhere elsewhere(cluster);
  absl::Status status = FirstError(Ten(cluster, TargetWorkers::kLocal));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Local reads require local"));
  status = FirstError(Ten(cluster, TargetWorkers::kLocal, ShardingPolicy::kData));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Static sharding policy DATA requires"));
}

TEST(TargetWorkers, ALocalWorkerThatStopsEarlyIsFollowedByAnother) {
  constexpr int64_t kCount = 2000;
  Cluster cluster(1);
  WorkerElsewhere elsewhere(cluster);  // no local worker for this client
  DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic);
  options.target_workers = TargetWorkers::kLocal;
  options.max_outstanding_requests = 8;
  absl::StatusOr<Iterator> it = Dataset::Range(kCount).Distribute(options).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  std::vector<int64_t> numbers;
  for (int i = 0; i < 100; ++i) {
    absl::StatusOr<std::optional<Element>> element = it->Next();
    ASSERT_TRUE(element.ok() && element->has_value()) << element.status();
    numbers.push_back((*element)->tensor(0).scalar<int64_t>());
  }
  cluster.RemoveWorker(0);
  cluster.AddWorker();
  for (int64_t number : ReadAll(*it)) numbers.push_back(number);
  std::vector<int64_t> all(kCount);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(Sorted(std::move(numbers)), all);
}

TEST(TargetWorkers, ReadersOfOneJobAgree) {
  Cluster cluster(1);
  absl::StatusOr<Iterator> first =
      Ten(cluster, TargetWorkers::kAny, ShardingPolicy::kOff, "one").MakeIterator();
  ASSERT_TRUE(first.ok() && first->Next().ok());
  const absl::Status status =
      FirstError(Ten(cluster, TargetWorkers::kLocal, ShardingPolicy::kOff, "one"));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("target workers"));
}

TEST(TargetWorkers, HaveNames) {
  EXPECT_EQ(*TargetWorkersFromName(""), TargetWorkers::kAuto);
  EXPECT_EQ(*TargetWorkersFromName("auto"), TargetWorkers::kAuto);
  EXPECT_EQ(*TargetWorkersFromName("Any"), TargetWorkers::kAny);
  EXPECT_EQ(*TargetWorkersFromName("LOCAL"), TargetWorkers::kLocal);
  EXPECT_EQ(TargetWorkersFromName("nearest").status().code(), absl::StatusCode::kInvalidArgument);
}

// --- Each trainer its shard ------------------------------------------------------

DispatcherConfig TwoOfThisHost(DeploymentMode deployment = DeploymentMode::kUnspecified) {
  DispatcherConfig config;
  config.worker_addresses = {"localhost:%port%", "localhost:%port%"};
  config.deployment_mode = deployment;
  return config;
}

TEST(LocalShards, LocalReadsTheShardOfTheLocalWorkersPlace) {
  Cluster cluster(1, TwoOfThisHost());
  WorkerElsewhere elsewhere(cluster);
  EXPECT_THAT(ReadAll(Ten(cluster, TargetWorkers::kLocal, ShardingPolicy::kData)),
              ElementsAre(0, 2, 4, 6, 8));
  EXPECT_TRUE(kOnce(ReadAll(Ten(cluster, TargetWorkers::kAuto, ShardingPolicy::kData))));
}

TEST(LocalShards, AutoIsLocalWhereWorkersAreColocated) {
  Cluster cluster(0, TwoOfThisHost(DeploymentMode::kColocated));
  WorkerElsewhere elsewhere(cluster);
  cluster.AddWorker();
  EXPECT_THAT(ReadAll(Ten(cluster, TargetWorkers::kAuto, ShardingPolicy::kData)),
              ElementsAre(1, 3, 5, 7, 9));
  EXPECT_EQ(ReadAll(Ten(cluster, TargetWorkers::kAuto, ShardingPolicy::kOff)).size(), 20);
}

// Another trainer with its own worker. The test below runs it in a process of its own.
constexpr char kServiceOfTrainer[] = "PENSTOCK_TEST_SERVICE";
TEST(TrainerElsewhere, ReadsItsShard) {
  const char* service = std::getenv(kServiceOfTrainer);
  if (service == nullptr) GTEST_SKIP() << "is run by LocalShards";
  absl::StatusOr<std::unique_ptr<WorkerServer>> worker =
      WorkerServer::Start({.dispatcher_address = service});
  ASSERT_TRUE(worker.ok()) << worker.status();
  const DistributeOptions options{.processing_mode = ShardingPolicy::kData,
                                  .service = service,
                                  .job_name = "both",
                                  .target_workers = TargetWorkers::kLocal};
  EXPECT_THAT(ReadAll(Dataset::Range(10).Distribute(options)), ElementsAre(1, 3, 5, 7, 9));
}

TEST(LocalShards, TwoTrainersUnderOneNameReadTheirOwn) {
  Cluster cluster(1, TwoOfThisHost());
  absl::StatusOr<Iterator> it =
      Ten(cluster, TargetWorkers::kLocal, ShardingPolicy::kData, "both").MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  std::string self = "/proc/self/exe", filter = "--gtest_filter=TrainerElsewhere.*";
  char* argv[] = {self.data(), filter.data(), nullptr};
  setenv(kServiceOfTrainer, cluster.service().c_str(), 1);
  pid_t other = -1;
  ASSERT_EQ(posix_spawn(&other, self.c_str(), nullptr, nullptr, argv, environ), 0);
  unsetenv(kServiceOfTrainer);
  EXPECT_THAT(ReadAll(*it), ElementsAre(0, 2, 4, 6, 8));
  int status = -1;
  waitpid(other, &status, 0);
  EXPECT_EQ(status, 0) << "what the other trainer read is above";
}

TEST(LocalShards, NeedTheListOfWorkers) {
  Cluster cluster(1);
  const absl::Status status =
      FirstError(Ten(cluster, TargetWorkers::kLocal, ShardingPolicy::kFileOrData));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("worker_addresses"));
}

TEST(DeploymentModes, HaveNames) {
  EXPECT_EQ(*DeploymentModeFromName(""), DeploymentMode::kUnspecified);
  EXPECT_EQ(*DeploymentModeFromName("colocated"), DeploymentMode::kColocated);
  EXPECT_EQ(*DeploymentModeFromName("REMOTE"), DeploymentMode::kRemote);
  EXPECT_EQ(*DeploymentModeFromName("Hybrid"), DeploymentMode::kHybrid);
  EXPECT_EQ(DeploymentModeFromName("both").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(WorkerTags, AreNotEmpty) {
  Cluster cluster(0);
  const absl::Status status =
      WorkerServer::Start({.dispatcher_address = cluster.service(), .worker_tags = {"a", ""}})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Worker tags cannot be empty"));
}

}  // namespace
}  // namespace penstock
