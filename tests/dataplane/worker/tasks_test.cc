// SPDX-License-Identifier: Apache-2.0
// Partitions as the dispatcher assigns them, read over the local transport.
#include "dataplane/worker/tasks.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "control/env/fake_files.h"
#include "control/observe/metrics.h"
#include "control/protocol/trainer_token.h"
#include "control/sync/clock.h"
#include "dataplane/dataset/graph/definition.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/expr.h"
#include "penstock/sources.h"
#include "tests/eventually.h"

namespace penstock::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr IterationId kTasksIteration(4);
constexpr control::Reader kTrainer{ClientId(11), Incarnation(1)};

control::PlacedPartition Placed(uint64_t placement, uint64_t partition = 1) {
  return {kTasksIteration, PartitionId(partition), Placement(placement)};
}

control::SplitProvider RangeSplits(int64_t count) {
  control::SplitProvider provider;
  provider.node = "Range#0";
  provider.count = SplitCountFor(count);
  return provider;
}

// Collects a worker's messages, and waits for them.
class Heard {
 public:
  void Add(control::WorkerUp message) {
    std::lock_guard lock(mu_);
    messages_.push_back(std::move(message));
    changed_.notify_all();
  }
  // Returns the next message of that kind that was not returned yet; waits for it.
  template <class M>
  M Next() {
    std::unique_lock lock(mu_);
    std::optional<M> found;
    changed_.wait(lock, [&] {
      for (auto it = messages_.begin(); it != messages_.end(); ++it) {
        if (auto* message = std::get_if<M>(&*it)) {
          found = std::move(*message);
          messages_.erase(it);
          return true;
        }
      }
      return false;
    });
    return *std::move(found);
  }
  template <class M>
  bool Any() {
    std::lock_guard lock(mu_);
    for (const auto& message : messages_)
      if (std::holds_alternative<M>(message)) return true;
    return false;
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<control::WorkerUp> messages_;
};

// A client's end: the received elements, by identity and value.
class Trainer final : public transfer::ReceiveEvents {
 public:
  struct ReceivedElement {
    Identity identity;
    int64_t value = 0;
    absl::Status error;
  };

  void OnElements(absl::Span<Element> elements) override {
    for (Element& element : elements) {
      Add({element.identity(), element.tensor(0).data<int64_t>()[0], absl::OkStatus()});
    }
  }
  void OnError(const Identity& identity, const absl::Status& error) override {
    Add({identity, 0, error});
  }
  void OnRecalled(transfer::Credits) override {}
  void OnClosed(const absl::Status& reason) override {
    std::lock_guard lock(mu_);
    closed_ = reason;
    changed_.notify_all();
  }

  // Waits for `count` elements; returns all that were received.
  std::vector<ReceivedElement> Await(size_t count) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return received_.size() >= count; });
    return received_;
  }
  // Waits like Await(), or until the link is closed.
  std::vector<ReceivedElement> AwaitOrClosed(size_t count) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return received_.size() >= count || closed_.has_value(); });
    return received_;
  }
  absl::Status AwaitClosed() {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return closed_.has_value(); });
    return *closed_;
  }

 private:
  void Add(ReceivedElement received) {
    std::lock_guard lock(mu_);
    received_.push_back(std::move(received));
    changed_.notify_all();
  }
  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<ReceivedElement> received_;
  std::optional<absl::Status> closed_;
};

std::vector<int64_t> Values(const std::vector<Trainer::ReceivedElement>& received) {
  std::vector<int64_t> values;
  for (const auto& one : received) values.push_back(one.value);
  return values;
}
std::vector<Index> Indices(const std::vector<Trainer::ReceivedElement>& received) {
  std::vector<Index> indices;
  for (const auto& one : received) indices.push_back(one.identity.index);
  return indices;
}

