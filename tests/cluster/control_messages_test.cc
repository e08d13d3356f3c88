// SPDX-License-Identifier: Apache-2.0
// Control messages that come twice, that are lost with their stream, or whose answer is lost,
// between real workers, clients and a dispatcher. Each element comes once, and the dispatcher's
// records agree.
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/stub/dispatcher_stub.h"
#include "tests/cluster/cluster.h"
#include "tests/cluster/relay.h"

namespace penstock {
namespace {

// Streams break after 2 to 40 messages. One in three of other calls loses its request or its
// answer.
std::function<int64_t(bool)> BreakAtRandom() {
  struct Draw {
    std::mutex mu;
    std::mt19937 random{11};
  };
  return [draw = std::make_shared<Draw>()](bool stream) {
    std::lock_guard lock(draw->mu);
    return std::uniform_int_distribution<int64_t>(stream ? 2 : 0, stream ? 40 : 5)(draw->random);
  };
}

struct Trouble {
  std::string name;
  bool doubled = false;
  bool broken = false;
};

class ControlMessages : public testing::TestWithParam<Trouble> {
 protected:
  static constexpr int64_t kCount = 3000;

  void SetUp() override {
    RelayOptions options{.double_messages = GetParam().doubled};
    if (GetParam().broken) options.breaks_after = BreakAtRandom();
    absl::StatusOr<std::unique_ptr<Relay>> relay = Relay::Start(cluster_.service(), options);
    ASSERT_TRUE(relay.ok()) << relay.status();
    relay_ = *std::move(relay);
    for (int i = 0; i < 2; ++i) AddWorker();
  }
  void TearDown() override {
    EXPECT_EQ(relay_->doubled() > 20, GetParam().doubled) << relay_->doubled();
    EXPECT_EQ(relay_->broken() > 2, GetParam().broken) << relay_->broken();
    for (const auto& worker : workers_) worker->Stop();
  }

  void AddWorker() {
    absl::StatusOr<std::unique_ptr<WorkerServer>> worker = WorkerServer::Start(
        {.dispatcher_address = relay_->service(), .heartbeat_interval = absl::Milliseconds(20)});
    ASSERT_TRUE(worker.ok()) << worker.status();
    workers_.push_back(*std::move(worker));
  }

  Dataset Job(ShardingPolicy mode, AckMode ack_mode = AckMode::kOnDelivery) const {
    DistributeOptions options = cluster_.Options(mode, "job");
    options.service = relay_->service();
    options.max_outstanding_requests = 16;
    options.ack_mode = ack_mode;
    return Dataset::Range(kCount).Distribute(options);
  }

