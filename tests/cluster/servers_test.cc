// SPDX-License-Identifier: Apache-2.0
// Dispatcher and worker as objects: the effects of their configs and their answers.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "tests/cluster/cluster.h"
#include "tests/cluster/temporary_folder.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Servers, StartWithoutAConfig) {
  absl::StatusOr<std::unique_ptr<DispatchServer>> dispatcher = DispatchServer::Start();
  ASSERT_TRUE(dispatcher.ok()) << dispatcher.status();
  EXPECT_EQ((*dispatcher)->target(), absl::StrCat("grpc://localhost:", (*dispatcher)->port()));
  EXPECT_EQ((*dispatcher)->NumWorkers(), 0);
  absl::StatusOr<std::unique_ptr<WorkerServer>> worker =
      WorkerServer::Start({.dispatcher_address = (*dispatcher)->target()});
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ((*dispatcher)->NumWorkers(), 1);
  EXPECT_EQ((*worker)->address(), absl::StrCat("localhost:", (*worker)->port()));
  EXPECT_THAT(ReadAll(Dataset::Range(3).Distribute({.service = (*dispatcher)->target()})),
              ElementsAre(0, 1, 2));
  (*worker)->Stop();
  (*worker)->Stop();
  EXPECT_EQ((*dispatcher)->NumWorkers(), 0);
  (*dispatcher)->Stop();
  (*dispatcher)->Stop();
  EXPECT_TRUE((*dispatcher)->status().ok());
}

TEST(Servers, AStoppedDispatcherReleasesItsJournal) {
  TemporaryFolder folder;
  const DispatcherConfig config{.work_dir = folder.path()};
  absl::StatusOr<std::unique_ptr<DispatchServer>> first = DispatchServer::Start(config);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(DispatchServer::Start(config).status().code(), absl::StatusCode::kFailedPrecondition);
  (*first)->Stop();
  absl::StatusOr<std::unique_ptr<DispatchServer>> second = DispatchServer::Start(config);
  EXPECT_TRUE(second.ok()) << second.status();
  EXPECT_EQ((*first)->NumWorkers(), 0);
}

TEST(Servers, CountTheTasksThatTheyHave) {
  Cluster cluster(1);
  EXPECT_EQ(cluster.worker(0).NumTasks(), 0);
  DistributeOptions options = cluster.Options(ShardingPolicy::kOff);
  options.max_outstanding_requests = 2;
  absl::StatusOr<Iterator> it = Dataset::Range(1000).Distribute(options).MakeIterator();
  ASSERT_TRUE(it.ok() && it->Next().ok());
  EXPECT_EQ(cluster.worker(0).NumTasks(), 1);
}