class TasksTest : public ::testing::Test {
 protected:
  explicit TasksTest(int64_t job_buffer_budget_bytes = 0, int job_threads = 0) {
    context_ = std::make_shared<WorkerContext>(WorkerContextOptions{
        .permits = 1,
        .threads = 1,
        .job_threads = job_threads,
        .budget_bytes = 64 << 20,
        .buffer_budget_bytes = 16 << 20,
        .job_buffer_budget_bytes = job_buffer_budget_bytes,
        .files = &files_,
        .fetch = [this](std::string_view id, uint64_t) { return Fetch(std::string(id)); },
        .now = [this] { return Now(); }});
    context_->SetReporter([this](control::WorkerUp message) { heard_.Add(std::move(message)); });
    tasks_ = std::make_unique<Tasks>(context_);
    transport_ = *transfer::FindTransport("local");
    listener_ = *transport_->Listen(
        {}, [this](const transfer::Hello& hello, std::shared_ptr<transfer::SendLink> link) {
          return tasks_->Accept(hello, std::move(link));
        });
  }
  ~TasksTest() override {
    context_->SetReporter(nullptr);
    EXPECT_TRUE(tasks_->Stop(BootTime() + absl::Minutes(1)).ok());
  }

  // Registers the dataset and returns the assignment.
  control::Assign Order(const Dataset& dataset, control::PlacedPartition of,
                        ShardingPolicy mode = ShardingPolicy::kOff) {
    {
      std::lock_guard lock(mu_);
      dataset_ = dataset;
    }
    control::Assign assign;
    assign.of = of;
    assign.job = JobId(2);
    assign.token = "token";
    assign.dataset_id = "numbers";
    assign.dataset_edition = dataset.fingerprint();
    assign.terms.mode = mode;
    assign.seed = 7;
    assign.readers = {kTrainer};
    return assign;
  }

  struct Line {
    std::shared_ptr<Trainer> trainer = std::make_shared<Trainer>();
    std::unique_ptr<transfer::ReceiveLink> link;
  };
  Line Dial(int64_t credits, control::Reader reader = kTrainer,
            std::vector<transfer::Holding> holdings = {}, std::string token = "token") {
    Line line;
    transfer::DialOptions options;
    options.hello = {std::move(token), reader.client, reader.incarnation, kTasksIteration,
                     std::move(holdings)};
    options.spec = Spec(Scalar(kInt64));
    line.link = *transport_->Dial(listener_->address(), options, line.trainer);
    line.link->Grant({credits});
    return line;
  }

  absl::StatusOr<control::GetDatasetAnswer> Fetch(const std::string& id) {
    if (id != "numbers") return absl::NotFoundError("Dataset id " + id + " not found");
    std::lock_guard lock(mu_);
    control::GetDatasetAnswer answer;
    answer.dataset_id = id;
    answer.definition = *Serialize(dataset_);
    answer.summary.fingerprint = dataset_.fingerprint() + fingerprints_differ_by_;
    answer.summary.plan = plan_;
    return answer;
  }
  absl::Time Now() {
    std::lock_guard lock(mu_);
    return now_ += step_;
  }

  FakeFiles files_;
  std::mutex mu_;
  absl::Time now_ = absl::UnixEpoch();           // guarded by mu_
  absl::Duration step_ = absl::Milliseconds(1);  // time advances by this at each look at the clock
  Dataset dataset_;
  uint64_t fingerprints_differ_by_ = 0;  // set before an order
  std::vector<control::SplitProvider> plan_;
  Heard heard_;
  std::shared_ptr<WorkerContext> context_;
  std::unique_ptr<Tasks> tasks_;
  transfer::Transport* transport_;
  std::unique_ptr<transfer::Listener> listener_;
};

