// SPDX-License-Identifier: Apache-2.0
// Sessions and workers of a dispatcher, and how it starts and ends.
#include <sys/resource.h>

#include <algorithm>
#include <csignal>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/dispatcher_fixture.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

// --- Reading -----------------------------------------------------------------------

// A worker runs one partition to its end, a client receives all of it.
TEST_F(DispatcherTest, ASessionRunsToItsEnd) {
  Start();
  JobAnswer job = MakeJob("run");
  HandWorker worker(*stub_, 1);
  HandClient client(*stub_, job, 5);
  Welcome welcome = client.Next<Welcome>();
  EXPECT_EQ(welcome.token, job.token);

  Assign assign = worker.Next<Assign>();
  EXPECT_EQ(assign.token, job.token);
  ASSERT_EQ(assign.readers.size(), 1u);
  EXPECT_EQ(assign.readers[0].client, ClientId(5));
  Membership membership = client.NextThat<Membership>(
      [](const Membership& m) { return !m.partitions.empty() && m.partitions[0].worker; });
  ASSERT_EQ(membership.workers.size(), 1u);
  EXPECT_EQ(membership.workers[0].address, "worker1");

  std::vector<int64_t> numbers;
  bool no_more = false;
  while (!no_more && !HasFailure()) {
    worker.Send(SplitRequest{assign.of, 0, 0, static_cast<int64_t>(numbers.size()), 4});
    SplitRun run = worker.Next<Splits>().run;
    numbers.insert(numbers.end(), run.numbers.begin(), run.numbers.end());
    no_more = run.no_more;
  }
  std::sort(numbers.begin(), numbers.end());
  EXPECT_THAT(numbers, ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));

  worker.Send(Ended{assign.of, 10});
  client.Next<ReportAtOnce>();
  client.SendReport(assign.of.partition, assign.of.placement, IndexSet::Of(0, 10));
  client.Next<End>();
  client.Send(Leave{{{assign.of.partition, IndexSet::Of(0, 10)}}});
  client.Next<Left>();

  // A late client sees the end at once.
  HandClient late(*stub_, job, 6);
  late.Next<Welcome>();
  late.Next<End>();
  EXPECT_TRUE(late.Next<Membership>().closed);
}

TEST_F(DispatcherTest, OnlyANewReaderGetsTheWorkerList) {
  Start();
  const JobAnswer job = MakeJob("run");
  HandWorker worker(*stub_, 1);
  HandClient first(*stub_, job, 5);
  first.Next<Membership>();
  HandClient second(*stub_, job, 6);
  second.Next<Membership>();
  HandWorker other(*stub_, 2);
  EXPECT_EQ(first.Next<Membership>().version, second.Next<Membership>().version);
}

TEST_F(DispatcherTest, AReaderWithoutAnyWorkerHearsThatPartitionsWait) {
  Start();
  JobAnswer job = MakeJob("run");
  HandClient client(*stub_, job, 5);
  {
    HandWorker worker(*stub_, 1);
    Assign assign = worker.Next<Assign>();
    worker.Send(Ended{assign.of, 4});  // and the message is not read
    client.Next<ReportAtOnce>();
    worker.Send(WorkerLeave{});
    client.Next<Fence>();
  }
  HandClient late(*stub_, job, 6);
  Membership membership = late.Next<Membership>();
  EXPECT_FALSE(membership.closed);
  ASSERT_EQ(membership.partitions.size(), 1u);
  EXPECT_FALSE(membership.partitions[0].worker);
}

TEST_F(DispatcherTest, ARepeatedSplitRequestGetsTheSameSplits) {
  Start();
  JobAnswer job = MakeJob("splits");
  HandWorker worker(*stub_, 1);
  HandClient client(*stub_, job, 5);
  Assign assign = worker.Next<Assign>();
  const SplitRequest request{assign.of, 0, 0, 0, 2};
  worker.Send(request);
  Splits first = worker.Next<Splits>();
  worker.Send(request);
  EXPECT_EQ(worker.Next<Splits>(), first);
}

TEST_F(DispatcherTest, APartitionMovesOnlyWhenItsReadersHaveAnswered) {
  Start({.worker_timeout = absl::Minutes(10)});
  JobAnswer job = MakeJob("moves");
  HandWorker first(*stub_, 1);
  HandClient client(*stub_, job, 5);
  client.Next<Welcome>();
  Assign assign = first.Next<Assign>();
  first.Send(SplitRequest{assign.of, 0, 0, 0, 3});
  SplitRun given = first.Next<Splits>().run;
  first.Send(Bookmark{assign.of, 2, "position 2", {}});
  first.Send(Bookmark{assign.of, 4, "position 4", {}});
  client.SendReport(assign.of.partition, assign.of.placement, IndexSet::Of(0, 1),
                    IndexSet::Of(1, 3));
  first.Send(WorkerLeave{});

  Fence fence = client.Next<Fence>();
  EXPECT_EQ(fence.placement, Placement(2));
  HandWorker second(*stub_, 2);
  client.Send(FenceAnswer{{fence.partition, fence.placement, {}, IndexSet::Of(5, 6)}});
  Assign moved = second.Next<Assign>();
  EXPECT_EQ(moved.of.placement, Placement(2));
  IndexSet skip = IndexSet::Of(0, 3);
  skip.Add(5);
  EXPECT_EQ(moved.skip, skip);
  EXPECT_EQ(moved.bookmark_index, 2);  // not 4: index 3 must be made again
  EXPECT_EQ(moved.bookmark, "position 2");
  ASSERT_EQ(moved.splits.size(), 1u);
  EXPECT_EQ(moved.splits[0].numbers, given.numbers);
}

TEST_F(DispatcherTest, AWorkerWhosePortRefusesIsDeadAtOnce) {
  Start({.worker_timeout = absl::Hours(1)});
  JobAnswer job = MakeJob("dies");
  // Nobody listens at port 1 of loopback.
  HandWorker worker(*stub_, 1, 1, {}, "127.0.0.1:1");
  HandClient client(*stub_, job, 5);
  worker.Next<Assign>();
  worker.Disconnect();
  EXPECT_EQ(client.Next<Fence>().placement, Placement(2));
}

TEST_F(DispatcherTest, ASilentClientsElementsGoToOthers) {
  Start({.client_timeout = absl::Milliseconds(300)});
  JobAnswer job = MakeJob("silent", ShardingPolicy::kDynamic, AckMode::kOnCommit);
  HandWorker worker(*stub_, 1);
  HandClient silent(*stub_, job, 5);
  Assign assign = worker.Next<Assign>();
  silent.SendReport(assign.of.partition, assign.of.placement, IndexSet::Of(0, 4));
  silent.Send(Commit{1, {{0, {{assign.of.partition, IndexSet::Of(0, 2)}}}}});
  EXPECT_EQ(silent.Next<Committed>().number, 1);
  absl::Status error = silent.Next<SessionError>().status;
  EXPECT_EQ(error.code(), absl::StatusCode::kFailedPrecondition);

  // Another reader must get the elements that were not committed.
  HandClient other(*stub_, job, 6);
  Assign again = worker.NextThat<Assign>([](const Assign& a) { return !a.readers.empty(); });
  EXPECT_EQ(again.of.placement, Placement(2));
  EXPECT_EQ(again.skip, IndexSet::Of(0, 2));
  EXPECT_EQ(again.readers[0].client, ClientId(6));
}

TEST_F(DispatcherTest, ARestartInTheMiddleOfAMoveAsksAgainUnderTheNextPlacement) {
  Start(Journaled());
  JobAnswer job = MakeJob("restart");
  auto worker = std::make_unique<HandWorker>(*stub_, 1);
  auto answers = std::make_unique<HandClient>(*stub_, job, 5);
  auto silent = std::make_unique<HandClient>(*stub_, job, 6);
  answers->Next<Welcome>();
  silent->Next<Welcome>();
  Assign assign = worker->Next<Assign>();
  worker->Send(SplitRequest{assign.of, 0, 0, 0, 3});
  SplitRun given = worker->Next<Splits>().run;
  worker->Send(WorkerLeave{});
  Fence fence = answers->Next<Fence>();
  answers->Send(FenceAnswer{{fence.partition, fence.placement, IndexSet::Of(0, 1), {}}});
  silent->Next<Fence>();  // and it does not answer

  worker.reset();
  answers.reset();
  silent.reset();
  Restart(Journaled());
  HandWorker next(*stub_, 2);
  EXPECT_EQ(next.welcome.life.term, Term(2));
  HandClient first(*stub_, job, 5);
  HandClient second(*stub_, job, 6);
  fence.placement = Placement(fence.placement.value() + 1);
  EXPECT_EQ(first.Next<Fence>(), fence);
  EXPECT_EQ(second.Next<Fence>(), fence);
  first.Send(FenceAnswer{{fence.partition, fence.placement, IndexSet::Of(0, 1), {}}});
  second.Send(FenceAnswer{{fence.partition, fence.placement, {}, IndexSet::Of(1, 2)}});
  Assign moved = next.Next<Assign>();
  EXPECT_EQ(moved.of.placement, fence.placement);
  EXPECT_EQ(moved.skip, IndexSet::Of(0, 2));
  ASSERT_EQ(moved.splits.size(), 1u);
  EXPECT_EQ(moved.splits[0].numbers, given.numbers);
}

TEST_F(DispatcherTest, AWorkerKeepsItsPartitionsAfterADispatcherRestart) {
  Start(Journaled());
  JobAnswer job = MakeJob("goes_on");
  auto worker = std::make_unique<HandWorker>(*stub_, 1);
  auto client = std::make_unique<HandClient>(*stub_, job, 5);
  Assign assign = worker->Next<Assign>();
  worker.reset();
  client.reset();
  Restart(Journaled());

  PlacedPartition gone = assign.of;
  gone.iteration = IterationId(99);
  HandWorker again(*stub_, 1, 1, {assign.of, gone});
  EXPECT_EQ(again.Next<Unassign>().of, gone);
  EXPECT_EQ(again.Next<AddReader>().of, assign.of);
  HandClient back(*stub_, job, 5);
  EXPECT_EQ(back.Next<Membership>().partitions[0].worker, WorkerId(1));
}

TEST_F(DispatcherTest, ARestoredTrainerReplacesItsSessionAtOnce) {
  Start();
  JobAnswer job = MakeJob("restored", ShardingPolicy::kDynamic, AckMode::kOnCommit);
  HandWorker worker(*stub_, 1);
  HandClient before(*stub_, job, 5, /*incarnation=*/1);
  Assign assign = worker.Next<Assign>();
  before.SendReport(assign.of.partition, assign.of.placement, IndexSet::Of(0, 6));
  before.Send(Commit{1, {{0, {{assign.of.partition, IndexSet::Of(0, 3)}}}}});
  before.Next<Committed>();

  std::vector<PartitionIndices> state = {{assign.of.partition, IndexSet::Of(0, 3)}};
  HandClient after(*stub_, job, 5, /*incarnation=*/2, 0, state);
  EXPECT_EQ(before.Next<SessionError>().status.code(), absl::StatusCode::kFailedPrecondition);
  Assign again = worker.Next<Assign>();
  EXPECT_EQ(again.of.placement, Placement(2));
  EXPECT_EQ(again.skip, IndexSet::Of(0, 3));
  EXPECT_EQ(again.readers[0].incarnation, Incarnation(2));
}

// The process has more elements than its state. To restore the state there would deliver elements
// twice.
TEST_F(DispatcherTest, AWelcomedProcessThatWasDeclaredDeadCannotPassForARestartedOne) {
  Start({.client_timeout = absl::Milliseconds(300)});
  JobAnswer job = MakeJob("dead", ShardingPolicy::kDynamic, AckMode::kOnCommit);
  HandClient first(*stub_, job, 5, /*incarnation=*/1, 0, std::vector<PartitionIndices>());
  first.Next<Welcome>();
  first.Next<SessionError>();
  HandClient again(*stub_, job, 5, /*incarnation=*/1, 0, std::vector<PartitionIndices>());
  EXPECT_EQ(again.Next<SessionError>().status.code(), absl::StatusCode::kFailedPrecondition);
  HandClient restarted(*stub_, job, 5, /*incarnation=*/2, 0, std::vector<PartitionIndices>());
  restarted.Next<Welcome>();
}

