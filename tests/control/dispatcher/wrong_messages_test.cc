// SPDX-License-Identifier: Apache-2.0
// Messages that our programs never send. Their sender is refused, and no other process notices.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "control/dispatcher/core.h"
#include "control/observe/metrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/fixed_tokens.h"
#include "tests/control/observe/count_refused.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

template <class Writer, class Down>
class Ending final : public Writer {
 public:
  void Send(Down message, uint64_t) override { messages.push_back(std::move(message)); }
  void Finish(const absl::Status& status) override { finished = status; }
  template <class Message>
  const Message& First() const {
    const auto found = std::find_if(messages.begin(), messages.end(), [](const Down& message) {
      return std::holds_alternative<Message>(message);
    });
    return std::get<Message>(*found);
  }
  std::optional<absl::Status> finished;
  std::vector<Down> messages;
};
using ClientInbox = Ending<ClientStreamWriter, ClientDown>;
using WorkerInbox = Ending<WorkerStreamWriter, WorkerDown>;

class WrongMessagesTest : public ::testing::Test {
 protected:
  WrongMessagesTest() {
    CoreOptions options;
    options.now = [this] { return now_; };
    options.random = [this] { return ++random_; };
    options.job_tokens = FixedTokens;
    options.port_refuses = [](const std::string&) { return false; };
    options.gc_dynamic_sharding_jobs = true;
    options.events = events_;
    options.check_kept = [] { return true; };
    core_ = Core::Open(std::move(options), OpenMemoryJournal()).value();
    core_->RegisterDataset({.definition = "definition",
                            .summary = {.fingerprint = 11,
                                        .cardinality = kInfinite,
                                        .nodes = {{"Range#0", 1}},
                                        .plan = {{.node = "Range#0", .count = 100}}}},
                           [this](const auto& answer) { dataset_ = answer->dataset_id; });
  }

  GetOrCreateJobRequest JobRequest(int64_t consumers = 0) const {
    return {.name = "job",
            .dataset_id = dataset_,
            .terms = {.mode = ShardingPolicy::kDynamic, .num_consumers = consumers}};
  }
  JobAnswer MakeJob(int64_t consumers = 0) {
    JobAnswer job;
    core_->GetOrCreateJob(JobRequest(consumers), [&](const auto& answer) { job = *answer; });
    return job;
  }
  static ClientHello HelloOf(const JobAnswer& job, uint64_t client, int64_t consumer = -1) {
    return {.job = job.job,
            .client = ClientId(client),
            .incarnation = Incarnation(1),
            .state = std::nullopt,
            .consumer = consumer,
            .token = job.token};
  }
  void Pass(absl::Duration time) {
    for (const absl::Time until = now_ + time; now_ < until; now_ += absl::Seconds(1)) {
      core_->Sweep();
    }
  }
  DispatcherStatus Status() const {
    DispatcherStatus status;
    core_->GetStatus([&](const absl::StatusOr<DispatcherStatus>& its) { status = *its; });
    return status;
  }

  const std::shared_ptr<CapturedEvents> events_ = CapturedEvents::Make();
  absl::Time now_ = absl::UnixEpoch();
  uint64_t random_ = 0;
  std::unique_ptr<Core> core_;
  std::string dataset_;
};

TEST_F(WrongMessagesTest, StatesOfShardsThatTheModeDoesNotHaveAreRefused) {
  RestoreJobRequest request{.job = JobRequest(), .restoration = {.name = 5}};
  request.restoration.repetitions.push_back({.division = {.count = 0, .shards = {0}}});
  request.restoration.repetitions[0].partitions.emplace_back();
  absl::Status answered;
  core_->RestoreJob(request, [&](const auto& answer) { answered = answer.status(); });
  EXPECT_EQ(answered.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(answered.message()),
              HasSubstr("they cannot begin a job in mode DYNAMIC"));
}

// The sum of these numbers wraps around to a small one.
TEST_F(WrongMessagesTest, StatesOfMoreSplitsThanANumberCanSayAreRefused) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const std::vector<int64_t>& firsts :
       {std::vector<int64_t>{kMost}, {kMost, kMost}, {kMost, kMost, 4}, {60, kMost - 50}, {101}}) {
    RestoreJobRequest request{.job = JobRequest(), .restoration = {.name = 5}};
    request.restoration.repetitions.emplace_back();
    for (const int64_t first : firsts) {
      Restoration::Partition& partition =
          request.restoration.repetitions[0].partitions.emplace_back();
      partition.given.push_back({.first_ordinal = first, .numbers = {7}});
    }
    absl::Status answered;
    core_->RestoreJob(request, [&](const auto& answer) { answered = answer.status(); });
    EXPECT_EQ(answered.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(answered.message()), HasSubstr("more splits than the source has"));
  }
  EXPECT_TRUE(Status().jobs.empty());
}