TEST_F(TasksTest, RunsAPartitionToItsEndAndSaysSo) {
  tasks_->Do(Order(Dataset::Range(5), Placed(3)));
  Line line = Dial(100);
  const auto received = line.trainer->Await(5);
  EXPECT_THAT(Values(received), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(Indices(received), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(received[2].identity,
            (Identity{JobId(2), kTasksIteration, PartitionId(1), Placement(3), 2, -1, -1}));
  EXPECT_EQ(heard_.Next<control::Ended>(), (control::Ended{Placed(3), 5}));
  EXPECT_THAT(tasks_->held(), ElementsAre(Placed(3)));
}

TEST_F(TasksTest, SendsOnlyElementsOutsideSkip) {
  control::Assign order = Order(Dataset::Range(10), Placed(1));
  order.skip.Add(0, 3);
  order.skip.Add(5, 9);
  tasks_->Do(order);
  Line line = Dial(100);
  EXPECT_THAT(Values(line.trainer->Await(3)), ElementsAre(3, 4, 9));
  EXPECT_EQ(heard_.Next<control::Ended>().elements, 10);
}

TEST_F(TasksTest, ReplaysFromABookmarkOfAnEarlierPlacement) {
  step_ = absl::Seconds(1);  // a bookmark every few elements
  const Dataset dataset = Dataset::Range(5000).Shuffle(10, {.seed = 3});
  tasks_->Do(Order(dataset, Placed(1)));
  Line line = Dial(5000);
  const std::vector<int64_t> all = Values(line.trainer->Await(5000));
  const control::Bookmark bookmark = heard_.Next<control::Bookmark>();
  ASSERT_GT(bookmark.index, 0);
  tasks_->Do(control::Unassign{Placed(1)});

  control::Assign again = Order(dataset, Placed(2));
  again.bookmark_index = bookmark.index;
  again.bookmark = bookmark.position;
  again.skip.Add(0, bookmark.index + 1);
  tasks_->Do(again);
  Line second = Dial(5000, kTrainer);
  const auto rest = second.trainer->Await(5000 - bookmark.index - 1);
  EXPECT_EQ(Values(rest), std::vector<int64_t>(all.begin() + bookmark.index + 1, all.end()));
  EXPECT_EQ(rest.front().identity.index, bookmark.index + 1);
}

TEST_F(TasksTest, SendsBookmarksNoMoreOftenThanTheDispatcherWants) {
  step_ = absl::Seconds(1);  // at each look at the clock; there are a few for each element
  context_->bookmark_interval_ns = absl::ToInt64Nanoseconds(absl::Seconds(2000));
  tasks_->Do(Order(Dataset::Range(5000), Placed(1)));
  Line line = Dial(5000);
  line.trainer->Await(5000);
  const Index first = heard_.Next<control::Bookmark>().index;
  EXPECT_LT(first, 200) << "which shows progress";
  EXPECT_GT(heard_.Next<control::Bookmark>().index, first + 200);
}

TEST_F(TasksTest, IgnoresAnOlderPlacementAndGivesWayToANewer) {
  tasks_->Do(Order(Dataset::Range(1'000'000), Placed(5)));
  tasks_->Do(Order(Dataset::Range(1'000'000), Placed(4)));
  EXPECT_THAT(tasks_->held(), ElementsAre(Placed(5)));
  tasks_->Do(control::Unassign{Placed(4)});
  EXPECT_EQ(tasks_->size(), 1);
  Line line = Dial(3);
  EXPECT_EQ(line.trainer->Await(3).front().identity.placement, Placement(5));

  control::Assign newer = Order(Dataset::Range(1'000'000), Placed(6));
  newer.skip.Add(0, 3);
  tasks_->Do(newer);
  EXPECT_THAT(tasks_->held(), ElementsAre(Placed(6)));
  line.link->Grant({1});
  EXPECT_EQ(line.trainer->Await(4).back().identity.placement, Placement(6));
  EXPECT_EQ(line.trainer->Await(4).back().value, 3);
  tasks_->Do(control::Unassign{Placed(6)});
  EXPECT_EQ(tasks_->size(), 0);
}

// A dispatcher without a journal gives its jobs the numbers of earlier jobs.
TEST_F(TasksTest, AnIterationOfAnotherDispatcherTakesThePlaceOfItsNamesake) {
  tasks_->Do(Order(Dataset::Range(1'000'000), Placed(5)));
  tasks_->Do(Order(Dataset::Range(1'000'000), Placed(1, 2)));
  Line before = Dial(1);
  before.trainer->Await(1);  // and its link stays open
  tasks_->Do(control::Unassign{Placed(5)});

  control::Assign order = Order(Dataset::Range(5), Placed(1));
  order.token = "another job's";
  tasks_->Do(order);
  Line line = Dial(100, kTrainer, {}, "another job's");
  EXPECT_THAT(Values(line.trainer->AwaitOrClosed(5)), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(before.trainer->AwaitClosed().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(tasks_->held(), ElementsAre(Placed(1)));
}

TEST_F(TasksTest, AnErrorStandsAtItsIndexAndReadingGoesOn) {
  const Dataset dataset =
      Dataset::Range(4).Map([](Expr x) { return 12 / (x - 2); });  // divides by zero at 2
  tasks_->Do(Order(dataset, Placed(1)));
  Line line = Dial(100);
  const auto received = line.trainer->Await(4);
  EXPECT_THAT(Indices(received), ElementsAre(0, 1, 2, 3));
  EXPECT_FALSE(received[2].error.ok());
  EXPECT_EQ(received[3].value, 12);
}

class TasksWithAJobLimitTest : public TasksTest {
 protected:
  TasksWithAJobLimitTest() : TasksTest(/*job_buffer_budget_bytes=*/1 << 20, /*job_threads=*/3) {}
};

TEST_F(TasksWithAJobLimitTest, ABufferBeyondTheLimitOfItsJobEndsItsOwnPartition) {
  tasks_->Do(Order(Dataset::Range(int64_t{1} << 40).Shuffle(int64_t{1} << 40), Placed(1)));
  const auto failed = heard_.Next<control::PartitionFailed>();
  EXPECT_TRUE(absl::IsResourceExhausted(failed.status)) << failed.status;
  EXPECT_THAT(std::string(failed.status.message()),
              testing::ContainsRegex("this job on this worker have .* of 1048576 bytes.*"
                                     "job_buffer_budget_bytes"));
  EXPECT_EQ(context_->job_buffers.Of(JobId(1)), context_->job_buffers.Of(JobId(1)));
  EXPECT_NE(context_->job_buffers.Of(JobId(1)).get(), &context_->buffers);
}

TEST_F(TasksWithAJobLimitTest, EachJobHasThreadsOfItsOwnWhileItHasPartitions) {
  const std::shared_ptr<ThreadPool> its = context_->job_threads.Of(JobId(1));
  EXPECT_EQ(its->threads(), 3);
  EXPECT_EQ(context_->job_threads.Of(JobId(1)), its);
  EXPECT_NE(context_->job_threads.Of(JobId(2)), its);
  const std::weak_ptr<ThreadPool> of_2 = context_->job_threads.Of(JobId(2));
  EXPECT_TRUE(of_2.expired()) << "nobody holds it";
}

TEST_F(TasksTest, WithoutALimitJobsShareTheThreadsOfTheProcess) {
  EXPECT_EQ(context_->job_threads.Of(JobId(1)), nullptr);
  EXPECT_EQ(context_->job_buffers.Of(JobId(1)).get(), &context_->buffers);
}

TEST_F(TasksTest, ABufferBeyondTheBudgetEndsItsOwnPartition) {
  tasks_->Do(Order(Dataset::Range(int64_t{1} << 40).Shuffle(int64_t{1} << 40), Placed(1)));
  const auto failed = heard_.Next<control::PartitionFailed>();
  EXPECT_EQ(failed.of, Placed(1));
  EXPECT_TRUE(absl::IsResourceExhausted(failed.status)) << failed.status;
  EXPECT_THAT(std::string(failed.status.message()), testing::HasSubstr("buffer_budget_bytes"));
  tasks_->Do(control::Unassign{Placed(1)});
  tasks_->Do(Order(Dataset::Range(5).Shuffle(5), Placed(2)));
  Line line = Dial(100);
  EXPECT_THAT(Values(line.trainer->Await(5)), testing::UnorderedElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(context_->buffers.taken(), 0);
}

TEST_F(TasksTest, ReadsTheSplitsItIsGiven) {
  const Dataset dataset = Dataset::Range(40);
  plan_ = {RangeSplits(40)};
  control::Assign order = Order(dataset, Placed(1), ShardingPolicy::kDynamic);
  const int64_t last = SplitCountFor(40) - 1;
  order.splits = {{.numbers = {last}}};  // replayed from the journal
  tasks_->Do(order);
  Line line = Dial(100);
  const auto request = heard_.Next<control::SplitRequest>();
  EXPECT_EQ(request.of, Placed(1));
  EXPECT_EQ(request.first_ordinal, 1);
  tasks_->Do(control::Splits{Placed(1), {.first_ordinal = 1, .numbers = {0}, .no_more = true}});
  const control::Ended ended = heard_.Next<control::Ended>();
  const auto [begin, end] = SplitOf(40, last + 1, last);
  const auto received = line.trainer->Await(ended.elements);
  EXPECT_EQ(received.front().value, begin);
  EXPECT_EQ(received[end - begin].value, 0);
}

TEST_F(TasksTest, RepeatsUnansweredMessagesOnANewStream) {
  plan_ = {RangeSplits(40)};
  tasks_->Do(Order(Dataset::Range(40), Placed(1), ShardingPolicy::kDynamic));
  const auto request = heard_.Next<control::SplitRequest>();
  tasks_->SayAgain();
  EXPECT_EQ(heard_.Next<control::SplitRequest>(), request);
  tasks_->Do(control::Splits{Placed(1), {.numbers = {}, .no_more = true}});
  const auto ended = heard_.Next<control::Ended>();
  tasks_->SayAgain();
  EXPECT_EQ(heard_.Next<control::Ended>(), ended);
}

TEST_F(TasksTest, GoesOnOverANewLinkWithoutRepeatingElements) {
  tasks_->Do(Order(Dataset::Range(6), Placed(1)));
  {
    Line line = Dial(4);
    line.trainer->Await(4);
  }  // the last may be in doubt now, and the end waits for the client's answer
  Line again = Dial(100, kTrainer, {{PartitionId(1), Placement(1), IndexSet::Of(0, 4)}});
  heard_.Next<control::Ended>();
  EXPECT_THAT(Indices(again.trainer->Await(2)), ElementsAre(4, 5));
}

TEST_F(TasksTest, ServesAReaderThatJoins) {
  tasks_->Do(Order(Dataset::Range(4), Placed(1)));
  const control::Reader joins{ClientId(12), Incarnation(9)};
  Line early = Dial(2, joins);
  tasks_->Do(control::AddReader{Placed(1), joins});
  EXPECT_THAT(Values(early.trainer->Await(2)), ElementsAre(0, 1));
  Line line = Dial(2);
  EXPECT_THAT(Values(line.trainer->Await(2)), ElementsAre(2, 3));
}

TEST_F(TasksTest, SaysWhyAPartitionCannotRun) {
  control::Assign order = Order(Dataset::Range(4), Placed(1));
  order.dataset_id = "gone";
  tasks_->Do(order);
  const auto failed = heard_.Next<control::PartitionFailed>();
  EXPECT_EQ(failed.status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(failed.of, Placed(1));
  EXPECT_FALSE(failed.refuses_dataset);
}

TEST_F(TasksTest, RefusesADatasetThatItWouldPrepareDifferently) {
  fingerprints_differ_by_ = 1;
  tasks_->Do(Order(Dataset::Range(4), Placed(1)));
  const auto failed = heard_.Next<control::PartitionFailed>();
  EXPECT_EQ(failed.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(failed.refuses_dataset);
}

// Another worker can read it.
TEST_F(TasksTest, DoesNotRefuseADatasetForABookmarkOfALaterRelease) {
  control::Assign order = Order(Dataset::Range(4), Placed(1));
  order.bookmark = "\x09";  // the version of the position
  order.bookmark_index = 2;
  tasks_->Do(order);
  const auto failed = heard_.Next<control::PartitionFailed>();
  EXPECT_EQ(failed.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(failed.refuses_dataset);
}

// Files of numbers; one of them fails.
class FailingFilesTest : public TasksTest {
 protected:
  FailingFilesTest() {
    files_.Put("a", "0\n1\n2\n");
    files_.Put("b", "3\n4\n");
    files_.Put("c", "5\n6\n7\n");
  }
  static Dataset Numbers() {
    return Dataset::TextLine({"a", "b", "c"}).Map([](Expr line) {
      return StringToNumber(line, kInt64);
    });
  }
};

TEST_F(FailingFilesTest, AnErrorOfTheMomentIsNoElement) {
  struct Case {
    const char* name;
    Dataset dataset;
    std::vector<int64_t> sorted;
  };
  const std::vector<int64_t> all = {0, 1, 2, 3, 4, 5, 6, 7};
  const Case cases[] = {
      {"in order", Numbers(), all},
      {"shuffled", Numbers().Shuffle(100, {.seed = 3}), all},
      {"filtered", Numbers().Filter([](Expr x) { return x >= 0; }), all},
      {"read ahead", Numbers().Prefetch(100), all},
      {"batched", Numbers().Batch(2).Map([](Expr x) { return ReduceSum(x, {0}); }), {1, 5, 9, 13}},
  };
  uint64_t placement = 0;
  for (const Case& of : cases) {
    SCOPED_TRACE(of.name);
    files_.FailFrom("b", 0, absl::UnavailableError("b is out of reach"));
    tasks_->Do(Order(of.dataset, Placed(++placement)));
    Line line = Dial(100);
    const auto failed = heard_.Next<control::PartitionFailed>();
    EXPECT_EQ(failed.status.code(), absl::StatusCode::kUnavailable) << failed.status;
    EXPECT_THAT(std::string(failed.status.message()), HasSubstr("b is out of reach"));
    EXPECT_FALSE(heard_.Any<control::Ended>());
    tasks_->Do(control::Unassign{Placed(placement)});
    for (const Trainer::ReceivedElement& received : line.trainer->Await(0))
      EXPECT_TRUE(received.error.ok());
    line.link.reset();  // the next partition's elements come over its own link

    files_.FailFrom("b", 0, absl::OkStatus());
    tasks_->Do(Order(of.dataset, Placed(++placement)));
    Line again = Dial(100);
    EXPECT_THAT(Values(again.trainer->Await(of.sorted.size())),
                ::testing::UnorderedElementsAreArray(of.sorted));
    EXPECT_EQ(heard_.Next<control::Ended>().elements, static_cast<Index>(of.sorted.size()));
    tasks_->Do(control::Unassign{Placed(placement)});
  }
}

TEST_F(FailingFilesTest, AnErrorInTheDataIsOne) {
  files_.FailFrom("b", 0, absl::DataLossError("b is damaged"));
  tasks_->Do(Order(Numbers(), Placed(1)));
  Line line = Dial(100);
  const auto received = line.trainer->Await(7);
  EXPECT_THAT(Values(received), ElementsAre(0, 1, 2, 0, 5, 6, 7));
  EXPECT_EQ(received[3].error.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(heard_.Next<control::Ended>().elements, 7);
}

TEST_F(TasksTest, RefusesLinksToUnknownIterationsAndWithoutTheToken) {
  EXPECT_EQ(Dial(1).trainer->AwaitClosed().code(), absl::StatusCode::kUnavailable);
  tasks_->Do(Order(Dataset::Range(4), Placed(1)));
  EXPECT_EQ(Dial(1, kTrainer, {}, "guessed").trainer->AwaitClosed().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(TasksTest, ReportsItsWorkAndTheEndOfAPartition) {
  tasks_->Do(Order(Dataset::Range(100), Placed(1)));
  EXPECT_THAT(tasks_->Work(),
              ElementsAre(control::IterationWork{.iteration = kTasksIteration, .partitions = 1}));
  Line line = Dial(/*credits=*/1);
  // An element is counted once it is whole and sent.
  for (size_t count = 1; tasks_->Work()[0].elements < 10; ++count) {
    line.trainer->Await(count);
    line.link->Grant({1});
  }
  EXPECT_GT(tasks_->Work()[0].busy, absl::ZeroDuration());
  line.link->Grant({100});
  heard_.Next<control::Ended>();
  EXPECT_EQ(tasks_->Work()[0].partitions, 0);
}

// No more assignments come, and the thread of the last partition ends by itself.
TEST_F(TasksTest, ReleasesAnUnusedWindow) {
  Gauge& cached = ProcessMetrics().GetGauge("penstock_worker_cross_trainer_cache_bytes", "");
  control::Assign order = Order(Dataset::Range(1'000'000), Placed(1));
  order.terms.cross_trainer_cache = true;
  tasks_->Do(order);
  {
    Line line = Dial(10, kTrainer, {}, control::TrainerToken("token", "anna"));
    line.trainer->Await(10);
    EXPECT_GT(cached.value(), 0);
    tasks_->Do(control::Unassign{Placed(1)});
  }
  EXPECT_TRUE(Eventually([&] {
    tasks_->ForgetIdle();
    return cached.value() == 0;
  }));
}

TEST_F(TasksTest, StopClosesLinksAndEndsPartitionsThatWait) {
  tasks_->Do(Order(Dataset::Range(1'000'000), Placed(1)));
  Line line = Dial(1);
  line.trainer->Await(1);
  EXPECT_TRUE(tasks_->Stop(BootTime() + absl::Minutes(1)).ok());
  EXPECT_EQ(line.trainer->AwaitClosed().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(tasks_->held(), IsEmpty());
}

}  // namespace
}  // namespace penstock::worker