TEST(Servers, AWorkerNeedsADispatcher) {
  EXPECT_EQ(WorkerServer::Start({}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Servers, SpeakGrpcAlone) {
  DispatcherConfig config;
  config.protocol = "ucx";
  absl::Status status = DispatchServer::Start(config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("known: grpc"));
  status = WorkerServer::Start({.dispatcher_address = "localhost:1", .protocol = "ucx"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
}

TEST(Servers, AWorkersAddressHasThePortBound) {
  Cluster cluster(0);
  cluster.AddWorker({.worker_address = "127.0.0.1:%port%"});
  EXPECT_EQ(cluster.worker(0).address(), absl::StrCat("127.0.0.1:", cluster.worker(0).port()));
  EXPECT_THAT(ReadAll(Dataset::Range(3).Distribute(cluster.Options(ShardingPolicy::kOff))),
              ElementsAre(0, 1, 2));
}

// The advertised address is used as it is: reading goes over it, or fails.
TEST(Servers, ElementsComeFromTheDataTransferAddress) {
  Cluster cluster(0);
  cluster.AddWorker({.data_transfer_address = "127.0.0.1:%dts_port%"});
  DistributeOptions options = cluster.Options(ShardingPolicy::kOff);
  options.data_transfer_protocol = "tcp";
  EXPECT_THAT(ReadAll(Dataset::Range(3).Distribute(options)), ElementsAre(0, 1, 2));
  cluster.RemoveWorker(0);
  cluster.AddWorker({.data_transfer_address = "nowhere.invalid:%dts_port%"});
  options.timeout = absl::Milliseconds(300);
  absl::StatusOr<Iterator> it = Dataset::Range(3).Distribute(options).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  EXPECT_THAT(std::string(it->Next().status().message()), HasSubstr("nowhere.invalid"));
}

TEST(Servers, TheDataTransferPortIsBound) {
  Cluster cluster(0);
  const int taken = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{
      .sin_family = AF_INET, .sin_port = 0, .sin_addr = {INADDR_ANY}, .sin_zero = {}};
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(taken, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(taken, 1), 0);
  ASSERT_EQ(::getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int port = ntohs(address.sin_port);
  const absl::Status status = WorkerServer::Start({.dispatcher_address = cluster.service(),
                                                   .data_transfer_protocol = "tcp",
                                                   .data_transfer_port = port})
                                  .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat(port)));
  ::close(taken);
}

TEST(Servers, RefuseConfigsThatMakeNoSense) {
  Cluster cluster(0);
  const auto refused = [&](WorkerConfig config, const std::string& field) {
    config.dispatcher_address = cluster.service();
    const absl::Status status = WorkerServer::Start(std::move(config)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(field));
  };
  refused({.data_transfer_port = 70000}, "data_transfer_port");
  refused({.shutdown_quiet_period = absl::Seconds(-1)}, "shutdown_quiet_period");
  DispatcherConfig listed;
  listed.worker_addresses = {"a", ""};
  EXPECT_EQ(DispatchServer::Start(listed).status().code(), absl::StatusCode::kInvalidArgument);
}

// --- Distribute beside Distribute ----------------------------------------------------

TEST(NestedDistribute, InsideAFunctionEachOpeningReadsForItself) {
  Cluster cluster(1);
  const DistributeOptions options = cluster.Options(ShardingPolicy::kOff);
  const Dataset nested =
      Dataset::Range(3).FlatMap([&](Expr) { return Dataset::Range(2).Distribute(options); });
  EXPECT_THAT(ReadAll(nested), ElementsAre(0, 1, 0, 1, 0, 1));
}

TEST(NestedDistribute, DoesNotMoveToWorkers) {
  Cluster cluster(1);
  const DistributeOptions options = cluster.Options(ShardingPolicy::kOff);
  const absl::Status status =
      Dataset::Range(3).Distribute(options).Batch(2).Distribute(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Distribute#1 is before it"));
}

// --- Names under which jobs are shared ---------------------------------------------

TEST(JobNames, TwoRegisteredDatasetsMayBeReadUnderOne) {
  Cluster cluster(1);
  for (int64_t count : {3, 4}) {
    absl::StatusOr<std::string> id = RegisterDataset(cluster.service(), Dataset::Range(count));
    ASSERT_TRUE(id.ok()) << id.status();
    absl::StatusOr<Dataset> read =
        FromDatasetId(*id, cluster.Options(ShardingPolicy::kDynamic, "name"));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(ReadAll(*read).size(), count);
    EXPECT_EQ(
        ReadAll(*FromDatasetId(*id, cluster.Options(ShardingPolicy::kDynamic, "name"))).size(), 0)
        << "the job is over";
  }
}

// The dispatcher's messages come by themselves; the hint only adds requests.
TEST(RefreshHint, IsAcceptedUnlessNegative) {
  Cluster cluster(1);
  DistributeOptions options = cluster.Options(ShardingPolicy::kOff);
  options.task_refresh_interval_hint = absl::Milliseconds(20);
  EXPECT_THAT(ReadAll(Dataset::Range(3).Distribute(options)), ElementsAre(0, 1, 2));
  options.task_refresh_interval_hint = absl::Milliseconds(-1);
  EXPECT_EQ(Dataset::Range(3).Distribute(options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock
