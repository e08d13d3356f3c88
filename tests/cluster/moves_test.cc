// SPDX-License-Identifier: Apache-2.0
// Planned moves: workers that join and drain while trainers read. The elements of the other workers
// keep coming meanwhile, however long a new worker takes to begin.
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/register.h"
#include "tests/cluster/cluster.h"

namespace penstock {
namespace {

// Each partition of a placement is computed on a thread of its own. A thread that first computes
// while the door is shut waits until it is opened, and is counted. Threads that have passed before
// do not wait.
class Door {
 public:
  Door() {
    std::lock_guard lock(mu_);
    ++door_;
    newcomers_ = 0;
    shut_ = false;
  }
  ~Door() { Open(); }
  static void Shut() {
    std::lock_guard lock(mu_);
    shut_ = true;
  }
  static void Open() {
    {
      std::lock_guard lock(mu_);
      shut_ = false;
    }
    changed_.notify_all();
  }
  static void AwaitNewcomer() {
    std::unique_lock lock(mu_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::minutes(1), [] { return newcomers_ > 0; }));
  }
  static void Pass() {
    thread_local int known_to = 0;  // by the number of the door
    std::unique_lock lock(mu_);
    if (known_to == door_) return;
    if (shut_) {
      ++newcomers_;
      changed_.notify_all();
      changed_.wait(lock, [] { return !shut_; });
    }
    known_to = door_;
  }