  // Reads up to `count` elements into the history; OK at the end too.
  void Read(Iterator& it, int64_t count = std::numeric_limits<int64_t>::max()) {
    for (int64_t i = 0; i < count; ++i) {
      absl::StatusOr<std::optional<Element>> element = it.Next();
      ASSERT_TRUE(element.ok()) << element.status();
      if (!element->has_value()) return;
      std::lock_guard lock(mu_);
      ++times_[(*element)->tensor(0).scalar<int64_t>()];
    }
  }
  void ReadWith(int readers, ShardingPolicy mode) {
    std::vector<std::thread> threads;
    for (int i = 0; i < readers; ++i) {
      threads.emplace_back([&] {
        absl::StatusOr<Iterator> it = Job(mode).MakeIterator();
        ASSERT_TRUE(it.ok()) << it.status();
        Read(*it);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  // Returns the only iteration in the dispatcher's records.
  control::IterationStatus Books() const {
    auto stub = control::DispatcherStub::Make(cluster_.service());
    EXPECT_TRUE(stub.ok()) << stub.status();
    absl::StatusOr<control::DispatcherStatus> status =
        (*stub)->GetStatus({.timeout = absl::Minutes(1), .stop = {}});
    EXPECT_TRUE(status.ok()) << status.status();
    if (!status.ok() || status->jobs.size() != 1 || status->jobs[0].iterations.size() != 1) {
      ADD_FAILURE() << "there is not one iteration of one job";
      return {};
    }
    return status->jobs[0].iterations[0];
  }

  // Expects that each element came `times` times, and is committed as often in the dispatcher's
  // records.
  void ExpectEach(int times) {
    std::map<int, int64_t> elements_by_times;
    for (int64_t i = 0; i < kCount; ++i) ++elements_by_times[times_[i]];
    EXPECT_THAT(elements_by_times, testing::ElementsAre(testing::Pair(times, kCount)));
    EXPECT_EQ(times_.size(), static_cast<size_t>(kCount));
    const control::IterationStatus iteration = Books();
    EXPECT_TRUE(iteration.closed);
    int64_t received = 0, elements = 0;
    for (const control::PartitionStatus& partition : iteration.partitions) {
      received += partition.received;
      elements += partition.elements;
    }
    EXPECT_EQ(elements, kCount * times);
    EXPECT_EQ(received, kCount * times);
  }

  Cluster cluster_{0};
  std::unique_ptr<Relay> relay_;
  std::vector<std::unique_ptr<WorkerServer>> workers_;
  std::mutex mu_;
  std::map<int64_t, int> times_;  // how often each element was returned
};

TEST_P(ControlMessages, OfReadersThatShareAJob) {
  ReadWith(3, ShardingPolicy::kDynamic);
  ExpectEach(1);
}

TEST_P(ControlMessages, LoseNothingOfAWorkersWholeEpoch) {
  ReadWith(1, ShardingPolicy::kOff);
  // One partition per worker; a worker whose stream always breaks has none.
  const size_t partitions = Books().partitions.size();
  ASSERT_GE(partitions, 1u);
  ExpectEach(static_cast<int>(partitions));
}

TEST_P(ControlMessages, OfAMove) {
  absl::StatusOr<Iterator> it = Job(ShardingPolicy::kDynamic).MakeIterator();
  absl::StatusOr<Iterator> other = Job(ShardingPolicy::kDynamic).MakeIterator();
  ASSERT_TRUE(it.ok() && other.ok()) << it.status() << other.status();
  Read(*it, 200);
  Read(*other, 200);
  workers_[0]->Stop();
  workers_.erase(workers_.begin());
  std::thread reads([&] { Read(*other); });
  Read(*it, 200);
  AddWorker();
  Read(*it);
  reads.join();
  ExpectEach(1);
}

TEST_P(ControlMessages, OfCommitsAndRestores) {
  State state;
  for (int life = 0; life < 5; ++life) {
    SCOPED_TRACE(absl::StrCat("life ", life));
    absl::StatusOr<Iterator> it = Job(ShardingPolicy::kDynamic, AckMode::kOnCommit).MakeIterator();
    ASSERT_TRUE(it.ok()) << it.status();
    if (life > 0) {
      const absl::Status restored = it->Restore(state);
      ASSERT_TRUE(restored.ok()) << restored;
    }
    Read(*it, life < 4 ? 300 : kCount);
    absl::StatusOr<State> saved = it->Save();
    ASSERT_TRUE(saved.ok()) << saved.status();
    state = *saved;
    if (life % 2 == 0) {  // every other life ends between writing and committing
      const absl::Status committed = it->Commit(state);
      ASSERT_TRUE(committed.ok()) << committed;
    }
    if (life == 4) break;
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(it->Next().ok());  // not in its history
  }
  ExpectEach(1);
}

INSTANTIATE_TEST_SUITE_P(Are, ControlMessages,
                         testing::Values(Trouble{.name = "Doubled", .doubled = true},
                                         Trouble{.name = "Lost", .broken = true},
                                         Trouble{"DoubledAndLost", true, true}),
                         [](const auto& its) { return its.param.name; });

}  // namespace
}  // namespace penstock