TEST_F(WrongMessagesTest, LongNamesAreRefused) {
  const int64_t before = RefusedSoFar("dispatcher", "too_long");
  const std::string longest(1024, 'n');
  const auto job = [&](const std::string& name, const std::string& run_id) {
    GetOrCreateJobRequest request = JobRequest();
    request.name = name;
    request.run_id = run_id;
    absl::Status answered;
    core_->GetOrCreateJob(request, [&](const auto& answer) { answered = answer.status(); });
    return answered;
  };
  EXPECT_TRUE(job(longest, longest).ok());
  for (const absl::Status& long_one : {job(longest + "n", "run"), job("job", longest + "n")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(long_one)) << long_one;
    EXPECT_THAT(long_one.message(), HasSubstr("has 1025 bytes; the limit is 1024"));
  }
  absl::Status registered;
  core_->RegisterDataset({.dataset_id = longest + "n"},
                         [&](const auto& answer) { registered = answer.status(); });
  EXPECT_THAT(registered.message(), HasSubstr("dataset_id has 1025 bytes"));
  EXPECT_EQ(RefusedSoFar("dispatcher", "too_long"), before + 3);
}

// They would be commands to the terminal of an operator who lists jobs.
TEST_F(WrongMessagesTest, NamesWithControlCharactersAreRefused) {
  for (const char* name : {"a\033[2J", "a\nb", "\x7f"}) {
    GetOrCreateJobRequest request = JobRequest();
    request.name = name;
    absl::Status answered;
    core_->GetOrCreateJob(request, [&](const auto& answer) { answered = answer.status(); });
    EXPECT_TRUE(absl::IsInvalidArgument(answered)) << answered;
    EXPECT_THAT(answered.message(), HasSubstr("job_name must not contain control characters"));
  }
}

