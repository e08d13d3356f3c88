// SPDX-License-Identifier: Apache-2.0
// Several jobs at once: namespaces, quotas, garbage collection, and jobs whose readers share
// windows. Driven by hand over real streams.
#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/server.h"
#include "tests/control/dispatcher/peers.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const CallOptions kOnce = {.timeout = absl::Seconds(20)};

class ManyJobs : public ::testing::Test {
 protected:
  void Start(DispatcherConfig config = {}) {
    auto server = DispatchServer::Start(std::move(config));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    auto stub = DispatcherStub::Make(server_->target());
    ASSERT_TRUE(stub.ok()) << stub.status();
    stub_ = *std::move(stub);
  }
  absl::StatusOr<RegisterDatasetAnswer> Register(const std::string& name_space,
                                                 const std::string& id = "",
                                                 Cardinality cardinality = kInfinite) {
    DatasetSummary summary{.fingerprint = 11,
                           .cardinality = cardinality,
                           .nodes = {{"Range#0", 1}},
                           .plan = {{.node = "Range#0", .count = 100}}};
    return stub_->GetOrRegisterDataset({.dataset_id = id,
                                        .name_space = name_space,
                                        .definition = "definition",
                                        .summary = summary},
                                       kOnce);
  }
  absl::StatusOr<JobAnswer> Job(const std::string& name, const std::string& dataset_id,
                                const JobTerms& terms, const std::string& name_space = "") {
    return stub_->GetOrCreateJob(
        {.name = name, .dataset_id = dataset_id, .terms = terms, .name_space = name_space}, kOnce);
  }
  // Makes a job on a dataset of its own, in the default namespace.
  JobAnswer AJob(const JobTerms& terms) {
    absl::StatusOr<JobAnswer> job = Job("job", Register("")->dataset_id, terms);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.value_or(JobAnswer());
  }

  std::unique_ptr<DispatchServer> server_;
  std::unique_ptr<DispatcherStub> stub_;
};

// --- Namespaces --------------------------------------------------------------------

TEST_F(ManyJobs, OfTwoNamespacesDoNotSeeEachOther) {
  Start();
  EXPECT_EQ(Register("")->dataset_id, "1000");
  EXPECT_EQ(Register("vision")->dataset_id, "vision/1001");
  EXPECT_EQ(Register("vision")->dataset_id, "vision/1001");  // equal within its own namespace
  EXPECT_EQ(Register("vision", "vision/digits")->dataset_id, "vision/digits");
  const JobAnswer plain = *Job("resnet", "1000", {});
  const JobAnswer other = *Job("vision/resnet", "vision/1001", {}, "vision");
  EXPECT_NE(plain.job, other.job);
  EXPECT_EQ(Job("vision/resnet", "1000", {}, "vision").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Job("", "vision/1001", {}, "vision")->name.rfind("vision/anonymous_job_", 0), 0u);
}

TEST_F(ManyJobs, ANameOfAnotherNamespaceIsRefused) {
  Start();
  ASSERT_TRUE(Register("").ok());
  const absl::Status job = Job("vision/resnet", "1000", {}).status();
  EXPECT_EQ(job.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(job.message()), HasSubstr("not in namespace 'default'"));
  EXPECT_EQ(Register("vision", "audio/x").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Register("a/b").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ManyJobs, AreCancelledAndRemovedByTheirNamespacesName) {
  Start();
  ASSERT_TRUE(Register("vision").ok());
  ASSERT_TRUE(Job("vision/resnet", "vision/1000", {}, "vision").ok());
  EXPECT_EQ(stub_->CancelJob("resnet", kOnce).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(stub_->CancelJob("vision/resnet", kOnce).ok());
  EXPECT_TRUE(stub_->RemoveJob("vision/resnet", kOnce).ok());
  EXPECT_TRUE(stub_->UnregisterDataset("vision/1000", kOnce).ok());
}

// --- Quotas ------------------------------------------------------------------------

TEST_F(ManyJobs, ReadersShareTheBytesOfTheirQuota) {
  Start();
  const JobAnswer job = AJob({.quota = {.max_bytes_in_flight = 1000}});
  HandWorker worker(*stub_, 1);
  HandClient first(*stub_, job, 5);
  EXPECT_EQ(first.Next<Membership>().max_bytes_in_flight, 1000);
  HandClient second(*stub_, job, 6);
  second.Next<Welcome>();
  const auto halved = [](const Membership& its) { return its.max_bytes_in_flight == 500; };
  first.NextThat<Membership>(halved);
  second.NextThat<Membership>(halved);
  second.Send(Leave{});
  first.NextThat<Membership>([](const Membership& its) { return its.max_bytes_in_flight == 1000; });
}

TEST_F(ManyJobs, AJobAtItsQuotaIsShownAsSuch) {
  Start();
  const JobAnswer job = AJob({.quota = {.max_bytes_in_flight = 1000}});
  HandClient client(*stub_, job, 5);
  client.Next<Welcome>();
  EXPECT_THAT(stub_->GetStatus(kOnce)->jobs[0].slowed_by, IsEmpty());
  client.Send(ClientHeartbeat{.counter = 1, .at_quota = true});
  client.Next<ClientHeartbeatAnswer>();
  EXPECT_EQ(stub_->GetStatus(kOnce)->jobs[0].slowed_by, "max_bytes_in_flight 1000");
  client.Send(ClientHeartbeat{.counter = 2});
  client.Next<ClientHeartbeatAnswer>();
  EXPECT_THAT(stub_->GetStatus(kOnce)->jobs[0].slowed_by, IsEmpty());
}

TEST_F(ManyJobs, ComputeNoMorePartitionsAtOnceThanTheirPermits) {
  Start();
  const JobAnswer job = AJob({.mode = ShardingPolicy::kDynamic, .quota = {.max_permits = 2}});
  HandWorker first(*stub_, 1, /*permits=*/4), second(*stub_, 2, /*permits=*/4);
  HandClient client(*stub_, job, 5);
  client.Next<Membership>();
  const DispatcherStatus status = *stub_->GetStatus(kOnce);
  EXPECT_EQ(status.jobs[0].iterations[0].partitions.size(), 2u);
  EXPECT_EQ(status.jobs[0].slowed_by, "max_permits 2");
}

// --- Collecting --------------------------------------------------------------------

// There is one iteration under a name and repetition, whatever was collected before.
TEST_F(ManyJobs, ACollectedJobDoesNotReturnWithARestart) {
  const std::string folder = ::testing::TempDir() + "/collected_journal";
  std::filesystem::remove_all(folder);
  Start({.work_dir = folder, .fault_tolerant_mode = true, .job_gc_timeout = absl::ZeroDuration()});
  const JobAnswer job = AJob({.mode = ShardingPolicy::kOff});
  {
    HandWorker worker(*stub_, 1);
    HandClient client(*stub_, job, 5);
    client.Next<Welcome>();
    client.Send(Leave{});
    client.Next<Left>();
  }
  while (!stub_->GetStatus(kOnce)->jobs.empty()) {
  }
  server_.reset();
  Start({.work_dir = folder, .fault_tolerant_mode = true});
  EXPECT_THAT(stub_->GetStatus(kOnce)->jobs, IsEmpty());
  const JobAnswer again = AJob({.mode = ShardingPolicy::kOff});
  EXPECT_NE(again.job, job.job);
  HandClient client(*stub_, again, 5);
  client.Next<Welcome>();
  server_.reset();
  Start({.work_dir = folder, .fault_tolerant_mode = true});
  const DispatcherStatus status = *stub_->GetStatus(kOnce);
  ASSERT_EQ(status.jobs.size(), 1u);
  EXPECT_EQ(status.jobs[0].iterations.size(), 1u);
}

TEST_F(ManyJobs, AnUnreadNamedJobIsCollectedAndRestarts) {
  Start({.job_gc_timeout = absl::ZeroDuration()});
  const JobAnswer job = AJob({.mode = ShardingPolicy::kOff});
  HandWorker worker(*stub_, 1);
  HandClient client(*stub_, job, 5);
  const Assign assign = worker.Next<Assign>();
  client.Send(Leave{});
  client.Next<Left>();
  client.Disconnect();
  EXPECT_EQ(worker
                .NextThat<Unassign>(
                    [&](const Unassign& its) { return its.of.partition == assign.of.partition; })
                .of.iteration,
            assign.of.iteration);
  while (!stub_->GetStatus(kOnce)->jobs.empty()) {
  }
  HandClient late(*stub_, job, 6);
  const absl::Status gone = late.Next<SessionError>().status;
  EXPECT_THAT(std::string(gone.message()), HasSubstr("job_gc_timeout"));
  const JobAnswer again = AJob({.mode = ShardingPolicy::kOff});
  EXPECT_FALSE(again.existed);
  EXPECT_NE(again.job, job.job);
}

TEST_F(ManyJobs, JobsThatReadersMayReturnToAreNotCollected) {
  Start({.job_gc_timeout = absl::ZeroDuration()});
  const std::string dataset = Register("")->dataset_id;
  const JobAnswer dynamic = *Job("dynamic", dataset, {.mode = ShardingPolicy::kDynamic});
  const JobAnswer committed = *Job("committed", dataset, {.ack_mode = AckMode::kOnCommit});
  const JobAnswer unread = *Job("unread", dataset, {});
  const JobAnswer read = *Job("read", dataset, {});
  for (const JobAnswer& job : {dynamic, committed, read}) {
    HandClient client(*stub_, job, 5);
    client.Next<Welcome>();
    client.Send(Leave{});
    client.Next<Left>();
  }
  std::vector<std::string> left;
  do {
    left.clear();
    const DispatcherStatus status = *stub_->GetStatus(kOnce);
    for (const JobStatus& job : status.jobs) left.push_back(job.name);
  } while (left.size() == 4);  // the others are in the same sweep as the one that goes
  EXPECT_THAT(left, testing::ElementsAre("dynamic", "committed", "unread"));
}

TEST_F(ManyJobs, DynamicOnesAreCollectedWhereTheConfigSaysSo) {
  Start({.job_gc_timeout = absl::ZeroDuration(), .gc_dynamic_sharding_jobs = true});
  const JobAnswer job = AJob({.mode = ShardingPolicy::kDynamic});
  HandClient client(*stub_, job, 5);
  client.Next<Welcome>();
  client.Send(Leave{});
  client.Next<Left>();
  client.Disconnect();
  while (!stub_->GetStatus(kOnce)->jobs.empty()) {
  }
}

// --- Waits ---------------------------------------------------------------------------

TEST_F(ManyJobs, NameTheirWaits) {
  Start();
  const JobAnswer job = AJob({});
  const auto waits_for = [&] { return stub_->GetStatus(kOnce)->jobs[0].iterations[0].waits_for; };
  HandClient client(*stub_, job, 5);
  client.Next<Welcome>();
  EXPECT_THAT(waits_for(), HasSubstr("a worker"));
  HandWorker worker(*stub_, 1);
  client.NextThat<Membership>(
      [](const Membership& its) { return !its.partitions.empty() && its.partitions[0].worker; });
  EXPECT_EQ(waits_for(), "");
  client.Send(Leave{});
  client.Next<Left>();
  EXPECT_EQ(waits_for(), "a reader");
}

// --- Shared windows ------------------------------------------------------------------

TEST_F(ManyJobs, AWindowIsSharedUnderANameWithoutEndAndOnce) {
  Start();
  const JobTerms cached{.cross_trainer_cache = true};
  const std::string endless = Register("")->dataset_id;
  EXPECT_THAT(std::string(Job("", endless, cached).status().message()), HasSubstr("named job"));
  const std::string finite = Register("", "finite", 10)->dataset_id;
  const absl::Status ends = Job("ends", finite, cached).status();
  EXPECT_EQ(ends.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(ends.message()), HasSubstr("cardinality 10"));
  const JobAnswer job = *Job("sweep", endless, cached);
  HandClient second(*stub_, job, 5, /*incarnation=*/1, /*repetition=*/1);
  const absl::Status repeated = second.Next<SessionError>().status;
  EXPECT_EQ(repeated.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(repeated.message()), HasSubstr("one repetition"));
  const absl::Status without = Job("sweep", endless, {}).status();
  EXPECT_EQ(without.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(without.message()),
              HasSubstr("existing cross-trainer cache: <yes>; got <no>"));
}

TEST_F(ManyJobs, WorkersForgetAReaderOfAWindowThatDies) {
  Start({.client_timeout = absl::Milliseconds(300)});
  const JobAnswer job =
      *Job("sweep", Register("")->dataset_id, JobTerms{.cross_trainer_cache = true});
  HandWorker worker(*stub_, 1);
  auto dies = std::make_unique<HandClient>(*stub_, job, 5);
  const PlacedPartition of = worker.Next<Assign>().of;
  dies.reset();
  const auto removed = worker.Next<RemoveReader>();
  EXPECT_EQ(removed.of, of);
  EXPECT_EQ(removed.client, ClientId(5));
}

}  // namespace
}  // namespace penstock::control