TEST_F(DispatcherTest, ALeaveWhoseAnswerWasLostIsAnsweredOnTheNextStream) {
  Start(Journaled());
  const JobAnswer job = MakeJob("leaves");
  auto worker = std::make_unique<HandWorker>(*stub_, 1);
  auto client = std::make_unique<HandClient>(*stub_, job, 5);
  const Assign assign = worker->Next<Assign>();
  client->Send(Leave{{{assign.of.partition, IndexSet::Of(0, 2)}}});
  client->Next<Left>();  // the process did not see this answer
  worker.reset();
  client.reset();
  Restart(Journaled());
  HandClient again(*stub_, job, 5);
  again.Next<Welcome>();
  again.Next<Left>();
}

TEST_F(DispatcherTest, OffGivesEveryWorkerAPartitionOfItsOwn) {
  Start();
  JobAnswer job = MakeJob("off", ShardingPolicy::kOff);
  HandWorker first(*stub_, 1);
  HandWorker second(*stub_, 2);
  HandClient client(*stub_, job, 5);
  Assign a = first.Next<Assign>();
  Assign b = second.Next<Assign>();
  EXPECT_NE(a.of.partition, b.of.partition);
  HandWorker third(*stub_, 3);
  EXPECT_EQ(third.Next<Assign>().of.partition, PartitionId(3));
}

TEST_F(DispatcherTest, ADrainingWorkerGivesItsPartitionsToOthers) {
  Start();
  JobAnswer job = MakeJob("drains");
  HandWorker first(*stub_, 1);
  HandClient client(*stub_, job, 5);
  Assign assign = first.Next<Assign>();
  HandWorker second(*stub_, 2);
  second.Next<Assign>();  // a partition of its own
  first.Send(Drain{});
  EXPECT_EQ(first.Next<Unassign>().of, assign.of);
  first.Next<Drained>();
  Fence fence = client.Next<Fence>();
  client.Send(FenceAnswer{{fence.partition, fence.placement, {}, {}}});
  EXPECT_EQ(second.Next<Assign>().of.partition, assign.of.partition);
}

TEST_F(DispatcherTest, ExcessPartitionsOfFewerWorkersWaitForOthersToEnd) {
  Start();
  JobAnswer job = MakeJob("fewer", ShardingPolicy::kOff);
  HandWorker stays(*stub_, 1);
  HandClient client(*stub_, job, 5);
  std::vector<PlacedPartition> has = {stays.Next<Assign>().of};
  std::vector<std::unique_ptr<HandWorker>> others;
  for (uint64_t id = 2; id <= 5; ++id) {
    others.push_back(std::make_unique<HandWorker>(*stub_, id));
    others.back()->Next<Assign>();
  }
  for (const auto& other : others) {
    other->Send(Drain{});
    other->Next<Drained>();
  }
  for (size_t i = 0; i < others.size(); ++i) {
    const Fence fence = client.Next<Fence>();
    client.SendReport(fence.partition, fence.placement, IndexSet());
  }
  has.push_back(stays.Next<Assign>().of);
  const auto settled = [&] {  // the last reports may be on their way
    while (true) {
      IterationStatus status = stub_->GetStatus(kOnce)->jobs[0].iterations[0];
      if (status.waits_for.find("its readers") == std::string::npos) return status;
    }
  };
  for (size_t ended = 0; has.size() < 5; ++ended) {
    const IterationStatus status = settled();
    EXPECT_EQ(std::ranges::count(status.partitions, WorkerId(), &PartitionStatus::worker),
              5 - static_cast<int64_t>(has.size()));
    EXPECT_THAT(status.waits_for, ::testing::HasSubstr("room on a worker"));
    stays.Send(Ended{has[ended], 0});
    has.push_back(stays.Next<Assign>().of);
  }
}

