// SPDX-License-Identifier: Apache-2.0
// Partitions that workers cannot run: how often they move, and when the job ends.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/dispatcher/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/fixed_tokens.h"
#include "tests/control/dispatcher/inbox.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

struct Worker {
  std::shared_ptr<Inbox<WorkerStreamWriter, WorkerDown>> inbox;
  std::shared_ptr<WorkerPeer> peer;
  absl::Status fails;            // OK: it runs every partition it gets
  bool refuses_dataset = false;  // when it fails
  std::vector<PartitionId> tried;
  std::map<PartitionId, PlacedPartition> runs;
  std::vector<PlacedPartition> runs_of_others;  // partitions of other jobs
};

class FailuresTest : public ::testing::Test {
 protected:
  FailuresTest() {
    CoreOptions options;
    options.now = [this] { return now_; };
    options.random = [this] { return ++random_; };
    options.job_tokens = FixedTokens;
    options.port_refuses = [this](const std::string&) { return refuses_; };
    options.events = events_;
    options.check_kept = [] { return true; };
    core_ = Core::Open(std::move(options), OpenMemoryJournal()).value();
    core_->RegisterDataset({.definition = "definition",
                            .summary = {.fingerprint = 11,
                                        .cardinality = 100,
                                        .nodes = {{"Range#0", 1}},
                                        .plan = {{.node = "Range#0", .count = 100}}}},
                           [&](const auto& answer) { dataset_ = answer->dataset_id; });
    job_ = MakeJob("job");
    Connect();
  }

  JobAnswer MakeJob(const std::string& name) {
    JobAnswer job;
    core_->GetOrCreateJob(
        {.name = name, .dataset_id = dataset_, .terms = {.mode = ShardingPolicy::kDynamic}},
        [&](const auto& answer) { job = *answer; });
    return job;
  }
  void Hello(const std::shared_ptr<ClientPeer>& peer, const JobAnswer& job, uint64_t client = 5) {
    core_->OnMessage(peer, ClientHello{.job = job.job,
                                       .client = ClientId(client),
                                       .incarnation = Incarnation(1),
                                       .state = std::nullopt,
                                       .token = job.token});
  }
  void Connect() {
    client_inbox_ = std::make_shared<Inbox<ClientStreamWriter, ClientDown>>();
    client_ = core_->OpenClient(client_inbox_);
    Hello(client_, job_);
  }
  // Makes another job, with a reader of its own.
  void MakeAnotherJob() {
    other_inbox_ = std::make_shared<Inbox<ClientStreamWriter, ClientDown>>();
    other_client_ = core_->OpenClient(other_inbox_);
    Hello(other_client_, MakeJob("other"));
  }

  // Adds another reader of the same job.
  void JoinReader() {
    other_inbox_ = std::make_shared<Inbox<ClientStreamWriter, ClientDown>>();
    other_client_ = core_->OpenClient(other_inbox_);
    Hello(other_client_, job_, 6);
    Run();
  }

