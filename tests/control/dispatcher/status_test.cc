// SPDX-License-Identifier: Apache-2.0
// The status at size: its pages, its filters, and its counts of elements.
#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "control/protocol/dispatcher_status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/core_fixture.h"

namespace penstock::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class StatusTest : public CoreTest {
 protected:
  Worker WorkWith(uint64_t id, int32_t permits) {
    Worker worker;
    worker.peer = core_->OpenWorker(worker.inbox);
    core_->OnMessage(worker.peer, WorkerHello{.worker = WorkerId(id),
                                              .address = absl::StrCat("worker", id),
                                              .permits = permits});
    return worker;
  }
  // Starts a job whose partitions are all on one worker.
  void StartWith(int32_t partitions, uint64_t readers) {
    Start();
    job_ = Job("job", Register(1, /*splits=*/10'000), {.mode = ShardingPolicy::kDynamic});
    worker_ = WorkWith(1, partitions);
    for (uint64_t r = 1; r <= readers; ++r) readers_.push_back(Come(job_, 0, r));
  }
  void Report(size_t reader, PartitionReport report) {
    core_->OnMessage(readers_[reader].peer, control::Report{{std::move(report)}});
  }
  DispatcherStatus Page(const StatusRequest& request) {
    DispatcherStatus page;
    core_->GetStatus(request, [&](const auto& answer) { page = answer.value(); });
    return page;
  }
  DispatcherStatus Collect(const StatusQuery& query) {
    return CollectStatus(query, [&](const StatusRequest& request) { return Page(request); })
        .value();
  }
  IterationStatus Iteration() { return Status().jobs.at(0).iterations.at(0); }

  JobAnswer job_;
  Worker worker_;
  std::vector<Reader> readers_;
};

// --- Pages ---------------------------------------------------------------------------

TEST_F(StatusTest, PagesHaveEachWorkerThatStaysOnceWhileOthersComeAndGo) {
  Start();
  std::vector<Worker> workers;
  for (uint64_t w = 1; w <= 250; ++w) workers.push_back(WorkWith(2 * w, 1));
  StatusRequest request{.page_size = 100, .parts = {StatusPart::kWorkers}};
  DispatcherStatus page = Page(request);
  EXPECT_EQ(page.num_workers, 250);
  EXPECT_THAT(page.jobs, IsEmpty());
  std::vector<WorkerId> found;
  const auto take = [&] {
    EXPECT_LE(page.workers.size(), 100u);
    for (const WorkerStatus& worker : page.workers) found.push_back(worker.worker);
  };
  take();
  // A worker that was listed, the next one, and one that comes later.
  for (const size_t leaves : {50, 100, 120}) core_->OnMessage(workers[leaves].peer, WorkerLeave{});
  WorkWith(3, 1);  // before the place of the next page
  while (!page.next_page_token.empty()) {
    request.page_token = page.next_page_token;
    page = Page(request);
    EXPECT_EQ(page.num_workers, 0) << "only the first page has totals";
    take();
  }
  std::vector<WorkerId> expected;
  for (uint64_t w = 1; w <= 250; ++w) {
    if (w != 101 && w != 121) expected.push_back(WorkerId(2 * w));
  }
  EXPECT_EQ(found, expected);
}

TEST_F(StatusTest, PagesHaveEachPartitionOfEachPassOnce) {
  StartWith(/*partitions=*/250, /*readers=*/1);
  readers_.push_back(Come(job_, 1, 1));
  for (const int64_t size : {1, 7, 100, 251, 1000}) {
    const DispatcherStatus whole = CollectStatus({}, [&](StatusRequest request) {
                                     request.page_size = size;
                                     return absl::StatusOr<DispatcherStatus>(Page(request));
                                   }).value();
    ASSERT_EQ(whole.jobs.size(), 1u) << size;
    ASSERT_EQ(whole.jobs[0].iterations.size(), 2u) << size;
    for (const IterationStatus& iteration : whole.jobs[0].iterations) {
      EXPECT_EQ(iteration.num_partitions, static_cast<int64_t>(iteration.partitions.size()));
      for (size_t p = 0; p < iteration.partitions.size(); ++p)
        EXPECT_EQ(iteration.partitions[p].partition, PartitionId(p + 1)) << size;
    }
    EXPECT_EQ(whole.jobs[0].iterations[0].num_partitions, 250);
  }
}

TEST_F(StatusTest, PagesHaveEachLinkOnce) {
  StartWith(/*partitions=*/1, /*readers=*/3);
  for (Reader& reader : readers_) {
    ClientHeartbeat beat{.counter = 1};
    for (uint64_t w = 1; w <= 5; ++w)
      beat.links.push_back({.worker = WorkerId(w), .protocol = "tcp", .open = true});
    core_->OnMessage(reader.peer, beat);
  }
  std::set<std::pair<ClientId, WorkerId>> found;
  StatusRequest request{.page_size = 4, .parts = {StatusPart::kLinks}};
  EXPECT_EQ(Page(request).num_links, 15);
  do {
    const DispatcherStatus page = Page(request);
    EXPECT_LE(page.links.size(), 4u);
    for (const LinkStatus& link : page.links)
      EXPECT_TRUE(found.insert({link.client, link.counts.worker}).second);
    request.page_token = page.next_page_token;
  } while (!request.page_token.empty());
  EXPECT_EQ(found.size(), 15u);
}

TEST_F(StatusTest, TokensThatNoAnswerContainedAreRefusedOrHarmless) {
  StartWith(/*partitions=*/2, /*readers=*/1);
  for (const char* token : {"x", "job:", "job:x", "job:x,5", "worker:-1", ":5", "partition:1"}) {
    absl::Status answer;
    core_->GetStatus({.page_token = token}, [&](const auto& its) { answer = its.status(); });
    EXPECT_TRUE(absl::IsInvalidArgument(answer)) << token;
  }
  for (const char* token : {"job:1,0,0", "job:1,0,99", "job:1,18446744073709551615,1", "link:1",
                            "worker:18446744073709551615", "dataset:"})
    EXPECT_LE(Page({.page_token = token}).jobs.size(), 1u) << token;
}

TEST_F(StatusTest, RowsBoundEachPart) {
  StartWith(/*partitions=*/20, /*readers=*/1);
  for (uint64_t w = 2; w <= 9; ++w) WorkWith(w, 1);
  Job("other", Register(2), {});
  const DispatcherStatus status = Collect(
      {.parts = {StatusPart::kWorkers, StatusPart::kJobs, StatusPart::kDatasets}, .rows = 1});
  EXPECT_EQ(status.workers.size(), 1u);
  EXPECT_EQ(status.num_workers, 9);
  EXPECT_EQ(status.jobs.size(), 1u);
  EXPECT_EQ(status.num_jobs, 2);
  EXPECT_EQ(status.datasets.size(), 1u);
  EXPECT_EQ(status.num_datasets, 2);
  EXPECT_EQ(status.jobs[0].iterations.at(0).num_partitions, Iteration().num_partitions);
  EXPECT_THAT(status.jobs[0].iterations[0].partitions, IsEmpty());
}

// --- Filters -------------------------------------------------------------------------

TEST_F(StatusTest, HasOnlyTheJobThatIsAskedFor) {
  StartWith(/*partitions=*/3, /*readers=*/1);
  const JobAnswer other = Job("other", Register(2), {});
  for (const std::string& name : {std::string("job"), absl::StrCat(job_.job.value())}) {
    const DispatcherStatus status = Collect({.parts = {StatusPart::kPartitions}, .job = name});
    ASSERT_EQ(status.jobs.size(), 1u);
    EXPECT_EQ(status.jobs[0].name, "job");
    EXPECT_EQ(status.jobs[0].iterations.at(0).partitions.size(), 3u);
    EXPECT_THAT(status.workers, IsEmpty());
    EXPECT_THAT(status.datasets, IsEmpty());
  }
  EXPECT_EQ(Collect({.job = "other"}).jobs.at(0).job, other.job);
  EXPECT_THAT(Collect({.job = "nobody"}).jobs, IsEmpty());
}

// --- Counts --------------------------------------------------------------------------

TEST_F(StatusTest, CountsFollowWhatReadersReport) {
  StartWith(/*partitions=*/2, /*readers=*/2);
  const auto numbers = [&] {
    const IterationStatus iteration = Iteration();
    int64_t received = 0, committed = 0;
    for (const PartitionStatus& partition : iteration.partitions) {
      received += partition.received;
      committed += partition.committed;
    }
    EXPECT_EQ(iteration.received, received);
    EXPECT_EQ(iteration.committed, committed);
    return std::pair(received, committed);
  };
  EXPECT_EQ(numbers(), std::pair(int64_t{0}, int64_t{0}));
  const PartitionId one(1), two(2);
  const Placement first(1);
  Report(0, {.partition = one,
             .placement = first,
             .delivered = IndexSet::Of(0, 2),
             .received = IndexSet::Of(2, 5)});
  EXPECT_EQ(numbers(), std::pair(int64_t{5}, int64_t{2}));
  Report(1, {.partition = one, .placement = first, .received = IndexSet::Of(4, 7)});
  EXPECT_EQ(numbers(), std::pair(int64_t{7}, int64_t{2})) << "element 4 counts once";
  Report(0, {.partition = one, .placement = first, .returned = IndexSet::Of(2, 4)});
  EXPECT_EQ(numbers(), std::pair(int64_t{5}, int64_t{2}));
  Report(1, {.partition = two, .placement = first, .delivered = IndexSet::Of(0, 10)});
  EXPECT_EQ(numbers(), std::pair(int64_t{15}, int64_t{12}));
  // After a break, a report says what the reader has.
  Report(1, {.partition = one, .placement = first, .received = IndexSet::Of(6, 7), .whole = true});
  EXPECT_EQ(numbers(), std::pair(int64_t{14}, int64_t{12}));
  // A new process of reader 0 has only the elements of its state, and the old process cannot
  // report.
  const Reader old = readers_[0];
  readers_[0] = Come(job_, 0, 1, IndexSet::Of(0, 2), /*incarnation=*/2);
  EXPECT_EQ(numbers(), std::pair(int64_t{13}, int64_t{12}));
  core_->OnMessage(
      old.peer, control::Report{
                    {{.partition = one, .placement = first, .received = IndexSet::Of(100, 200)}}});
  EXPECT_EQ(numbers(), std::pair(int64_t{13}, int64_t{12}));
}

TEST_F(StatusTest, CountsAreThoseOfTheReadersSetsWhateverIsReported) {
  constexpr size_t kReaders = 3, kPartitions = 2;
  StartWith(kPartitions, kReaders);
  Iteration();  // from now on, the counts are kept
  IndexSet reported[kReaders][kPartitions], committed[kPartitions];
  std::mt19937 random(7);
  for (int step = 0; step < 500; ++step) {
    const size_t r = random() % kReaders, p = random() % kPartitions;
    const auto some = [&] {
      const auto begin = static_cast<Index>(random() % 50);
      return IndexSet::Of(begin, begin + static_cast<Index>(random() % 5));
    };
    const PartitionReport report{.partition = PartitionId(p + 1),
                                 .placement = Placement(1),
                                 .delivered = random() % 4 == 0 ? some() : IndexSet(),
                                 .received = some(),
                                 .returned = random() % 8 == 0 ? some() : IndexSet(),
                                 .whole = random() % 16 == 0};
    IndexSet& its = reported[r][p];
    if (report.whole) its.clear();
    its.Remove(report.returned);
    its.Add(report.delivered);
    its.Add(report.received);
    committed[p].Add(report.delivered);
    Report(r, report);
    if (random() % 3 != 0) continue;
    IndexSet all = committed[p];
    for (const auto& of_reader : reported) all.Add(of_reader[p]);
    const PartitionStatus status = Iteration().partitions.at(p);
    ASSERT_EQ(status.received, all.size()) << step;
    ASSERT_EQ(status.committed, committed[p].size()) << step;
  }
}

TEST_F(StatusTest, CountsAreTheSameAfterARestart) {
  StartWith(/*partitions=*/3, /*readers=*/2);
  Iteration();  // from now on, the counts are kept
  for (Index i = 0; i < 30; ++i) {
    Report(static_cast<size_t>(i % 2), {.partition = PartitionId(i % 3 + 1),
                                        .placement = Placement(1),
                                        .delivered = IndexSet::Of(i, i + 1)});
  }
  const IterationStatus before = Iteration();
  EXPECT_EQ(before.committed, 30);
  Reopen();
  const IterationStatus after = Iteration();
  EXPECT_EQ(after.committed, before.committed);
  for (size_t p = 0; p < before.partitions.size(); ++p)
    EXPECT_EQ(after.partitions.at(p).committed, before.partitions[p].committed);
}

// --- Waits ---------------------------------------------------------------------------

TEST_F(StatusTest, NamesWhatEachOfManyPartitionsWaitsFor) {
  StartWith(/*partitions=*/300, /*readers=*/10);
  core_->OnMessage(worker_.peer, WorkerLeave{});
  // All readers answer for the odd partitions, and all but the last one for the even partitions.
  for (size_t r = 0; r < readers_.size(); ++r) {
    control::Report answers;
    for (uint64_t p = 1; p <= 300; ++p) {
      if (p % 2 == 1 || r + 1 < readers_.size())
        answers.partitions.push_back({.partition = PartitionId(p), .placement = Placement(2)});
    }
    core_->OnMessage(readers_[r].peer, answers);
  }
  const IterationStatus status = Iteration();
  ASSERT_EQ(status.partitions.size(), 300u);
  for (const PartitionStatus& partition : status.partitions) {
    EXPECT_EQ(partition.placement, Placement(2));
    EXPECT_EQ(partition.waits_for, partition.partition.value() % 2 == 1
                                       ? "a worker"
                                       : "its readers to report their elements");
  }
  EXPECT_THAT(status.waits_for, StartsWith("a worker (partition 1, 3, 5, "));
  EXPECT_THAT(
      status.waits_for,
      HasSubstr(" 199 and 50 more), its readers to report their elements (partition 2, 4, "));
}

TEST_F(StatusTest, NamesAllPartitionsOfASmallJobThatWait) {
  StartWith(/*partitions=*/4, /*readers=*/1);
  EXPECT_EQ(Iteration().waits_for, "");
  core_->OnMessage(worker_.peer, WorkerLeave{});
  EXPECT_EQ(Iteration().waits_for, "its readers to report their elements (partition 1, 2, 3, 4)");
  Report(0, {.partition = PartitionId(2), .placement = Placement(2)});
  EXPECT_EQ(Iteration().waits_for,
            "a worker (partition 2), its readers to report their elements (partition 1, 3, 4)");
}

// --- Releases ------------------------------------------------------------------------

TEST_F(StatusTest, CountsPeersByRelease) {
  StartWith(/*partitions=*/1, /*readers=*/2);
  Worker of_next;
  of_next.peer = core_->OpenWorker(of_next.inbox);
  core_->OnMessage(
      of_next.peer,
      WorkerHello{
          .worker = WorkerId(2), .version = {2, 5}, .address = "worker2", .release = "0.10.0"});
  const uint32_t newest = VersionRange().max;
  EXPECT_EQ(of_next.inbox->Take<WorkerWelcome>()->version, newest) << "the lower of the highest";
  const std::vector<PeerRelease> peers = Page({}).peers;
  EXPECT_THAT(peers,
              ElementsAre(PeerRelease{false, "", newest, 2}, PeerRelease{true, "", newest, 1},
                          PeerRelease{true, "0.10.0", newest, 1}));
  EXPECT_EQ(Page({.parts = {StatusPart::kWorkers}}).peers, peers);
  EXPECT_THAT(Page({.parts = {StatusPart::kJobs}}).peers, IsEmpty());
  core_->OnClosed(of_next.peer);
  EXPECT_EQ(Page({}).peers.size(), 2u);
}

// --- Size ----------------------------------------------------------------------------

TEST_F(StatusTest, NumbersOfALargeServiceAreCurrent) {
  Start();
  for (uint64_t w = 1; w <= 5'000; ++w) WorkWith(w, 1);
  job_ = Job("job", Register(1), {.mode = ShardingPolicy::kDynamic, .quota = {.max_permits = 1}});
  readers_.push_back(Come(job_, 0, 1));
  const auto received = [&] {
    return Page({.page_size = 1, .parts = {StatusPart::kJobs}})
        .jobs.at(0)
        .iterations.at(0)
        .received;
  };
  EXPECT_EQ(received(), 0);
  Report(0,
         {.partition = PartitionId(1), .placement = Placement(1), .received = IndexSet::Of(0, 5)});
  EXPECT_EQ(received(), 5);
}

}  // namespace
}  // namespace penstock::control