constexpr bool kEndless = true;  // no partition waits for others to end

// Worker 1 with its own partition and those of three workers that have drained.
struct Laden {
  Laden(DispatcherStub& stub, const JobAnswer& job) : worker(stub, 1), client(stub, job, 5) {
    assigned.push_back(worker.Next<Assign>().of);
    std::vector<std::unique_ptr<HandWorker>> others;
    for (uint64_t id = 2; id <= 4; ++id) {
      others.push_back(std::make_unique<HandWorker>(stub, id));
      others.back()->Next<Assign>();
    }
    for (const auto& other : others) {
      other->Send(Drain{});
      other->Next<Drained>();
    }
    for (size_t i = 0; i < others.size(); ++i) {
      Answer();
      assigned.push_back(worker.Next<Assign>().of);
    }
  }
  // Answers the next fence: the client has no element of that partition.
  PartitionId Answer() { return AnswerOf(client); }
  static PartitionId AnswerOf(HandClient& client) {
    const Fence fence = client.Next<Fence>();
    client.SendReport(fence.partition, fence.placement, IndexSet());
    return fence.partition;
  }
  HandWorker worker;
  HandClient client;
  std::vector<PlacedPartition> assigned;
};

TEST_F(DispatcherTest, AWorkerThatJoinsTakesItsShareAndNoMore) {
  Start();
  JobAnswer job = MakeJob("laden", ShardingPolicy::kOff, AckMode::kOnDelivery, 10, kEndless);
  Laden laden(*stub_, job);
  HandWorker joiner(*stub_, 9);
  EXPECT_EQ(laden.Answer(), PartitionId(1));
  EXPECT_EQ(laden.Answer(), PartitionId(2));
  EXPECT_EQ(joiner.Next<Assign>().of.partition, PartitionId(1));
  EXPECT_EQ(joiner.Next<Assign>().of.partition, PartitionId(2));
  // Partitions 3 and 4 stayed on their worker: one more is recalled only now.
  laden.worker.Send(PartitionFailed{laden.assigned[3], absl::UnavailableError("no file")});
  EXPECT_EQ(laden.Answer(), PartitionId(4));
  EXPECT_EQ(joiner.Next<Assign>().of, (PlacedPartition{laden.assigned[3].iteration, PartitionId(4),
                                                       Placement(3), laden.assigned[3].journal}));
}

TEST_F(DispatcherTest, AFinishedWorkerTakesAPartitionFromALadenOne) {
  Start();
  JobAnswer job = MakeJob("laden", ShardingPolicy::kOff, AckMode::kOnDelivery, 10, kEndless);
  Laden laden(*stub_, job);
  HandWorker joiner(*stub_, 9);
  laden.Answer();
  laden.Answer();
  std::vector<PlacedPartition> moved = {joiner.Next<Assign>().of, joiner.Next<Assign>().of};
  joiner.Send(Ended{moved[0], 0});
  joiner.Send(Ended{moved[1], 0});
  EXPECT_EQ(laden.Answer(), PartitionId(3));
  EXPECT_EQ(joiner.Next<Assign>().of.partition, PartitionId(3));
}

TEST_F(DispatcherTest, APlannedMoveWaitsForAReaderThatIsAway) {
  const DispatcherConfig config = Journaled();
  Start(config);
  JobAnswer job = MakeJob("laden", ShardingPolicy::kOff, AckMode::kOnDelivery, 10, kEndless);
  std::vector<PlacedPartition> assigned = Laden(*stub_, job).assigned;
  Restart(config);
  HandWorker worker(*stub_, 1, 1, assigned);
  HandWorker joiner(*stub_, 9);
  HandClient back(*stub_, job, 5);
  EXPECT_EQ(back.Next<Welcome>().placements[0].placement, assigned[0].placement);
  EXPECT_EQ(Laden::AnswerOf(back), PartitionId(1));
  EXPECT_EQ(joiner.Next<Assign>().of.partition, PartitionId(1));
}