TEST_F(WrongMessagesTest, LongFieldsOfAWorkerAreRefused) {
  const auto hello = [this](WorkerHello hello) {
    auto inbox = std::make_shared<WorkerInbox>();
    hello.worker = WorkerId(1);
    core_->OnMessage(core_->OpenWorker(inbox), hello);
    return inbox->finished.value_or(absl::OkStatus());
  };
  const std::string text(4097, 'x');
  EXPECT_THAT(hello({.address = text}).message(), HasSubstr("worker_address has 4097 bytes"));
  EXPECT_THAT(hello({.address = "a:1", .tags = {text}}).message(),
              HasSubstr("a worker tag has 4097 bytes"));
  EXPECT_THAT(hello({.address = "a:1", .tags = std::vector<std::string>(257)}).message(),
              HasSubstr("worker_tags has 257 tags"));
  EXPECT_THAT(hello({.address = "a:1", .offers = {{.protocol = std::string(65, 'p')}}}).message(),
              HasSubstr("the name of a transport has 65 bytes"));
  EXPECT_THAT(hello({.address = "a:1", .permits = 20'000}).message(),
              HasSubstr("20000 permits; the limit is 4096"));
  EXPECT_EQ(core_->NumWorkers(), 0);
}

TEST_F(WrongMessagesTest, ASecondClientOnOneStreamEndsIt) {
  const JobAnswer job = MakeJob();
  auto inbox = std::make_shared<ClientInbox>();
  auto peer = core_->OpenClient(inbox);
  core_->OnMessage(peer, HelloOf(job, 5));
  EXPECT_FALSE(inbox->finished.has_value());
  core_->OnMessage(peer, HelloOf(job, 6));
  ASSERT_TRUE(inbox->finished.has_value());
  EXPECT_EQ(inbox->finished->code(), absl::StatusCode::kInvalidArgument);
  core_->OnClosed(peer);
  Pass(absl::Minutes(10));
  EXPECT_TRUE(Status().jobs.empty()) << "a job that nobody reads is forgotten";
}

TEST_F(WrongMessagesTest, ASecondWorkerOnOneStreamEndsItAndNoneIsConnected) {
  auto inbox = std::make_shared<WorkerInbox>();
  auto peer = core_->OpenWorker(inbox);
  core_->OnMessage(peer, WorkerHello{.worker = WorkerId(1), .address = "a:1", .permits = 1});
  core_->OnMessage(peer, WorkerHello{.worker = WorkerId(2), .address = "b:1", .permits = 1});
  ASSERT_TRUE(inbox->finished.has_value());
  EXPECT_EQ(inbox->finished->code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(core_->NumWorkers(), 0);
}

TEST_F(WrongMessagesTest, AnUnreadableOneIsLoggedAndItsWorkerMayReturn) {
  auto inbox = std::make_shared<WorkerInbox>();
  auto peer = core_->OpenWorker(inbox);
  core_->OnMessage(peer, WorkerHello{.worker = WorkerId(0xab), .address = "a:1", .permits = 1});
  const Counter& counter = ProcessMetrics().GetCounter("penstock_dispatcher_events_total", "",
                                                       {{"event", "unreadable"}});
  const int64_t before = counter.value();
  core_->OnUnreadable(peer, absl::InvalidArgumentError("3 bytes"));
  EXPECT_EQ(counter.value(), before + 1);
  EXPECT_EQ(ToString(events_->WaitFor("unreadable", absl::ZeroDuration())),
            "unreadable worker=ab why=\"3 bytes\"");
  ASSERT_TRUE(inbox->finished.has_value());
  EXPECT_EQ(inbox->finished->code(), absl::StatusCode::kAborted);
  EXPECT_EQ(inbox->messages.size(), 1u) << "the welcome, and no refusal";
}

TEST_F(WrongMessagesTest, AnUnreadableOneIsLoggedAndItsClientHearsWhy) {
  const JobAnswer job = MakeJob();
  auto inbox = std::make_shared<ClientInbox>();
  auto peer = core_->OpenClient(inbox);
  core_->OnMessage(peer, HelloOf(job, 5));
  core_->OnUnreadable(peer, absl::InvalidArgumentError("3 bytes"));
  EXPECT_EQ(ToString(events_->WaitFor("unreadable", absl::ZeroDuration())),
            "unreadable client=5 why=\"3 bytes\"");
  const absl::Status error = inbox->First<SessionError>().status;
  EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(error.message()),
              HasSubstr("cannot read a message from client 5: 3 bytes"));
  EXPECT_EQ(inbox->finished, error);
  core_->OnClosed(peer);
  Pass(absl::Minutes(10));
  EXPECT_TRUE(Status().jobs.empty()) << "a job that nobody reads is forgotten";
}

// To handle this row by row would take for ever, with the dispatcher's lock held.
TEST_F(WrongMessagesTest, AConsumerThatSaysItIsFarAheadHoldsNobodyUp) {
  const JobAnswer job = MakeJob(/*consumers=*/2);
  auto inbox = std::make_shared<WorkerInbox>();
  auto worker = core_->OpenWorker(inbox);
  core_->OnMessage(worker, WorkerHello{.worker = WorkerId(1), .address = "a:1", .permits = 1});
  auto first = core_->OpenClient(std::make_shared<ClientInbox>());
  auto second = core_->OpenClient(std::make_shared<ClientInbox>());
  core_->OnMessage(first, HelloOf(job, 5, 0));
  core_->OnMessage(second, HelloOf(job, 6, 1));
  const IndexSet far = IndexSet::Of(0, int64_t{1} << 45);
  core_->OnMessage(first, Report{{{PartitionId(1), Placement(1), far, {}}}});
  core_->OnMessage(worker, Bookmark{inbox->First<Assign>().of, 4, "position", {}});
  core_->OnMessage(worker, WorkerLeave{});
  EXPECT_EQ(Status().jobs.size(), 1u);
}

class AgreeingConsumersTest : public WrongMessagesTest {
 protected:
  AgreeingConsumersTest() {
    const JobAnswer job = MakeJob(/*consumers=*/2);
    core_->OnMessage(worker_, WorkerHello{.worker = WorkerId(1), .address = "a:1", .permits = 1});
    for (size_t c = 0; c < 2; ++c) core_->OnMessage(peers_[c], HelloOf(job, 5 + c, int64_t(c)));
  }
  // Both consumers have received rows [0, rows) of the only partition.
  void ReportReceived(int64_t rows, const protocol::RoundsReport& rounds) {
    const IndexSet received = IndexSet::Of(0, rows);
    for (const auto& peer : peers_) {
      core_->OnMessage(peer, Report{{{PartitionId(1), Placement(1), {}, received}}, rounds});
    }
  }
  // Returns the number of rounds that were announced to the consumer.
  size_t RoundsAnnouncedTo(size_t consumer) const {
    size_t rounds = 0;
    for (const ClientDown& message : inbox_[consumer]->messages) {
      if (const auto* agreed = std::get_if<Agreed>(&message)) rounds += agreed->rounds.size();
    }
    return rounds;
  }

  const std::shared_ptr<ClientInbox> inbox_[2] = {std::make_shared<ClientInbox>(),
                                                  std::make_shared<ClientInbox>()};
  const std::shared_ptr<ClientPeer> peers_[2] = {core_->OpenClient(inbox_[0]),
                                                 core_->OpenClient(inbox_[1])};
  const std::shared_ptr<WorkerPeer> worker_ = core_->OpenWorker(std::make_shared<WorkerInbox>());
};

// To handle this round by round would take for ever, with the dispatcher's lock held.
TEST_F(AgreeingConsumersTest, AreRefusedRoundsThatWereNotAnnounced) {
  ReportReceived(2, {});
  EXPECT_EQ(RoundsAnnouncedTo(0), 2u);
  const protocol::RoundsReport far{.delivered = int64_t{1} << 60, .known = int64_t{1} << 60};
  for (size_t c = 0; c < 2; ++c) {
    core_->OnMessage(peers_[c], Report{{}, far});
    ASSERT_TRUE(inbox_[c]->finished.has_value());
    EXPECT_EQ(inbox_[c]->finished->code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(inbox_[c]->finished->message()),
                HasSubstr(absl::StrCat("consumer ", c,
                                       " claims to know 1152921504606846976 "
                                       "rounds, but was sent only 2")));
  }
}

TEST_F(AgreeingConsumersTest, AreSentNoMoreRoundsAtATimeThanAnyCouldHold) {
  ReportReceived(int64_t{1} << 45, {});
  EXPECT_EQ(RoundsAnnouncedTo(0), size_t{1} << 20);
  EXPECT_FALSE(inbox_[0]->finished.has_value());
}

TEST_F(AgreeingConsumersTest, WithABudgetForEverythingAreSentNoMoreThanThat) {
  ReportReceived(1, {.receive_budget = std::numeric_limits<int64_t>::max()});
  EXPECT_EQ(RoundsAnnouncedTo(1), 1u);
  EXPECT_EQ(Status().jobs.size(), 1u);
}

TEST_F(AgreeingConsumersTest, AreRefusedErrorsOfMoreRoundsThanThereAre) {
  protocol::RoundsReport report;
  for (int64_t row = 0; row < 1 << 15; ++row)
    report.errors.push_back({{PartitionId(1), row}, "late", 1});
  core_->OnMessage(peers_[0], Report{{}, report});
  ASSERT_TRUE(inbox_[0]->finished.has_value());
  EXPECT_THAT(std::string(inbox_[0]->finished->message()), HasSubstr("more than 16384 rounds"));
  core_->OnMessage(peers_[1],
                   Report{{}, protocol::RoundsReport{.errors = {{{PartitionId(9), 0}}}}});
  ASSERT_TRUE(inbox_[1]->finished.has_value());
  EXPECT_THAT(std::string(inbox_[1]->finished->message()),
              HasSubstr("does not belong to this iteration"));
}

// One consumer has the even rows, the other has the odd rows.
TEST_F(AgreeingConsumersTest, WithoutACommonRowHoldNobodyUp) {
  for (size_t c = 0; c < 2; ++c) {
    IndexSet rows;
    for (int64_t row = int64_t(c); row < 1 << 20; row += 2) rows.Add(row);
    core_->OnMessage(peers_[c], Report{{{PartitionId(1), Placement(1), rows, {}}}});
  }
  core_->OnMessage(worker_, WorkerLeave{});
  EXPECT_EQ(Status().jobs.size(), 1u);
}

TEST_F(WrongMessagesTest, AnEndOfAnUnknownPartitionIsIgnored) {
  auto request = JobRequest();
  request.terms.deterministic = true;
  request.terms.partitions = 2;
  JobAnswer job;
  core_->GetOrCreateJob(request, [&](const auto& answer) { job = *answer; });
  auto worker_inbox = std::make_shared<WorkerInbox>();
  const auto worker = core_->OpenWorker(worker_inbox);
  core_->OnMessage(worker, WorkerHello{.worker = WorkerId(1), .address = "a:1", .permits = 2});
  auto inbox = std::make_shared<ClientInbox>();
  core_->OnMessage(core_->OpenClient(inbox), HelloOf(job, 1));
  const PlacedPartition of = worker_inbox->First<Assign>().of;
  const size_t before = inbox->messages.size();
  for (const uint64_t partition : {uint64_t{0}, uint64_t{3}, uint64_t{1} << 40}) {
    PlacedPartition unknown = of;
    unknown.partition = PartitionId(partition);
    core_->OnMessage(worker, Ended{unknown, 5});
    Pass(absl::Seconds(1));
  }
  EXPECT_EQ(inbox->messages.size(), before);
  EXPECT_EQ(core_->NumWorkers(), 1);
}

TEST_F(WrongMessagesTest, AWorkerForMorePartitionsThanAnyRunsIsRefused) {
  auto inbox = std::make_shared<WorkerInbox>();
  core_->OnMessage(
      core_->OpenWorker(inbox),
      WorkerHello{
          .worker = WorkerId(1), .address = "a:1", .permits = std::numeric_limits<int32_t>::max()});
  ASSERT_TRUE(inbox->finished.has_value());
  EXPECT_EQ(inbox->finished->code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(inbox->finished->message()),
              HasSubstr("the worker at a:1 has 2147483647 permits; the limit is 4096"));
  EXPECT_EQ(core_->NumWorkers(), 0);
}

}  // namespace
}  // namespace penstock::control
