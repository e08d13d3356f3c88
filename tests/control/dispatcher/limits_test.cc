// SPDX-License-Identifier: Apache-2.0
// The limits of the jobs and datasets of one namespace together.
#include <algorithm>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/control/dispatcher/core_fixture.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

class LimitsTest : public CoreTest {
 protected:
  void StartWith(NamespaceLimits limits, std::map<std::string, NamespaceLimits> named = {}) {
    Start({.quotas = Quotas(limits, named)});
  }
  // Returns the error; OK if the request was granted.
  absl::Status Create(const std::string& name, const std::string& dataset, JobTerms terms = {},
                      const std::string& name_space = "") {
    absl::Status status;
    core_->GetOrCreateJob(
        {.name = name, .dataset_id = dataset, .terms = terms, .name_space = name_space},
        [&](const auto& answer) { status = answer.status(); });
    return status;
  }
  absl::Status RegisterBytes(const std::string& id, size_t bytes, bool replace = false) {
    absl::Status status;
    core_->RegisterDataset({.dataset_id = id,
                            .replace = replace,
                            .definition = std::string(bytes, 'x'),
                            .summary = {.fingerprint = ++random_}},
                           [&](const auto& answer) { status = answer.status(); });
    return status;
  }
  // The reader gets the only element of its repetition, and then the end.
  void ReadToTheEnd(const Reader& reader, const Worker& worker) {
    const auto assign = worker.inbox->Take<Assign>();
    ASSERT_TRUE(assign.has_value());
    const PartitionId partition = assign->of.partition;
    core_->OnMessage(worker.peer, Ended{assign->of, 1});
    core_->OnMessage(reader.peer, Report{{{.partition = partition,
                                           .placement = assign->of.placement,
                                           .delivered = IndexSet::Of(0, 1)}}});
    core_->OnMessage(reader.peer, Commit{1, {{0, {{partition, IndexSet::Of(0, 1)}}}}});
    EXPECT_TRUE(reader.inbox->Take<End>().has_value());
  }
  // The reader answers that it has received nothing of the partitions that move.
  void AnswerFences(const Reader& reader) {
    while (const auto fence = reader.inbox->Take<Fence>())
      core_->OnMessage(reader.peer, FenceAnswer{{fence->partition, fence->placement, {}, {}}});
  }
  // Returns how many partitions of the job's first iteration have a worker.
  int64_t AtWork(size_t job) const {
    const auto partitions = Status().jobs.at(job).iterations.at(0).partitions;
    return std::ranges::count_if(partitions, [](const auto& its) { return bool{its.worker}; });
  }
  // Describes the wait of the job's first iteration.
  std::string WaitsFor(size_t job) const {
    return Status().jobs.at(job).iterations.at(0).waits_for;
  }
  static void ExpectRefused(const absl::Status& status, const std::string& words) {
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }
};

