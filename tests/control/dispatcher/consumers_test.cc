// SPDX-License-Identifier: Apache-2.0
// Consumers of a coordinated read that the dispatcher no longer hears, the messages that the others
// get about them, and steps in which all must return the same row. Tests the core with a clock that
// the test sets.
#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "control/dispatcher/core.h"
#include "control/observe/metrics.h"
#include "control/sync/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/fixed_tokens.h"
#include "tests/eventually.h"

namespace penstock::control {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The messages sent over a consumer's stream, in order.
class ConsumerInbox final : public ClientStreamWriter {
 public:
  void Send(ClientDown message, uint64_t) override {
    MutexLock lock(mu_);
    messages_.push_back(std::move(message));
  }
  void Finish(const absl::Status& status) override {
    MutexLock lock(mu_);
    finished_ = status;
  }

  // Returns the latest list of lost consumers since the last call; "-" if none came. A dead
  // consumer is marked with "+", one whose connection ended with "/". The seconds of its silence
  // follow.
  std::string Lost() {
    MutexLock lock(mu_);
    std::string text = "-";
    for (const ClientDown& message : messages_) {
      const auto* lost = std::get_if<ConsumersLost>(&message);
      if (lost == nullptr) continue;
      text.clear();
      for (const ConsumersLost::Consumer& its : lost->consumers) {
        absl::StrAppend(&text, its.consumer, its.ended ? "/" : "", its.dead ? "+" : "", " ",
                        absl::ToDoubleSeconds(its.silent), " ");
      }
    }
    messages_.clear();
    return text;
  }
  bool HasEnded() const {
    MutexLock lock(mu_);
    return std::any_of(messages_.begin(), messages_.end(), [](const ClientDown& message) {
      return std::holds_alternative<End>(message);
    });
  }
  absl::Status finished() const {
    MutexLock lock(mu_);
    return finished_;
  }

 private:
  mutable Mutex mu_;
  std::deque<ClientDown> messages_ GUARDED_BY(mu_);
  absl::Status finished_ GUARDED_BY(mu_);
};

// The partition that a worker was assigned.
class Assigned final : public WorkerStreamWriter {
 public:
  void Send(WorkerDown message, uint64_t) override {
    if (const auto* assign = std::get_if<Assign>(&message)) of = assign->of;
  }
  void Finish(const absl::Status&) override {}

  std::optional<PlacedPartition> of;
};

struct Consumer {
  std::shared_ptr<ConsumerInbox> inbox;
  std::shared_ptr<ClientPeer> peer;
};

class ConsumersTest : public ::testing::Test {
 protected:
  static constexpr int64_t kConsumers = 3;

  ConsumersTest() {
    CoreOptions options;
    options.client_timeout = absl::Seconds(10);
    options.now = [this] {
      if (at_now_) std::exchange(at_now_, nullptr)();
      return now_;
    };
    options.random = [this] { return ++random_; };
    options.job_tokens = FixedTokens;
    options.port_refuses = [](const std::string&) { return false; };
    options.events = events_;
    options.check_kept = [] { return true; };
    core_ = Core::Open(std::move(options), OpenMemoryJournal()).value();
    DatasetSummary summary{.fingerprint = 11,
                           .cardinality = kInfinite,
                           .nodes = {{"Range#0", 1}},
                           .plan = {{.node = "Range#0", .count = 100}}};
    core_->RegisterDataset({.definition = "definition", .summary = summary},
                           [this](const auto& answer) { dataset_ = answer->dataset_id; });
    core_->GetOrCreateJob(
        {.name = "job",
         .dataset_id = dataset_,
         .terms = {.mode = ShardingPolicy::kDynamic, .num_consumers = kConsumers}},
        [this](const auto& answer) { job_ = *answer; });
    for (int64_t i = 0; i < kConsumers; ++i) consumers_.push_back(Join(i));
    for (const Consumer& consumer : consumers_) EXPECT_EQ(consumer.inbox->Lost(), "");
  }