  Worker& Join(uint64_t id, absl::Status fails = absl::OkStatus(), bool refuses_dataset = false) {
    Worker& worker = workers_[id];
    worker.inbox = std::make_shared<Inbox<WorkerStreamWriter, WorkerDown>>();
    worker.peer = core_->OpenWorker(worker.inbox);
    worker.fails = std::move(fails);
    worker.refuses_dataset = refuses_dataset;
    core_->OnMessage(
        worker.peer,
        WorkerHello{.worker = WorkerId(id), .address = absl::StrCat("worker", id), .permits = 1});
    Run();
    return worker;
  }
  void Kill(uint64_t id) {
    core_->OnClosed(workers_.at(id).peer);
    workers_.erase(id);
    refuses_ = true;
    core_->ProbeBrokenWorkers();
    refuses_ = false;
    Run();
  }
  // Lets all running partitions get further, except `but`.
  void Progress(PartitionId but) {
    ++index_;
    for (auto& [id, worker] : workers_) {
      for (const auto& [partition, of] : worker.runs) {
        if (partition != but) core_->OnMessage(worker.peer, Bookmark{of, index_, "position", {}});
      }
    }
    Run();
  }
  void PassWithLinks(int seconds, const std::vector<LinkCounts>& links) {
    Pass(seconds, ClientHeartbeat{.links = links});
  }
  void PassWithoutChanges(int seconds) {
    Pass(seconds, ClientHeartbeat{.only_changed_links = true});
  }
  void Pass(int seconds, const ClientHeartbeat& heartbeat) {
    for (int second = 0; second < seconds; ++second) {
      now_ += absl::Seconds(1);
      core_->OnMessage(client_, heartbeat);
      if (other_client_) core_->OnMessage(other_client_, ClientHeartbeat{});
      for (auto& [id, worker] : workers_) core_->OnMessage(worker.peer, WorkerHeartbeat{});
      core_->Sweep();
      Run();
    }
  }
  uint64_t IdOfRunner(PartitionId partition) {
    return std::find_if(workers_.begin(), workers_.end(),
                        [&](const auto& entry) { return entry.second.runs.contains(partition); })
        ->first;
  }
  void Fail(Worker& worker, PartitionId partition, absl::Status why) {
    core_->OnMessage(worker.peer, PartitionFailed{worker.runs.at(partition), std::move(why)});
    Run();
  }
  // Delivers messages until no process has anything to do.
  void Run() {
    for (bool busy = true; busy;) {
      busy = false;
      while (auto fence = client_inbox_->Take<Fence>()) {
        core_->OnMessage(client_, FenceAnswer{{fence->partition, fence->placement, {}, {}}});
        busy = true;
      }
      while (auto fence = other_inbox_ ? other_inbox_->Take<Fence>() : std::nullopt) {
        core_->OnMessage(other_client_, FenceAnswer{{fence->partition, fence->placement, {}, {}}});
        busy = true;
      }
      for (auto& [id, worker] : workers_) {
        while (auto assign = worker.inbox->Take<Assign>()) {
          busy = true;
          if (assign->of.iteration != IterationId(1)) {
            worker.runs_of_others.push_back(assign->of);
            continue;
          }
          worker.tried.push_back(assign->of.partition);
          if (worker.fails.ok()) {
            for (auto& [other, its] : workers_) its.runs.erase(assign->of.partition);
            worker.runs[assign->of.partition] = assign->of;
          } else {
            core_->OnMessage(worker.peer,
                             PartitionFailed{assign->of, worker.fails, worker.refuses_dataset});
          }
        }
      }
    }
  }
  DispatcherStatus Status() const {
    DispatcherStatus status;
    core_->GetStatus([&](const auto& answer) { status = *answer; });
    return status;
  }
  Worker& RunnerOf(PartitionId partition) { return workers_.at(IdOfRunner(partition)); }
  bool JobGoesOn() const { return !client_inbox_->finished.has_value(); }

  int Events(std::string_view name) const {
    const std::vector<Event> all = events_->All();
    return static_cast<int>(std::count_if(all.begin(), all.end(),
                                          [&](const Event& event) { return event.name == name; }));
  }

  absl::Time now_ = absl::UnixEpoch();
  bool refuses_ = false;
  Index index_ = 0;
  uint64_t random_ = 0;
  const std::shared_ptr<CapturedEvents> events_ = CapturedEvents::Make();
  std::unique_ptr<Core> core_;
  std::string dataset_;
  JobAnswer job_;
  std::shared_ptr<Inbox<ClientStreamWriter, ClientDown>> client_inbox_;
  std::shared_ptr<ClientPeer> client_;
  std::shared_ptr<Inbox<ClientStreamWriter, ClientDown>> other_inbox_;
  std::shared_ptr<ClientPeer> other_client_;
  std::map<uint64_t, Worker> workers_;
};

TEST_F(FailuresTest, WorkersThatCannotRunADatasetDoNotEndItWhereOthersCan) {
  const Worker& first = Join(1);
  const Worker& second = Join(2);
  for (uint64_t id : {11, 12, 13}) {
    Join(id, absl::NotFoundError("function tokenize@1 is not registered"));
    EXPECT_TRUE(JobGoesOn()) << *client_inbox_->finished;
  }
  std::set<PartitionId> running;
  for (const Worker* good : {&first, &second}) {
    for (const auto& [partition, of] : good->runs) running.insert(partition);
  }
  EXPECT_EQ(running.size(), 5u);  // as many as there are permits
}