TEST_F(DispatcherTest, ShardsAreNotCountedBeforeThereIsAWorker) {
  Start();
  JobAnswer job = MakeJob("sharded", ShardingPolicy::kData);
  HandClient early(*stub_, job, 5);
  const absl::Status status = early.WaitClosed();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;  // the client comes again
  EXPECT_THAT(status.message(), HasSubstr("worker_addresses"));
  HandWorker first(*stub_, 1);
  HandWorker second(*stub_, 2);
  HandClient again(*stub_, job, 5);
  EXPECT_EQ(first.Next<Assign>().shard.count, 2);
  EXPECT_EQ(second.Next<Assign>().shard.count, 2);
}

TEST_F(DispatcherTest, APartitionThatNobodyCanRunEndsTheReadingWithItsReason) {
  Start();
  JobAnswer job = MakeJob("broken");
  HandWorker worker(*stub_, 1);
  HandClient client(*stub_, job, 5);
  Assign assign = worker.Next<Assign>();
  worker.Send(PartitionFailed{assign.of, absl::InvalidArgumentError("no such function")});
  absl::Status status = client.Next<SessionError>().status;
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("no such function"));
  EXPECT_THAT(status.message(), HasSubstr("worker1"));
}

TEST_F(DispatcherTest, ACancelledJobStopsItsReadersAndWorkers) {
  Start();
  JobAnswer job = MakeJob("cancelled");
  HandWorker worker(*stub_, 1);
  HandClient client(*stub_, job, 5);
  Assign assign = worker.Next<Assign>();
  ASSERT_TRUE(stub_->CancelJob("cancelled", kOnce).ok());
  EXPECT_EQ(client.Next<SessionError>().status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(worker.Next<Unassign>().of, assign.of);
}

// --- The server ----------------------------------------------------------------------

TEST_F(DispatcherTest, ASecondDispatcherOnTheSameJournalRefusesToStart) {
  Start(Journaled());
  auto second = DispatchServer::Start(Journaled());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(second.status().message(), HasSubstr(folder_));
}

// A size limit for files acts as a disk that is full at that point.
TEST_F(DispatcherTest, AFullDiskEndsItWithoutUnwrittenAnswers) {
  Start(Journaled());
  ASSERT_TRUE(stub_->GetOrRegisterDataset({.definition = "a", .summary = Summary(1)}, kOnce).ok());
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit full{.rlim_cur = 1000, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  absl::Status refused =
      stub_
          ->GetOrRegisterDataset({.definition = std::string(10'000, 'x'), .summary = Summary(2)},
                                 kOnce)
          .status();
  server_->Join();
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(server_->status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(server_->status().message(), HasSubstr("free space"));

  Restart(Journaled());
  EXPECT_EQ(stub_->GetStatus(kOnce)->datasets.size(), 1u);
}

TEST_F(DispatcherTest, APortInUseIsUnavailable) {
  Start();
  auto second = DispatchServer::Start({.port = server_->port()});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(DispatcherTest, FaultToleranceNeedsAPlaceForTheJournal) {
  auto server = DispatchServer::Start({.fault_tolerant_mode = true});
  EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(DispatcherTest, AWorkerOfAnotherVersionIsRefused) {
  Start();
  class Events : public Peer<WorkerUp, WorkerDown> {
   public:
    explicit Events(DispatcherStub& stub) { session_ = stub.OpenWorkerSession(events()); }
  } worker(*stub_);
  worker.Send(WorkerHello{.worker = WorkerId(1), .version = {7, 9}});
  EXPECT_EQ(worker.Next<WorkerRefused>().status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(worker.WaitClosed().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(DispatcherTest, StoppingEndsStreamsAndCalls) {
  Start();
  JobAnswer job = MakeJob("stops");
  HandClient client(*stub_, job, 5);
  client.Next<Welcome>();
  server_->Stop();
  EXPECT_FALSE(client.WaitClosed().ok());
  absl::Status status = stub_->GetStatus({.timeout = absl::Milliseconds(50)}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("no dispatcher answers at"));
}

}  // namespace
}  // namespace penstock::control