  Consumer Join(int64_t number, uint64_t incarnation = 1) {
    Consumer consumer{std::make_shared<ConsumerInbox>(), nullptr};
    consumer.peer = core_->OpenClient(consumer.inbox);
    core_->OnMessage(consumer.peer, ClientHello{.job = job_.job,
                                                .client = ClientId(100 + number),
                                                .incarnation = Incarnation(incarnation),
                                                .state = std::nullopt,
                                                .consumer = number,
                                                .token = job_.token});
    return consumer;
  }
  void Beat(int64_t number, std::vector<StepMark> marks = {}) {
    core_->OnMessage(consumers_[number].peer, ClientHeartbeat{.marks = std::move(marks)});
  }
  // Lets time pass in quarters of a second, as the sweeper does; only `living` are heard.
  void Pass(absl::Duration time, const std::vector<int64_t>& living) {
    for (const absl::Time until = now_ + time; now_ < until;) {
      now_ += absl::Milliseconds(250);
      for (int64_t number : living) Beat(number);
      core_->Sweep();
    }
  }
  std::string WaitsFor() {
    std::string waits_for;
    core_->GetStatus([&](const absl::StatusOr<DispatcherStatus>& status) {
      waits_for = status->jobs.at(0).iterations.at(0).waits_for;
    });
    return waits_for;
  }
  int Events(std::string_view name) const {
    int count = 0;
    for (const Event& event : events_->All()) count += event.name == name ? 1 : 0;
    return count;
  }