TEST_F(FailuresTest, APartitionThatEveryWorkerFailsEndsTheJob) {
  for (uint64_t id : {1, 2, 3, 4}) Join(id);
  const absl::Status gone = absl::NotFoundError("/data/a is not there");
  for (auto& [id, worker] : workers_) worker.fails = gone;
  Fail(RunnerOf(PartitionId(1)), PartitionId(1), gone);
  ASSERT_FALSE(JobGoesOn());
  EXPECT_EQ(client_inbox_->finished->code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(client_inbox_->finished->message()), HasSubstr("/data/a is not there"));
  for (const auto& [id, worker] : workers_) {
    EXPECT_THAT(worker.tried, ::testing::Contains(PartitionId(1))) << "worker " << id;
  }
}

TEST_F(FailuresTest, OneWorkerThatIsAloneTriesThreeTimes) {
  Worker& worker = Join(1, absl::UnavailableError("the store does not answer"));
  EXPECT_FALSE(JobGoesOn());
  EXPECT_EQ(worker.tried.size(), 3u);
}

TEST_F(FailuresTest, FailuresBeforeProgressDoNotCount) {
  Worker& worker = Join(1);
  const PartitionId partition(1);
  for (Index index : {10, 20, 30}) {
    Fail(worker, partition, absl::ResourceExhaustedError("no memory"));
    Fail(worker, partition, absl::ResourceExhaustedError("no memory"));
    ASSERT_TRUE(JobGoesOn()) << *client_inbox_->finished;
    core_->OnMessage(worker.peer, Bookmark{worker.runs.at(partition), index, "position", {}});
  }
}

TEST_F(FailuresTest, APartitionWhoseWorkersDieSparesTheFleet) {
  const PartitionId bad(1);
  for (uint64_t id : {1, 2, 3}) Join(id);
  int killed = 0;
  for (uint64_t next = 10; JobGoesOn() && killed < 10; ++next) {
    const uint64_t runner = IdOfRunner(bad);
    if (killed >= 2) {
      EXPECT_EQ(workers_.at(runner).runs.size(), 1u) << "killed " << killed;
    }
    Kill(runner);
    ++killed;
    if (!JobGoesOn()) break;
    Join(next);
    Progress(bad);
  }
  EXPECT_EQ(killed, 4);
  ASSERT_FALSE(JobGoesOn());
  EXPECT_EQ(client_inbox_->finished->code(), absl::StatusCode::kInternal);
  EXPECT_THAT(
      std::string(client_inbox_->finished->message()),
      HasSubstr("partition 1: 4 workers died while they ran it, 2 of them with nothing else on "
                "them, and it got no further than its bookmark at index 0"));
}

// The reader has received much of the partition, and delivers it while worker after worker dies.
TEST_F(FailuresTest, ElementsReceivedBeforeTheDeathsAreNoProgress) {
  const PartitionId bad(1);
  for (uint64_t id : {1, 2, 3}) Join(id);
  const Placement placement = RunnerOf(bad).runs.at(bad).placement;
  const auto says = [&](IndexSet delivered, IndexSet received) {
    core_->OnMessage(client_, Report{{{.partition = bad,
                                       .placement = placement,
                                       .delivered = std::move(delivered),
                                       .received = std::move(received)}}});
  };
  says({}, IndexSet::Of(0, 100));
  int killed = 0;
  for (; JobGoesOn() && killed < 10; ++killed) {
    Kill(IdOfRunner(bad));
    says(IndexSet::Of(killed, killed + 1), {});
    if (JobGoesOn()) Join(static_cast<uint64_t>(10 + killed));
  }
  EXPECT_EQ(killed, 4);
}

