// SPDX-License-Identifier: Apache-2.0
// Processes that go away in the middle of an epoch. Each element must come once all the same.
#include <chrono>
#include <future>
#include <optional>
#include <set>
#include <vector>

#include "dataplane/dataset/engine/interruptible.h"
#include "tests/cluster/cluster.h"
#include "tests/cluster/temporary_folder.h"

namespace penstock {
namespace {

constexpr int64_t kJobElements = 5000;

// Returns "" if `values` are 0 … count - 1, each once; else the lost and the doubled ones.
std::string Differences(const std::vector<int64_t>& values, int64_t count = kJobElements) {
  std::vector<int> seen(count, 0);
  for (int64_t value : values) ++seen.at(value);
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    if (seen[i] != 1) absl::StrAppend(&text, seen[i] == 0 ? "lost " : "doubled ", i, "; ");
  return text;
}

// A job with a window so small that the epoch cannot end before anything happens.
Dataset Job(const Cluster& cluster, std::string name = "", AckMode ack_mode = AckMode::kOnDelivery,
            int64_t count = kJobElements) {
  DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic, std::move(name));
  options.max_outstanding_requests = 64;
  options.ack_mode = ack_mode;
  return Dataset::Range(count).Map([](auto x) { return x + 0; }).Distribute(options);
}

std::vector<int64_t> ReadSome(Iterator& it, int64_t count) {
  std::vector<int64_t> values;
  while (static_cast<int64_t>(values.size()) < count) {
    absl::StatusOr<std::optional<Element>> element = it.Next();
    EXPECT_TRUE(element.ok()) << element.status();
    if (!element.ok() || !element->has_value()) break;
    values.push_back((*element)->tensor(0).scalar<int64_t>());
  }
  return values;
}

std::vector<int64_t> Together(std::vector<int64_t> a, const std::vector<int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return Sorted(std::move(a));
}

TEST(Faults, AWorkerThatStopsLosesAndDoublesNothing) {
  Cluster cluster(2);
  absl::StatusOr<Iterator> it = Job(cluster).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  std::vector<int64_t> first = ReadSome(*it, kJobElements / 3);
  cluster.RemoveWorker(0);
  EXPECT_EQ(Differences(Together(std::move(first), ReadAll(*it))), "");
}

TEST(Faults, TheOnlyWorkerMayBeReplacedByAnother) {
  Cluster cluster(1);
  absl::StatusOr<Iterator> it = Job(cluster).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  std::vector<int64_t> first = ReadSome(*it, kJobElements / 3);
  cluster.RemoveWorker(0);
  cluster.AddWorker();
  EXPECT_EQ(Differences(Together(std::move(first), ReadAll(*it))), "");
}

TEST(Faults, AWorkerThatJoinsTakesPart) {
  Cluster cluster(1);
  absl::StatusOr<Iterator> it = Job(cluster).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  std::vector<int64_t> first = ReadSome(*it, kJobElements / 10);
  cluster.AddWorker();
  EXPECT_EQ(Differences(Together(std::move(first), ReadAll(*it))), "");
  EXPECT_EQ(cluster.dispatcher().NumWorkers(), 2);
}

TEST(Faults, ADrainedWorkerHandsItsPartitionsOn) {
  Cluster cluster(2);
  absl::StatusOr<Iterator> it = Job(cluster).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  std::vector<int64_t> first = ReadSome(*it, kJobElements / 3);
  absl::Status drained = cluster.worker(0).Drain(absl::Seconds(30));
  EXPECT_TRUE(drained.ok()) << drained;
  EXPECT_EQ(Differences(Together(std::move(first), ReadAll(*it))), "");
}

// The buffer holds the whole job, so the first element comes after the job's end.
TEST(Faults, TheEndAfterAShuffleWaitsUntilTheDispatcherIsBack) {
  for (int64_t prefetched : {0, 1000}) {
    SCOPED_TRACE(prefetched);
    TemporaryFolder folder;
    Cluster cluster(1, {.work_dir = folder.path(), .fault_tolerant_mode = true});
    auto made = MakeInterruptible(Dataset::Range(100)
                                      .Distribute(cluster.Options(ShardingPolicy::kDynamic))
                                      .Shuffle(1000, {.seed = 1})
                                      .Prefetch(prefetched),
                                  {});
    ASSERT_TRUE(made.ok()) << made.status();
    InterruptibleIterator& interruptible = **made;
    Iterator it(*std::move(made));
    std::vector<int64_t> values = ReadSome(it, 1);
    cluster.StopDispatcher();
    values = Together(std::move(values), ReadSome(it, 99));
    EXPECT_FALSE(interruptible.NextBy(absl::Now() + absl::Milliseconds(50)).has_value());
    cluster.StartDispatcher();
    EXPECT_EQ(Differences(Together(std::move(values), ReadAll(it)), 100), "");
  }
}

TEST(Faults, ARestartedDispatcherGoesOnFromItsJournal) {
  TemporaryFolder folder;
  Cluster cluster(2, {.work_dir = folder.path(), .fault_tolerant_mode = true});
  absl::StatusOr<Iterator> it = Job(cluster).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  std::vector<int64_t> first = ReadSome(*it, kJobElements / 3);
  cluster.RestartDispatcher();
  EXPECT_EQ(Differences(Together(std::move(first), ReadAll(*it))), "");
}

TEST(Faults, AReaderThatStopsLeavesTheRestToTheOther) {
  Cluster cluster(2);
  absl::StatusOr<Iterator> stays = Job(cluster, "shared").MakeIterator();
  absl::StatusOr<Iterator> leaves = Job(cluster, "shared").MakeIterator();
  ASSERT_TRUE(stays.ok() && leaves.ok()) << stays.status() << leaves.status();
  std::vector<int64_t> delivered = ReadSome(*leaves, 100);
  std::vector<int64_t> first = ReadSome(*stays, 100);
  EXPECT_TRUE(leaves->Stop().ok());
  std::vector<int64_t> all = Together(std::move(first), ReadAll(*stays));
  EXPECT_EQ(Differences(Together(std::move(all), delivered)), "");
}

// Tests the count itself: if a dispatcher assigns a partition again without waiting for its
// readers' answers, elements must be seen twice.
TEST(Faults, WithoutTheFenceElementsComeTwice) {
  Cluster cluster(2, {}, protocol::Broken::kAssignWithoutFence);
  absl::StatusOr<Iterator> one = Job(cluster, "shared").MakeIterator();
  absl::StatusOr<Iterator> other = Job(cluster, "shared").MakeIterator();
  ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
  std::vector<int64_t> delivered;
  for (int i = 0; i < 10; ++i) {
    delivered = Together(std::move(delivered), ReadSome(*one, 100));
    delivered = Together(std::move(delivered), ReadSome(*other, 100));
  }
  cluster.RemoveWorker(0);
  const auto doubled = [&] {
    return std::set<int64_t>(delivered.begin(), delivered.end()).size() < delivered.size();
  };
  // Read alternately, so that each reader gets elements that the other had. Do not read to the end:
  // nothing then obliges the dispatcher to wait.
  while (!doubled()) {
    std::vector<int64_t> more = Together(ReadSome(*one, 50), ReadSome(*other, 50));
    if (more.empty()) break;
    delivered = Together(std::move(delivered), more);
  }
  EXPECT_TRUE(doubled());
}

TEST(Faults, ATrainerGoesOnFromItsCommittedState) {
  Cluster cluster(2);
  std::vector<int64_t> history;
  State state;
  {
    absl::StatusOr<Iterator> it = Job(cluster, "resumed", AckMode::kOnCommit).MakeIterator();
    ASSERT_TRUE(it.ok()) << it.status();
    history = ReadSome(*it, 1000);
    absl::StatusOr<State> saved = it->Save();
    ASSERT_TRUE(saved.ok()) << saved.status();
    state = *saved;
    EXPECT_LT(state.bytes.size(), 10 << 10);
    ASSERT_TRUE(it->Commit(state).ok());
    ReadSome(*it, 500);  // struck out: after the state
  }
  absl::StatusOr<Iterator> again = Job(cluster, "resumed", AckMode::kOnCommit).MakeIterator();
  ASSERT_TRUE(again.ok()) << again.status();
  absl::Status restored = again->Restore(state);
  ASSERT_TRUE(restored.ok()) << restored;
  EXPECT_EQ(Differences(Together(std::move(history), ReadAll(*again))), "");
}

TEST(Faults, ARestoredStateCanBeCommittedBeforeAnythingIsRead) {
  Cluster cluster(2);
  std::vector<int64_t> history;
  State state;
  {
    absl::StatusOr<Iterator> it = Job(cluster, "resumed", AckMode::kOnCommit).MakeIterator();
    ASSERT_TRUE(it.ok()) << it.status();
    history = ReadSome(*it, 100);
    absl::StatusOr<State> saved = it->Save();
    ASSERT_TRUE(saved.ok()) << saved.status();
    state = *saved;
    ReadSome(*it, 10);  // struck out
  }
  {
    absl::StatusOr<Iterator> again = Job(cluster, "resumed", AckMode::kOnCommit).MakeIterator();
    ASSERT_TRUE(again.ok()) << again.status();
    absl::Status restored = again->Restore(state);
    ASSERT_TRUE(restored.ok()) << restored;
    for (int times = 0; times < 2; ++times) {
      absl::Status committed = again->Commit(state);
      EXPECT_TRUE(committed.ok()) << committed;
    }
  }
  // Another client: elements that were not committed would come again here.
  absl::StatusOr<Iterator> other = Job(cluster, "resumed", AckMode::kOnCommit).MakeIterator();
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(Differences(Together(std::move(history), ReadAll(*other))), "");
}

TEST(Faults, AStateIsCommittedWhereTheLastRepetitionGaveThisReaderNothing) {
  Cluster cluster(2);
  const auto job = [&] { return Job(cluster, "shared", AckMode::kOnCommit).Repeat(2); };
  absl::StatusOr<Iterator> one = job().MakeIterator();
  absl::StatusOr<Iterator> other = job().MakeIterator();
  ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
  std::vector<int64_t> history = ReadSome(*one, 100);
  const size_t others = ReadAll(*other).size();  // the rest, and the whole second repetition
  history = Together(std::move(history), ReadAll(*one));
  EXPECT_EQ(history.size() + others, 2 * kJobElements);
  absl::StatusOr<State> state = one->Save();
  ASSERT_TRUE(state.ok()) << state.status();
  const absl::Status committed = one->Commit(*state);
  ASSERT_TRUE(committed.ok()) << committed;
  one = absl::CancelledError();  // its process ends
  absl::StatusOr<Iterator> again = job().MakeIterator();
  ASSERT_TRUE(again.ok()) << again.status();
  const absl::Status restored = again->Restore(*state);
  ASSERT_TRUE(restored.ok()) << restored;
  EXPECT_EQ(ReadAll(*again), std::vector<int64_t>());
}

TEST(Faults, AStopEndsASaveThatWaitsForTheDispatcher) {
  Cluster cluster(1);
  absl::StatusOr<Iterator> it = Job(cluster, "saved", AckMode::kOnCommit).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  ReadSome(*it, 10);
  cluster.dispatcher().Stop();
  auto saved = std::async(std::launch::async, [&] { return it->Save().status(); });
  EXPECT_EQ(saved.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  it->Stop(absl::Milliseconds(100)).IgnoreError();
  EXPECT_EQ(saved.get().code(), absl::StatusCode::kCancelled);
}

TEST(Faults, AForgottenStateIsNotCommitted) {
  Cluster cluster(1);
  absl::StatusOr<Iterator> it = Job(cluster, "resumed", AckMode::kOnCommit).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  ReadSome(*it, 10);
  absl::StatusOr<State> first = it->Save();
  ASSERT_TRUE(first.ok()) << first.status();
  absl::StatusOr<State> last;
  for (int i = 0; i < 1024; ++i) last = it->Save();
  absl::Status committed = it->Commit(*first);
  EXPECT_EQ(committed.code(), absl::StatusCode::kFailedPrecondition) << committed;
  committed = it->Commit(*last);
  EXPECT_TRUE(committed.ok()) << committed;
  committed = it->Commit(*first);  // contained in the last state
  EXPECT_TRUE(committed.ok()) << committed;
}

TEST(Faults, AStateOfAnotherIteratorIsNotCommitted) {
  Cluster cluster(1);
  absl::StatusOr<Iterator> it = Job(cluster, "resumed", AckMode::kOnCommit).MakeIterator();
  absl::StatusOr<Iterator> other = Job(cluster, "resumed", AckMode::kOnCommit).MakeIterator();
  ASSERT_TRUE(it.ok() && other.ok());
  ReadSome(*it, 10);
  absl::StatusOr<State> state = it->Save();
  ASSERT_TRUE(state.ok()) << state.status();
  for (bool read : {false, true}) {
    if (read) {
      ReadSome(*other, 10);
      ASSERT_TRUE(other->Save().ok());  // has the same number as `state`
    }
    absl::Status committed = other->Commit(*state);
    EXPECT_EQ(committed.code(), absl::StatusCode::kFailedPrecondition) << committed;
    EXPECT_THAT(std::string(committed.message()),
                ::testing::HasSubstr("does not belong to this iterator"));
  }
}

TEST(Faults, AStateFromBeforeARestoreIsNotCommitted) {
  Cluster cluster(1);
  absl::StatusOr<Iterator> it = Job(cluster, "resumed", AckMode::kOnCommit).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  ReadSome(*it, 10);
  absl::StatusOr<State> first = it->Save();
  ReadSome(*it, 10);
  absl::StatusOr<State> second = it->Save();
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_TRUE(it->Restore(*first).ok());
  absl::Status committed = it->Commit(*second);
  EXPECT_EQ(committed.code(), absl::StatusCode::kFailedPrecondition) << committed;
  committed = it->Commit(*first);
  EXPECT_TRUE(committed.ok()) << committed;
}

TEST(Faults, ReadingWithDeadlinesPushesNoStateOut) {
  Cluster cluster(1);
  absl::StatusOr<Iterator> it = Job(cluster, "resumed", AckMode::kOnCommit).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  ReadSome(*it, 10);
  absl::StatusOr<State> saved = it->Save();
  ASSERT_TRUE(saved.ok()) << saved.status();
  for (int i = 0; i < 1100; ++i) ASSERT_TRUE(it->Next(absl::Now() + absl::Minutes(1)).ok());
  absl::Status committed = it->Commit(*saved);
  EXPECT_TRUE(committed.ok()) << committed;
}

TEST(Faults, CommitsOnDeliveryHaveNoState) {
  Cluster cluster(1);
  absl::StatusOr<Iterator> it = Job(cluster).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  EXPECT_TRUE(it->Next(absl::Now() + absl::Minutes(1)).ok());
  absl::Status saved = it->Save().status();
  EXPECT_EQ(saved.code(), absl::StatusCode::kFailedPrecondition) << saved;
  EXPECT_THAT(std::string(saved.message()), ::testing::HasSubstr("ack_mode = kOnCommit"));
  EXPECT_TRUE(it->Next(absl::Now() + absl::Minutes(1)).ok());
}

TEST(Faults, AnErrorStandsAtItsElementAndReadingGoesOn) {
  Cluster cluster(1);
  Dataset dataset = Dataset::FromTensorSlices<int64_t>({4, 2, 0, 1})
                        .Map([](auto x) { return Expr(int64_t{8}) / x; })
                        .Distribute(cluster.Options(ShardingPolicy::kOff));
  absl::StatusOr<Iterator> it = dataset.MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  EXPECT_EQ(ReadSome(*it, 2), (std::vector<int64_t>{2, 4}));
  absl::StatusOr<std::optional<Element>> broken = it->Next();
  EXPECT_EQ(broken.status().code(), absl::StatusCode::kInvalidArgument) << broken.status();
  EXPECT_EQ(ReadAll(*it), (std::vector<int64_t>{8}));
}

TEST(BadInput, UnknownDatasetIdIsNotFound) {
  Cluster cluster(1);
  absl::StatusOr<Dataset> dataset = FromDatasetId("nothing", cluster.Options(ShardingPolicy::kOff));
  EXPECT_EQ(dataset.status().code(), absl::StatusCode::kNotFound) << dataset.status();
  EXPECT_THAT(std::string(dataset.status().message()), ::testing::HasSubstr("nothing"));
}

TEST(BadInput, ASpecThatDoesNotFitIsRefused) {
  Cluster cluster(1);
  absl::StatusOr<std::string> id = RegisterDataset(cluster.service(), Dataset::Range(3));
  ASSERT_TRUE(id.ok()) << id.status();
  absl::StatusOr<Dataset> dataset =
      FromDatasetId(*id, cluster.Options(ShardingPolicy::kOff), Spec(Scalar(kFloat32)));
  absl::Status status = dataset.status();
  if (dataset.ok()) {
    absl::StatusOr<Iterator> it = dataset->MakeIterator();
    status = it.ok() ? it->Next().status() : it.status();
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
}

TEST(BadInput, AnUnreachableDispatcherIsNamedWithinTheTimeout) {
  DistributeOptions options{.service = "grpc://localhost:1", .timeout = absl::Milliseconds(300)};
  absl::StatusOr<Iterator> it = Dataset::Range(3).Distribute(options).MakeIterator();
  absl::Status status = it.ok() ? it->Next().status() : it.status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("localhost:1"));
}

TEST(BadInput, ATakenPortIsUnavailable) {
  Cluster cluster(0);
  absl::StatusOr<std::unique_ptr<DispatchServer>> second =
      DispatchServer::Start({.port = cluster.dispatcher().port()});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable) << second.status();
}

TEST(BadInput, ASecondDispatcherOnAJournalRefusesToStart) {
  TemporaryFolder folder;
  Cluster cluster(0, {.work_dir = folder.path(), .fault_tolerant_mode = true});
  absl::StatusOr<std::unique_ptr<DispatchServer>> second =
      DispatchServer::Start({.work_dir = folder.path(), .fault_tolerant_mode = true});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition) << second.status();
  EXPECT_THAT(std::string(second.status().message()), ::testing::HasSubstr(folder.path()));
}

}  // namespace
}  // namespace penstock