 private:
  static std::mutex mu_;
  static std::condition_variable changed_;
  static int door_;
  static int newcomers_;
  static bool shut_;
};
std::mutex Door::mu_;
std::condition_variable Door::changed_;
int Door::door_ = 0;
int Door::newcomers_ = 0;
bool Door::shut_ = false;

absl::Status PassDoor(CallContext& call) {
  const int64_t number = call.inputs()[0].scalar<int64_t>();
  Door::Pass();
  absl::StatusOr<absl::Span<int64_t>> out = call.OutputAs<int64_t>(0, {});
  if (out.ok()) (*out)[0] = number;
  return out.status();
}
PENSTOCK_REGISTER_MAP("moves.pass_door", 1, Scalar(kInt64), PassDoor);

Dataset NumbersThroughDoor(int64_t count) {
  return Dataset::Range(count).Map([](auto n) { return Call("moves.pass_door", n); },
                                   {.num_parallel_calls = 1});
}

// Returns the next number. If none comes, the test fails and the result is empty.
std::optional<int64_t> Next(Iterator& it) {
  absl::StatusOr<std::optional<Element>> element = it.Next(absl::Now() + absl::Minutes(1));
  EXPECT_TRUE(element.ok()) << element.status();
  if (!element.ok() || !element->has_value()) return std::nullopt;
  return (*element)->tensor(0).scalar<int64_t>();
}

void ReadSome(Iterator& it, size_t count, std::vector<int64_t>& into) {
  for (size_t i = 0; i < count; ++i) {
    const std::optional<int64_t> number = Next(it);
    ASSERT_TRUE(number.has_value()) << "after " << i;
    into.push_back(*number);
  }
}

void ReadRest(Iterator& it, std::vector<int64_t>& into) {
  while (std::optional<int64_t> number = Next(it)) into.push_back(*number);
}

class Moves : public testing::TestWithParam<int64_t> {
 protected:
  // Windows of GetParam() elements.
  DistributeOptions Options(const Cluster& cluster, ShardingPolicy mode, std::string name = "") {
    DistributeOptions options = cluster.Options(mode, std::move(name));
    options.max_outstanding_requests = GetParam();
    return options;
  }
};

TEST_P(Moves, AWorkerThatJoinsIsWaitedForByNoConsumer) {
  constexpr int64_t kCount = 16'000;
  Door door;
  Cluster cluster(0);
  cluster.AddWorker({.permits = 1});
  std::vector<Iterator> consumers;
  std::vector<std::vector<int64_t>> numbers(2);
  for (int i = 0; i < 2; ++i) {
    absl::StatusOr<Iterator> it =
        NumbersThroughDoor(kCount)
            .Distribute(Options(cluster, ShardingPolicy::kDynamic, "shared"))
            .MakeIterator();
    ASSERT_TRUE(it.ok()) << it.status();
    consumers.push_back(*std::move(it));
  }
  for (size_t i = 0; i < 2; ++i) ReadSome(consumers[i], 100, numbers[i]);
  Door::Shut();
  cluster.AddWorker({.permits = 1});
  Door::AwaitNewcomer();
  EXPECT_EQ(cluster.worker(1).NumTasks(), 1);
  // Reads many times more than any of them could have held before.
  for (int turn = 0; turn < 5; ++turn) {
    for (size_t i = 0; i < 2; ++i) ReadSome(consumers[i], 1000, numbers[i]);
  }
  Door::Open();
  std::thread other([&] { ReadRest(consumers[1], numbers[1]); });
  ReadRest(consumers[0], numbers[0]);
  other.join();
  std::vector<int64_t> all = numbers[0];
  all.insert(all.end(), numbers[1].begin(), numbers[1].end());
  EXPECT_EQ(Sorted(std::move(all)), UpTo(kCount));
}

// Two shards on one worker. The one that stays reaches its end while the other waits for the worker
// that joined.
TEST_P(Moves, AShardThatMovesHoldsUpNoOther) {
  constexpr int64_t kCount = 8'000;
  Door door;
  Cluster cluster(0);
  for (int i = 0; i < 2; ++i) cluster.AddWorker({.permits = 1});
  absl::StatusOr<Iterator> it =
      NumbersThroughDoor(kCount).Distribute(Options(cluster, ShardingPolicy::kData)).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  std::vector<int64_t> numbers;
  ReadSome(*it, 100, numbers);
  const absl::Status drained = cluster.worker(0).Drain(absl::Minutes(1));
  ASSERT_TRUE(drained.ok()) << drained;
  // Elements of both shards came, so the survivor computes both.
  std::set<int64_t> shards;
  for (int64_t read = 0; read < 2000 || shards.size() < 2; ++read) {
    ReadSome(*it, 1, numbers);
    if (read >= 1000) shards.insert(numbers.back() % 2);
  }
  Door::Shut();
  cluster.AddWorker({.permits = 1});
  Door::AwaitNewcomer();
  int64_t of_shard[2] = {0, 0};
  for (const int64_t number : numbers) ++of_shard[number % 2];
  while (of_shard[0] < kCount / 2 && of_shard[1] < kCount / 2) {
    ReadSome(*it, 1, numbers);
    ++of_shard[numbers.back() % 2];
  }
  EXPECT_LT(static_cast<int64_t>(numbers.size()), kCount);
  Door::Open();
  ReadRest(*it, numbers);
  EXPECT_EQ(Sorted(std::move(numbers)), UpTo(kCount));
}

// A drain waits for no reader: this reader requests nothing while all workers but one drain.
TEST_P(Moves, WorkersDrainAtOnceWhileNobodyReads) {
  constexpr int64_t kCount = 8'000;
  for (ShardingPolicy mode : {ShardingPolicy::kDynamic, ShardingPolicy::kData}) {
    Door door;
    Cluster cluster(3);
    absl::StatusOr<Iterator> it =
        NumbersThroughDoor(kCount).Distribute(Options(cluster, mode)).MakeIterator();
    ASSERT_TRUE(it.ok()) << it.status();
    std::vector<int64_t> numbers;
    ReadSome(*it, 100, numbers);
    for (size_t i = 0; i < 2; ++i) {
      const absl::Status drained = cluster.worker(i).Drain(absl::Minutes(1));
      EXPECT_TRUE(drained.ok()) << drained;
    }
    ReadRest(*it, numbers);
    EXPECT_EQ(Sorted(std::move(numbers)), UpTo(kCount));
  }
}

// Workers join and drain alternately, between commits: the first worker is long gone.
TEST_P(Moves, AFleetIsReplacedBetweenCommits) {
  constexpr int64_t kCount = 8'000;
  Door door;
  Cluster cluster(2);
  DistributeOptions options = Options(cluster, ShardingPolicy::kDynamic, "replaced");
  options.ack_mode = AckMode::kOnCommit;
  absl::StatusOr<Iterator> it = NumbersThroughDoor(kCount).Distribute(options).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  std::vector<int64_t> history;
  State state;
  for (size_t turn = 0; turn < 4; ++turn) {
    ReadSome(*it, 1000, history);
    absl::StatusOr<State> saved = it->Save();
    ASSERT_TRUE(saved.ok()) << saved.status();
    state = *std::move(saved);
    cluster.AddWorker();
    const absl::Status committed = it->Commit(state);
    ASSERT_TRUE(committed.ok()) << committed;
    const absl::Status drained = cluster.worker(turn).Drain(absl::Minutes(1));
    EXPECT_TRUE(drained.ok()) << drained;
  }
  std::vector<int64_t> struck_out;
  ReadSome(*it, 500, struck_out);
  ASSERT_TRUE(it->Restore(state).ok());
  ReadRest(*it, history);
  EXPECT_EQ(Sorted(std::move(history)), UpTo(kCount));
}

INSTANTIATE_TEST_SUITE_P(Window, Moves, testing::Values(1, 64),
                         [](const auto& its) { return absl::StrCat(its.param); });

}  // namespace
}  // namespace penstock