TEST_F(FailuresTest, ElementsForALivingReaderAreProgress) {
  const PartitionId bad(1);
  for (uint64_t id : {1, 2, 3}) Join(id);
  for (int killed = 0; killed < 10; ++killed) {
    Kill(IdOfRunner(bad));
    ASSERT_TRUE(JobGoesOn()) << "killed " << killed;
    Join(static_cast<uint64_t>(10 + killed));
    const IndexSet more = IndexSet::Of(killed, killed + 1);  // received, delivered, reported
    core_->OnMessage(client_, Report{{{.partition = bad,
                                       .placement = RunnerOf(bad).runs.at(bad).placement,
                                       .delivered = more}}});
  }
}

TEST_F(FailuresTest, WhereThereIsNoOtherWorkerItGoesOnThereForLonger) {
  Join(1);
  int killed = 0;
  for (uint64_t next = 10; JobGoesOn() && killed < 20; ++next) {
    Kill(IdOfRunner(PartitionId(1)));
    ++killed;
    if (JobGoesOn()) Join(next);
  }
  EXPECT_EQ(killed, 8);
}

// Each worker ends before any other partition on it has got further.
TEST_F(FailuresTest, WorkersThatComeOneByOneEndNoOtherJob) {
  MakeAnotherJob();
  int killed = 0;
  for (uint64_t id = 1; JobGoesOn() && killed < 20; ++id, ++killed) {
    Worker& worker = Join(id);
    while (worker.runs.empty()) {
      for (const PlacedPartition& of : worker.runs_of_others) {
        core_->OnMessage(worker.peer, Bookmark{of, ++index_, "position", {}});
      }
      PassWithLinks(1, {});
      ASSERT_LT(now_, absl::UnixEpoch() + absl::Minutes(5)) << "the bad one waits for ever";
    }
    Kill(id);
  }
  EXPECT_FALSE(JobGoesOn());
  EXPECT_FALSE(other_inbox_->finished.has_value()) << *other_inbox_->finished;
}

// Workers on preemptible machines die like this.
TEST_F(FailuresTest, WorkersThatDieForOtherReasonsEndNothing) {
  const PartitionId one(1);
  for (uint64_t id : {1, 2, 3}) Join(id);
  for (uint64_t next = 10; next < 30; ++next) {
    Kill(IdOfRunner(one));
    Join(next);
    if (next % 3 == 0) Progress(PartitionId());
    ASSERT_TRUE(JobGoesOn()) << *client_inbox_->finished;
  }
}

TEST_F(FailuresTest, PartitionsMoveFromAWorkerThatAReaderCannotReach) {
  Join(1);
  Join(2);
  PassWithLinks(10, {{.worker = WorkerId(1), .down = true}, {.worker = WorkerId(2), .open = true}});
  // It was a short while.
  PassWithLinks(1, {{.worker = WorkerId(1), .open = true}, {.worker = WorkerId(2), .open = true}});
  PassWithLinks(14, {{.worker = WorkerId(1), .down = true}, {.worker = WorkerId(2), .open = true}});
  EXPECT_EQ(workers_.at(1).runs.size(), 1u);
  PassWithLinks(2, {{.worker = WorkerId(1), .down = true}, {.worker = WorkerId(2), .open = true}});
  EXPECT_EQ(Events("unreached"), 1);
  EXPECT_EQ(workers_.at(1).runs.size(), 0u);
  EXPECT_EQ(workers_.at(2).runs.size(), 2u);
  // The partition does not return to that worker while there is another.
  Join(3);
  EXPECT_EQ(workers_.at(1).runs.size(), 0u);
  core_->OnMessage(workers_.at(3).peer, WorkerLeave{});
  core_->OnMessage(workers_.at(2).peer, WorkerLeave{});
  Run();
  EXPECT_EQ(workers_.at(1).runs.size(), 2u);
}