  absl::Time now_ = absl::UnixEpoch();
  std::function<void()> at_now_;  // called once
  uint64_t random_ = 0;
  const std::shared_ptr<CapturedEvents> events_ = CapturedEvents::Make();
  std::unique_ptr<Core> core_;
  std::string dataset_;
  JobAnswer job_;
  std::vector<Consumer> consumers_;
};

TEST_F(ConsumersTest, ABrokenConnectionIsSuspectedAtOnce) {
  Pass(absl::Seconds(1), {0, 1, 2});
  EXPECT_EQ(consumers_[0].inbox->Lost(), "-");
  now_ += absl::Milliseconds(500);
  core_->OnClosed(consumers_[2].peer);
  EXPECT_EQ(consumers_[0].inbox->Lost(), "2/ 0.5 ");
  EXPECT_EQ(consumers_[1].inbox->Lost(), "2/ 0.5 ");
  EXPECT_EQ(consumers_[2].inbox->Lost(), "-");
  EXPECT_EQ(WaitsFor(), "consumer 2, silent for 500ms (its connection to the dispatcher ended)");
  EXPECT_EQ(events_->WaitFor("consumer_suspected", absl::Seconds(1)).field("consumer"), "2");
  EXPECT_THAT(ProcessMetrics().Render(),
              HasSubstr("penstock_dispatcher_lost_consumers{state=\"suspected\"} 1"));
}

TEST_F(ConsumersTest, ASilentConsumerIsSuspectedWithinTwoSeconds) {
  Pass(absl::Milliseconds(1500), {0, 1});
  EXPECT_EQ(consumers_[0].inbox->Lost(), "-");
  Pass(absl::Milliseconds(500), {0, 1});
  EXPECT_EQ(consumers_[0].inbox->Lost(), "2 1.75 ");
  Beat(2);
  EXPECT_EQ(consumers_[0].inbox->Lost(), "");  // nobody is lost
  EXPECT_THAT(WaitsFor(), Not(HasSubstr("silent")));
  EXPECT_EQ(Events("consumer_back"), 1);
  EXPECT_THAT(ProcessMetrics().Render(),
              HasSubstr("penstock_dispatcher_lost_consumers{state=\"suspected\"} 0"));
}

TEST_F(ConsumersTest, OneThatIsHeardWhileAnotherIsSuspectedIsNot) {
  Pass(absl::Milliseconds(1500), {0});
  now_ += absl::Milliseconds(250);
  Beat(0);
  std::thread heartbeat;
  const auto hear = [&] {  // the sweep holds the lock, has found 1 and 2 silent, and suspects 1
    const std::shared_ptr<ClientPeer> peer = consumers_[2].peer;
    heartbeat =
        std::thread([&, peer] { core_->OnMessage(peer, ClientHeartbeat{.at_quota = true}); });
    EXPECT_TRUE(Eventually([&] { return peer->at_quota.load(); })) << "the lease is not renewed";
  };
  at_now_ = [&] { at_now_ = hear; };  // the sweep's own look at the clock comes first
  core_->Sweep();
  heartbeat.join();
  EXPECT_EQ(consumers_[0].inbox->Lost(), "1 1.75 ");
  EXPECT_EQ(Events("consumer_suspected"), 1);
  EXPECT_EQ(Events("consumer_back"), 0);
}

// Streams are closed one by one. A consumer whose stream is still open would take an earlier one
// for a process that ended.
TEST_F(ConsumersTest, NobodyIsSuspectedWhenTheDispatcherEndsTheStreams) {
  core_->BeginToLeave();
  core_->OnClosed(consumers_[2].peer);
  EXPECT_EQ(consumers_[0].inbox->Lost(), "-");
}

TEST_F(ConsumersTest, ASilentConsumerIsReportedAgainWhenItEnds) {
  Pass(absl::Seconds(2), {0, 1});
  EXPECT_EQ(consumers_[0].inbox->Lost(), "2 1.75 ");
  core_->OnClosed(consumers_[2].peer);
  EXPECT_EQ(consumers_[0].inbox->Lost(), "2/ 2 ");
  EXPECT_EQ(Events("consumer_suspected"), 2);
}

TEST_F(ConsumersTest, AnAbsentConsumerIsDeadAfterTheTimeout) {
  core_->OnClosed(consumers_[1].peer);
  Pass(absl::Milliseconds(9750), {0, 2});
  EXPECT_EQ(consumers_[0].inbox->Lost(), "1/ 0 ");  // sent once
  EXPECT_EQ(Events("consumer_dead"), 0);
  Pass(absl::Milliseconds(250), {0, 2});
  EXPECT_EQ(consumers_[0].inbox->Lost(), "1/+ 10 ");
  EXPECT_EQ(consumers_[2].inbox->Lost(), "1/+ 10 ");
  EXPECT_EQ(Events("consumer_dead"), 1);
  EXPECT_THAT(WaitsFor(), HasSubstr("consumer 1, dead, silent for 10s"));
  Pass(absl::Seconds(5), {0, 2});
  EXPECT_EQ(consumers_[0].inbox->Lost(), "-");
}

TEST_F(ConsumersTest, ALateConsumerHearsWhichAreLost) {
  core_->OnClosed(consumers_[1].peer);
  core_->OnClosed(consumers_[2].peer);
  consumers_[2] = Join(2);
  EXPECT_EQ(consumers_[2].inbox->Lost(), "1/ 0 ");
  EXPECT_EQ(consumers_[0].inbox->Lost(), "1/ 0 ");
}

// It may have heard of lost consumers before its connection ended.
TEST_F(ConsumersTest, AReturningConsumerHearsThatNoneIsLost) {
  core_->OnClosed(consumers_[1].peer);
  EXPECT_EQ(consumers_[2].inbox->Lost(), "1/ 0 ");
  core_->OnClosed(consumers_[2].peer);
  consumers_[1] = Join(1);
  consumers_[2] = Join(2);
  EXPECT_EQ(consumers_[2].inbox->Lost(), "");
}

// The record decides whose elements a consumer has, not the number its process was given.
TEST_F(ConsumersTest, AStateIsOfTheConsumerThatSavedIt) {
  const auto inbox = std::make_shared<ConsumerInbox>();
  core_->OnMessage(core_->OpenClient(inbox), ClientHello{.job = job_.job,
                                                         .client = ClientId(101),
                                                         .incarnation = Incarnation(2),
                                                         .state = std::vector<PartitionIndices>(),
                                                         .consumer = 2,
                                                         .token = job_.token});
  EXPECT_EQ(inbox->finished().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(inbox->finished().message()),
      AllOf(HasSubstr("the state belongs to consumer 1"), HasSubstr("consumer_index is 2")));
}

TEST_F(ConsumersTest, ALeavingConsumerIsNotSuspected) {
  core_->OnMessage(consumers_[1].peer, Leave{});
  core_->OnClosed(consumers_[1].peer);
  Pass(absl::Seconds(5), {0, 2});
  EXPECT_EQ(consumers_[0].inbox->Lost(), "-");
  EXPECT_EQ(Events("consumer_suspected"), 0);
}

StepMark Mark(int64_t step, int64_t row, uint64_t partition = 1) {
  return {step, {PartitionId(partition), row}};
}

int64_t StepsCompared() {
  return ProcessMetrics().GetCounter("penstock_dispatcher_steps_compared_total", "").value();
}

TEST_F(ConsumersTest, StepsThatAreAlikeAreCompared) {
  const int64_t before = StepsCompared();
  for (int64_t number = 0; number < kConsumers; ++number) {
    Beat(number, {Mark(6, 6), Mark(4, 4), Mark(0, 0)});
  }
  EXPECT_EQ(StepsCompared() - before, 6);  // two consumers after the first, three steps
  EXPECT_EQ(Events("step_torn"), 0);
}

TEST_F(ConsumersTest, AConsumerWithAnotherRowInAStepIsNamedToAll) {
  Beat(0, {Mark(4, 4)});
  Beat(1, {Mark(8, 4, 2), Mark(4, 4)});
  EXPECT_TRUE(consumers_[0].inbox->finished().ok());
  Beat(2, {Mark(8, 5, 2), Mark(4, 4)});
  for (const Consumer& consumer : consumers_) {
    EXPECT_EQ(consumer.inbox->finished().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(consumer.inbox->finished().message()),
                AllOf(HasSubstr("job job: step 8 is torn"),
                      HasSubstr("consumer(s) 1 returned row 4 of partition 2"),
                      HasSubstr("consumer(s) 2 returned row 5 of partition 2")));
  }
  EXPECT_EQ(Events("step_torn"), 1);
}

// A process that restarts may see other rows in steps that it had not committed.
TEST_F(ConsumersTest, MarksFromBeforeARestartAreForgotten) {
  Beat(0, {Mark(8, 8)});
  consumers_[0] = Join(0, /*incarnation=*/1);
  Beat(1, {Mark(8, 7)});
  Beat(0, {Mark(8, 7)});
  EXPECT_EQ(Events("step_torn"), 0);
}

// One round of one partition, which is all there is.
TEST_F(ConsumersTest, MarksAreForgottenWhenReadingEnds) {
  const auto writer = std::make_shared<Assigned>();
  const auto worker = core_->OpenWorker(writer);
  core_->OnMessage(worker, WorkerHello{.worker = WorkerId(1), .address = "worker:1"});
  ASSERT_TRUE(writer->of.has_value());
  core_->OnMessage(worker, AtEnd{*writer->of, kConsumers});
  core_->OnMessage(worker, Ended{*writer->of, kConsumers});
  const int64_t before = StepsCompared();
  Beat(0, {Mark(0, 0)});
  now_ += absl::Milliseconds(250);
  core_->Sweep();  // the mark is kept
  Beat(1, {Mark(0, 0)});
  EXPECT_EQ(StepsCompared() - before, 1);

  const PartitionReport all{.partition = writer->of->partition,
                            .placement = writer->of->placement,
                            .delivered = IndexSet::Of(0, 1)};
  for (int64_t rounds :
       {0, 1}) {  // first all agree on what was received, then all report it as delivered
    for (const Consumer& consumer : consumers_) {
      core_->OnMessage(consumer.peer,
                       Report{{all}, protocol::RoundsReport{.delivered = rounds, .known = rounds}});
    }
  }
  for (const Consumer& consumer : consumers_) ASSERT_TRUE(consumer.inbox->HasEnded()) << WaitsFor();
  now_ += absl::Milliseconds(250);
  core_->Sweep();
  Beat(2, {Mark(0, 0)});
  EXPECT_EQ(StepsCompared() - before, 1);  // there was no mark to compare it with
}

TEST(StepAuditTest, RemaindersAreNotCompared) {
  StepAudit audit;
  const IterationId id(1);
  EXPECT_FALSE(audit.Hear(id, 0, {{Mark(9, 1, 1)}}, /*remainders_begin=*/9));
  EXPECT_FALSE(audit.Hear(id, 1, {{Mark(9, 1, 2)}}, /*remainders_begin=*/9));
  EXPECT_TRUE(audit.Hear(id, 1, {{Mark(9, 1, 1)}}, /*remainders_begin=*/10) == std::nullopt);
  EXPECT_TRUE(audit.Hear(id, 0, {{Mark(9, 1, 2)}}, /*remainders_begin=*/10).has_value());
}

TEST(StepAuditTest, NamesIterationsUntilTheyAreForgotten) {
  StepAudit audit;
  EXPECT_THAT(audit.Iterations(), IsEmpty());
  audit.Hear(IterationId(1), 0, {{Mark(8, 8)}}, /*remainders_begin=*/9);
  audit.Hear(IterationId(2), 0, {{Mark(8, 8)}}, /*remainders_begin=*/9);
  EXPECT_THAT(audit.Iterations(), ElementsAre(IterationId(1), IterationId(2)));
  audit.Forget(IterationId(1));
  EXPECT_THAT(audit.Iterations(), ElementsAre(IterationId(2)));
}

}  // namespace
}  // namespace penstock::control