TEST_F(LimitsTest, Jobs) {
  StartWith({.jobs = 2});
  const std::string id = Register(1);
  ASSERT_TRUE(Create("x", id).ok());
  ASSERT_TRUE(Create("y", id).ok());
  ASSERT_TRUE(Create("y", id).ok());  // there already
  ExpectRefused(Create("z", id), "namespace default has 2 of 2 jobs (max_jobs_per_namespace)");
  ExpectRefused(Create("", id), "2 of 2 jobs");
  EXPECT_EQ(events_->WaitFor("refused", absl::ZeroDuration()).name, "refused");
  std::string in_v;
  core_->RegisterDataset({.name_space = "v", .definition = "d", .summary = {.fingerprint = 2}},
                         [&](const auto& answer) { in_v = answer->dataset_id; });
  EXPECT_TRUE(Create("v/z", in_v, {}, "v").ok());  // each namespace has its own
  core_->CancelJob("x", [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
  EXPECT_TRUE(Create("z", id).ok());
}

TEST_F(LimitsTest, ANamespaceMayHaveLimitsOfItsOwn) {
  StartWith({.jobs = 1}, {{"v", {.jobs = 2}}});
  std::string in_v;
  core_->RegisterDataset({.name_space = "v", .definition = "d", .summary = {.fingerprint = 2}},
                         [&](const auto& answer) { in_v = answer->dataset_id; });
  EXPECT_TRUE(Create("v/x", in_v, {}, "v").ok());
  EXPECT_TRUE(Create("v/y", in_v, {}, "v").ok());
  ExpectRefused(Create("v/z", in_v, {}, "v"),
                "namespace v has 2 of 2 jobs (max_jobs in [namespaces.v])");
  const std::string id = Register(1);
  EXPECT_TRUE(Create("x", id).ok());
  ExpectRefused(Create("y", id), "has 1 of 1 jobs (max_jobs_per_namespace)");
}

TEST_F(LimitsTest, ALowerLimitEndsNothing) {
  StartWith({});
  const JobAnswer x = Job("x", Register(1), {});
  const JobAnswer y = Job("y", x.dataset_id, {});
  const Worker worker = Work(1);
  const Reader of_x = Come(x, 0, 1);
  const Reader of_y = Come(y, 0, 2);
  Reopen({.quotas = Quotas({.jobs = 1, .partitions = 1, .clients = 1})});
  ExpectRefused(Create("z", x.dataset_id), "has 2 of 1 jobs");
  EXPECT_TRUE(Create("x", x.dataset_id).ok());
  const Worker again = Work(1);
  EXPECT_TRUE(Come(x, 0, 1).inbox->Take<Welcome>().has_value());
  EXPECT_TRUE(Come(y, 0, 2).inbox->Take<Welcome>().has_value());
  ExpectRefused(Come(x, 0, 3).inbox->Take<SessionError>().value().status, "has 2 of 1 clients");
}

TEST_F(LimitsTest, BytesOfDatasets) {
  StartWith({.dataset_bytes = 100});
  ASSERT_TRUE(RegisterBytes("x", 60).ok());
  ExpectRefused(RegisterBytes("y", 41),
                "namespace default has 60 of 100 bytes of datasets, and this one has 41 "
                "(max_dataset_bytes_per_namespace)");
  EXPECT_TRUE(RegisterBytes("y", 40).ok());
  EXPECT_TRUE(RegisterBytes("x", 59, /*replace=*/true).ok());  // in place of its 60
  ExpectRefused(RegisterBytes("z", 2), "has 99 of 100 bytes");
}

TEST_F(LimitsTest, NamesOfFilesAreBytesOfTheirDataset) {
  StartWith({.dataset_bytes = 10'000});
  absl::Status status;
  core_->RegisterDataset(
      {.definition = "d", .summary = {.plan = {{.files = std::vector<std::string>(1000)}}}},
      [&](const auto& answer) { status = answer.status(); });
  ExpectRefused(status, "namespace default has 0 of 10000 bytes");
}

TEST_F(LimitsTest, BytesOfReplacedDatasetsThatJobsRead) {
  StartWith({.dataset_bytes = 100});
  ASSERT_TRUE(RegisterBytes("x", 60).ok());
  ASSERT_TRUE(Create("first", "x").ok());
  ASSERT_TRUE(Create("second", "x").ok());
  ExpectRefused(RegisterBytes("x", 41, /*replace=*/true), "has 60 of 100 bytes");
  EXPECT_TRUE(RegisterBytes("x", 40, /*replace=*/true).ok());
  ExpectRefused(RegisterBytes("y", 1), "has 100 of 100 bytes");
  for (const std::string job : {"first", "second"}) {
    core_->CancelJob(job, [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
    core_->RemoveJob(job, [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
  }
  EXPECT_TRUE(RegisterBytes("y", 1).ok());
}

TEST_F(LimitsTest, Clients) {
  StartWith({.clients = 2});
  const JobAnswer x = Job("x", Register(1), {});
  const JobAnswer y = Job("y", x.dataset_id, {});
  const Worker worker = Work(1);
  Reader first = Come(x, 0, 1);
  Reader second = Come(y, 0, 2);
  EXPECT_FALSE(first.inbox->Take<SessionError>().has_value());
  EXPECT_FALSE(second.inbox->Take<SessionError>().has_value());
  Reader third = Come(x, 0, 3);
  ExpectRefused(third.inbox->Take<SessionError>().value().status,
                "namespace default has 2 of 2 clients (max_clients_per_namespace)");
  core_->OnClosed(first.peer);  // its connection breaks, and it returns
  Reader back = Come(x, 0, 1);
  EXPECT_FALSE(back.inbox->Take<SessionError>().has_value());
  Go(second);
  Reader fourth = Come(x, 0, 4);
  EXPECT_FALSE(fourth.inbox->Take<SessionError>().has_value());
}

TEST_F(LimitsTest, AClientOfEachJobCountsThoughTheirIdsAreEqual) {
  StartWith({.clients = 1});
  const JobAnswer x = Job("x", Register(1), {});
  const JobAnswer y = Job("y", x.dataset_id, {});
  const Worker worker = Work(1);
  const Reader first = Come(x, 0, 1);
  ASSERT_FALSE(first.inbox->Take<SessionError>().has_value());
  ExpectRefused(Come(y, 0, 1).inbox->Take<SessionError>().value().status, "has 1 of 1 clients");
}

// Returning to one repetition does not open the next one.
TEST_F(LimitsTest, AClientThatLeftHasNoPlaceInTheNextRepetition) {
  StartWith({.clients = 1});
  const JobAnswer x = Job("x", Register(1), {});
  const JobAnswer y = Job("y", x.dataset_id, {});
  const Worker worker = Work(1);
  Reader reader = Come(x, 0, 1);
  Go(reader);
  Reader other = Come(y, 0, 2);
  ASSERT_FALSE(other.inbox->Take<SessionError>().has_value());
  const Reader back = Come(x, 0, 1);
  EXPECT_FALSE(back.inbox->Take<SessionError>().has_value());
  const Reader next = Come(x, 1, 1);
  ASSERT_TRUE(next.inbox->finished.has_value());
  EXPECT_TRUE(absl::IsAborted(*next.inbox->finished)) << *next.inbox->finished;
  Go(other);
  EXPECT_TRUE(Come(x, 1, 1).inbox->Take<Welcome>().has_value());
}

TEST_F(LimitsTest, AClientThatLeftIsStillKnown) {
  StartWith({.clients = 1});
  const JobAnswer x = Job("x", Register(1), {});
  const JobAnswer y = Job("y", x.dataset_id, {});
  const Worker worker = Work(1);
  Reader reader = Come(x, 0, 1);
  Go(reader);
  Reader other = Come(y, 0, 2);
  ASSERT_FALSE(other.inbox->Take<SessionError>().has_value());
  EXPECT_FALSE(Come(x, 0, 1).inbox->Take<SessionError>().has_value());
  ExpectRefused(Come(x, 0, 3).inbox->Take<SessionError>().value().status, "of 1 clients");
}

TEST_F(LimitsTest, AClientBetweenRepetitionsWaitsForAPlace) {
  StartWith({.clients = 1});
  const JobAnswer x = Job("x", Register(1), {});
  const JobAnswer y = Job("y", x.dataset_id, {});
  Worker worker = Work(1);
  Reader reader = Come(x, 0, 1);
  ReadToTheEnd(reader, worker);
  Go(reader);
  Reader other = Come(y, 0, 2);
  ASSERT_FALSE(other.inbox->Take<SessionError>().has_value());

  Reader again = Come(x, 0, 1);  // for the end
  EXPECT_FALSE(again.inbox->Take<SessionError>().has_value());
  core_->OnClosed(again.peer);
  core_->Sweep();
  const Reader next = Come(x, 1, 1);
  EXPECT_FALSE(next.inbox->Take<SessionError>().has_value());
  ASSERT_TRUE(next.inbox->finished.has_value());
  EXPECT_TRUE(absl::IsAborted(*next.inbox->finished)) << *next.inbox->finished;
  Go(other);
  EXPECT_TRUE(Come(x, 1, 1).inbox->Take<Welcome>().has_value());
}

TEST_F(LimitsTest, OnlyAReaderOfTheRepetitionBeforeNeedsNoPlaceInTheNext) {
  StartWith({.clients = 1});
  const JobAnswer x = Job("x", Register(1), {});
  const JobAnswer y = Job("y", x.dataset_id, {});
  Worker worker = Work(1);
  Reader reader = Come(x, 0, 1);
  ReadToTheEnd(reader, worker);
  const Reader other = Come(y, 0, 2);
  ASSERT_TRUE(other.inbox->Take<Welcome>().has_value());

  const Reader late = Come(x, 0, 3);  // for the end
  ASSERT_TRUE(late.inbox->Take<End>().has_value());
  const Reader without_place = Come(x, 1, 3);
  ASSERT_TRUE(without_place.inbox->finished.has_value());
  EXPECT_TRUE(absl::IsAborted(*without_place.inbox->finished)) << *without_place.inbox->finished;
  EXPECT_TRUE(Come(x, 1, 1).inbox->Take<Welcome>().has_value());
}

TEST_F(LimitsTest, PartitionsBeyondTheLimitWait) {
  StartWith({.partitions = 1});
  const JobAnswer x = Job("x", Register(1), {});
  const JobAnswer y = Job("y", x.dataset_id, {});
  Worker worker = Work(1);
  const Reader of_x = Come(x, 0, 1);
  const auto first = worker.inbox->Take<Assign>();
  ASSERT_TRUE(first.has_value());
  const Reader of_y = Come(y, 0, 2);
  Pass(absl::Seconds(1), absl::Milliseconds(100));
  EXPECT_FALSE(worker.inbox->Take<Assign>().has_value());
  EXPECT_THAT(WaitsFor(1), HasSubstr("namespace default has 1 of 1 partitions "
                                     "(max_partitions_per_namespace)"));
  core_->OnMessage(worker.peer, Ended{first->of, 0});
  core_->Sweep();
  EXPECT_TRUE(worker.inbox->Take<Assign>().has_value());
  EXPECT_THAT(WaitsFor(1), testing::Not(HasSubstr("max_partitions")));
}

TEST_F(LimitsTest, AShareOfTheWorkersGrowsWithThem) {
  StartWith({.worker_percent = 50});
  const Worker first = Work(1, /*permits=*/4);
  const Reader reader = Come(Job("x", Register(1), {.mode = ShardingPolicy::kDynamic}), 0, 1);
  EXPECT_EQ(AtWork(0), 2);
  EXPECT_THAT(WaitsFor(0), HasSubstr("2 of 2 partitions, 50 % of 4 permits"));
  const Worker second = Work(2, /*permits=*/2);
  core_->Sweep();
  EXPECT_EQ(AtWork(0), 3);
  core_->OnMessage(second.peer, Drain{});
  core_->Sweep();
  AnswerFences(reader);
  core_->Sweep();
  EXPECT_EQ(AtWork(0), 2);
}

TEST_F(LimitsTest, AJobTakesThePlaceOfOneWithALowerPriority) {
  StartWith({.partitions = 1});
  const std::string id = Register(1);
  const JobAnswer x = Job("x", id, {});
  const JobAnswer y = Job("y", id, {.share = {.priority = 1}});
  Worker worker = Work(1);
  const Reader of_x = Come(x, 0, 1);
  const auto first = worker.inbox->Take<Assign>();
  ASSERT_TRUE(first.has_value());
  const Reader of_y = Come(y, 0, 2);
  EXPECT_FALSE(worker.inbox->Take<Assign>().has_value());
  core_->Sweep();
  EXPECT_EQ(worker.inbox->Take<Unassign>().value().of, first->of);
  core_->Sweep();
  const auto second = worker.inbox->Take<Assign>();
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->job, y.job);
  AnswerFences(of_x);
  Pass(absl::Seconds(3), absl::Milliseconds(100));
  EXPECT_FALSE(worker.inbox->Take<Assign>().has_value());  // it does not go back
  core_->OnMessage(worker.peer, Ended{second->of, 0});
  core_->Sweep();
  const auto third = worker.inbox->Take<Assign>();
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(third->job, x.job);
}

TEST_F(LimitsTest, TheWaitingJobWithTheHighestPriorityIsNext) {
  StartWith({.partitions = 1});
  const std::string id = Register(1);
  Worker worker = Work(1);
  std::vector<Reader> readers = {Come(Job("first", id, {.share = {.priority = 9}}), 0, 1)};
  const auto first = worker.inbox->Take<Assign>();
  ASSERT_TRUE(first.has_value());
  std::vector<JobId> next;
  for (const int64_t priority : {1, 3, 2}) {
    const JobAnswer job = Job(absl::StrCat("of_", priority), id, {.share = {.priority = priority}});
    readers.push_back(Come(job, 0, 2));
    next.push_back(job.job);
  }
  PlacedPartition at_work = first->of;
  for (const size_t expected : {1, 2, 0}) {
    core_->OnMessage(worker.peer, Ended{at_work, 0});
    core_->Sweep();
    const auto assign = worker.inbox->Take<Assign>();
    ASSERT_TRUE(assign.has_value());
    EXPECT_EQ(assign->job, next[expected]);
    EXPECT_FALSE(worker.inbox->Take<Assign>().has_value());
    at_work = assign->of;
  }
}

TEST_F(LimitsTest, JobsOfOnePriorityShareByTheirWeights) {
  for (const auto& [weight, of_first, of_second] : {std::tuple(1, 2, 2), std::tuple(3, 1, 3)}) {
    StartWith({.partitions = 4});
    const std::string id = Register(1);
    const Worker worker = Work(1, /*permits=*/4);
    const Reader first = Come(Job("x", id, {.mode = ShardingPolicy::kDynamic}), 0, 1);
    EXPECT_EQ(AtWork(0), 4);
    const Reader second =
        Come(Job("y", id, {.mode = ShardingPolicy::kDynamic, .share = {.weight = weight}}), 0, 2);
    EXPECT_EQ(AtWork(1), 0);
    for (int i = 0; i < 6; ++i) {
      Pass(absl::Seconds(1), absl::Milliseconds(100));
      EXPECT_LE(AtWork(1), i + 2);  // one at a time
      AnswerFences(first);
    }
    EXPECT_EQ(AtWork(0), of_first);
    EXPECT_EQ(AtWork(1), of_second);
  }
}

TEST_F(LimitsTest, ReadersOfAJobAgreeOnItsShare) {
  StartWith({});
  const std::string id = Register(1);
  const JobTerms terms = {.share = {.weight = 3, .priority = 4}};
  ASSERT_TRUE(Create("x", id, terms).ok());
  EXPECT_TRUE(Create("x", id, terms).ok());
  const absl::Status other = Create("x", id);
  EXPECT_TRUE(absl::IsInvalidArgument(other)) << other;
  EXPECT_THAT(std::string(other.message()),
              HasSubstr("existing weight: <3>; got <1>; existing priority: <4>; got <0>"));
  Worker worker = Work(1);
  const Reader reader = Come(Job("x", id, terms), 0, 1);
  EXPECT_EQ(worker.inbox->Take<Assign>().value().terms.share, terms.share);
  EXPECT_EQ(Status().jobs.at(0).terms.share, terms.share);
}

TEST_F(LimitsTest, AFixedOrderThatCouldNeverBeginIsRefused) {
  StartWith({.partitions = 3});
  const JobTerms terms = {.mode = ShardingPolicy::kDynamic, .deterministic = true, .partitions = 4};
  ExpectRefused(Create("x", Register(1), terms), "needs 4 partitions at once");
}

}  // namespace
}  // namespace penstock::control