TEST_F(FailuresTest, ALinkIsDownUntilAHeartbeatSaysOtherwise) {
  Join(1);
  Join(2);
  PassWithLinks(1, {{.worker = WorkerId(1), .down = true}, {.worker = WorkerId(2), .open = true}});
  PassWithoutChanges(10);
  Pass(1, {.links = {{.worker = WorkerId(1), .open = true}}, .only_changed_links = true});
  PassWithoutChanges(20);
  EXPECT_EQ(Events("unreached"), 0);
  Pass(1, {.links = {{.worker = WorkerId(1), .down = true}}, .only_changed_links = true});
  PassWithoutChanges(14);
  EXPECT_EQ(Events("unreached"), 0);
  PassWithoutChanges(2);
  EXPECT_EQ(Events("unreached"), 1);
  EXPECT_EQ(workers_.at(1).runs.size(), 0u);
}

// The dispatcher cannot have heard meanwhile that the link is open again.
TEST_F(FailuresTest, ALinkThatIsDownDuringAStallCountsFromItsEnd) {
  Join(1);
  Join(2);
  PassWithLinks(10, {{.worker = WorkerId(1), .down = true}, {.worker = WorkerId(2), .open = true}});
  now_ += absl::Minutes(1);
  core_->Sweep();
  ASSERT_EQ(Events("stalled"), 1);
  PassWithoutChanges(14);
  EXPECT_EQ(Events("unreached"), 0);
  PassWithoutChanges(2);
  EXPECT_EQ(Events("unreached"), 1);
  EXPECT_EQ(workers_.at(1).runs.size(), 0u);
}

TEST_F(FailuresTest, ALinkThatIsDownBeforeItsWorkerHasAPartitionCountsFromThen) {
  Join(1);
  Join(2);
  PassWithLinks(1, {{.worker = WorkerId(1), .open = true},
                    {.worker = WorkerId(2), .open = true},
                    {.worker = WorkerId(3), .down = true}});
  PassWithoutChanges(29);
  EXPECT_EQ(Join(3).runs.size(), 1u);
  PassWithoutChanges(14);
  EXPECT_EQ(Events("unreached"), 0);
  EXPECT_EQ(workers_.at(3).runs.size(), 1u);
  PassWithoutChanges(2);
  EXPECT_EQ(Events("unreached"), 1);
  EXPECT_EQ(workers_.at(3).runs.size(), 0u);
}

TEST_F(FailuresTest, ALinkThatIsGoneIsNotDown) {
  Join(1);
  Join(2);
  PassWithLinks(1, {{.worker = WorkerId(1), .down = true}, {.worker = WorkerId(2), .open = true}});
  PassWithoutChanges(10);
  Pass(1, {.only_changed_links = true, .gone_links = {WorkerId(1)}});
  PassWithoutChanges(20);
  EXPECT_EQ(Events("unreached"), 0);
}

// Others wait for the elements in doubt on the broken links. They get them once the partition is
// placed again, even on the same worker.
TEST_F(FailuresTest, WithoutAnotherReachableWorkerOtherReadersGetDoubtfulElements) {
  Join(1);
  JoinReader();
  const auto placement = [&] { return workers_.at(1).runs.at(PartitionId(1)).placement.value(); };
  const uint64_t before = placement();
  PassWithLinks(40, {{.worker = WorkerId(1), .down = true}});
  EXPECT_EQ(Events("unreached"), 1);
  EXPECT_EQ(placement(), before + 1);
  PassWithLinks(1, {{.worker = WorkerId(1), .open = true}});
  PassWithLinks(40, {{.worker = WorkerId(1), .down = true}});
  EXPECT_EQ(placement(), before + 2);
  Join(2);
  PassWithLinks(1, {{.worker = WorkerId(1), .open = true}, {.worker = WorkerId(2), .open = true}});
  PassWithLinks(40, {{.worker = WorkerId(1), .down = true}, {.worker = WorkerId(2), .down = true}});
  EXPECT_EQ(Events("unreached"), 4) << "a reader that reaches nobody";
  EXPECT_EQ(workers_.at(1).runs.size(), 1u);
  EXPECT_EQ(workers_.at(2).runs.size(), 1u);
}

TEST_F(FailuresTest, NothingMovesWhereThereIsNoOtherWorker) {
  Join(1);
  PassWithLinks(20, {{.worker = WorkerId(1), .down = true}});
  EXPECT_EQ(Events("unreached"), 0);
  EXPECT_EQ(workers_.at(1).tried.size(), 1u);
}

TEST_F(FailuresTest, NothingMovesForAReaderThatReachesNobody) {
  Join(1);
  Join(2);
  PassWithLinks(40, {{.worker = WorkerId(1), .down = true}, {.worker = WorkerId(2), .down = true}});
  EXPECT_EQ(Events("unreached"), 0);
}

// A planned move waits until all readers are there to answer.
TEST_F(FailuresTest, NothingMovesWhileAReaderIsAwayWhoseMessageWasRefused) {
  Join(1);
  Join(2);
  core_->OnMessage(workers_.at(2).peer, WorkerLeave{});
  Run();
  ASSERT_EQ(workers_.at(1).runs.size(), 2u);
  core_->OnMessage(client_, Commit{1, {{/*repetition=*/7, {}}}});
  ASSERT_FALSE(JobGoesOn()) << "repetition 7 was never begun";
  Join(3);
  EXPECT_EQ(Events("relieved"), 0);
  Connect();
  Run();
  EXPECT_EQ(Events("relieved"), 1);
  EXPECT_EQ(workers_.at(3).tried.size(), 1u);
}

// --- A worker of another release -------------------------------------------------------

const absl::Status kOtherElements = absl::FailedPreconditionError("it has another fingerprint");

TEST_F(FailuresTest, AWorkerThatRefusesTheDatasetGetsNoPartitionOfIt) {
  Join(1);
  MakeAnotherJob();  // of the same dataset
  Worker& other = Join(2, kOtherElements, /*refuses_dataset=*/true);
  EXPECT_TRUE(JobGoesOn());
  EXPECT_EQ(other.tried.size(), 1u) << "one is enough to know";
  EXPECT_EQ(Events("dataset_refused"), 1);
  EXPECT_EQ(Status().workers.at(1).partitions, 0) << "those of the other job are moved too";
  const size_t others = other.runs_of_others.size();
  Join(3);
  core_->OnMessage(workers_.at(1).peer, WorkerLeave{});
  Run();
  EXPECT_TRUE(JobGoesOn());
  EXPECT_EQ(other.tried.size(), 1u);
  EXPECT_EQ(other.runs_of_others.size(), others);
  EXPECT_FALSE(workers_.at(3).runs.empty());
  EXPECT_EQ(Status().workers.at(0).refuses.size(), 1u);
}

TEST_F(FailuresTest, WorkersThatAllRefuseTheDatasetDoNotEndTheJob) {
  for (uint64_t w = 1; w <= 4; ++w) Join(w, kOtherElements, /*refuses_dataset=*/true);
  EXPECT_TRUE(JobGoesOn());
  const DispatcherStatus status = Status();
  EXPECT_THAT(status.jobs.at(0).iterations.at(0).waits_for,
              HasSubstr("a worker that does not refuse the dataset (it has another fingerprint"));
  for (const WorkerStatus& worker : status.workers) {
    EXPECT_THAT(worker.refuses.at(0), HasSubstr("dataset 1000: it has another fingerprint"));
  }
  Join(5);
  EXPECT_FALSE(workers_.at(5).runs.empty());
}

TEST_F(FailuresTest, AWorkerThatComesAgainIsTriedAgain) {
  Join(1, kOtherElements, /*refuses_dataset=*/true);
  core_->OnMessage(workers_.at(1).peer, WorkerLeave{});
  workers_.erase(1);
  EXPECT_EQ(Join(1).runs.size(), 1u);
}

// The host's mounts or credentials may be wrong.
TEST_F(FailuresTest, AWorkerThatMayNotReadGivesWayToOneThatMay) {
  for (const absl::Status& why :
       {absl::PermissionDeniedError("/data/a"), absl::UnauthenticatedError("no credentials")}) {
    Worker& good = workers_.contains(1) ? workers_.at(1) : Join(1);
    Join(10 + static_cast<uint64_t>(why.code()), why);
    EXPECT_TRUE(JobGoesOn()) << why;
    EXPECT_FALSE(good.runs.empty());
  }
}

}  // namespace
}  // namespace penstock::control
