// SPDX-License-Identifier: Apache-2.0
// Readers that come and go on a shared job, over each transport. The tests count lost and
// duplicated elements.
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "control/stub/dispatcher_stub.h"
#include "tests/cluster/cluster.h"

namespace penstock {
namespace {

class ClientHistories : public testing::TestWithParam<std::string> {
 protected:
  static constexpr int64_t kCount = 3000;

  Dataset Job(const Cluster& cluster, AckMode ack_mode = AckMode::kOnDelivery) const {
    DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic, "shared");
    options.max_outstanding_requests = 32;
    options.data_transfer_protocol = GetParam();
    options.ack_mode = ack_mode;
    return Dataset::Range(kCount).Distribute(options);
  }

  // Reads up to `count` elements into the history.
  void Read(Iterator& it, int64_t count = kCount + 1) {
    for (int64_t i = 0; i < count; ++i) {
      absl::StatusOr<std::optional<Element>> element = it.Next();
      ASSERT_TRUE(element.ok()) << element.status();
      if (!element->has_value()) return;
      std::lock_guard lock(mu_);
      ++times_[(*element)->tensor(0).scalar<int64_t>()];
    }
  }

  void ExpectEachOnce() {
    std::string lost;
    std::string doubled;
    for (int64_t i = 0; i < kCount; ++i) {
      if (times_[i] == 0) absl::StrAppend(&lost, " ", i);
      if (times_[i] > 1) absl::StrAppend(&doubled, " ", i);
    }
    EXPECT_EQ(lost, "");
    EXPECT_EQ(doubled, "");
  }

  std::mutex mu_;
  std::map<int64_t, int> times_;  // how often each element was returned
};

TEST_P(ClientHistories, ReadersThatStopLeaveTheRestToOthers) {
  Cluster cluster(2);
  absl::StatusOr<Iterator> stays = Job(cluster).MakeIterator();
  ASSERT_TRUE(stays.ok()) << stays.status();
  Read(*stays, 10);
  for (int i = 0; i < 5; ++i) {
    absl::StatusOr<Iterator> leaves = Job(cluster).MakeIterator();
    ASSERT_TRUE(leaves.ok()) << leaves.status();
    Read(*leaves, 50);
    Read(*stays, 50);
    ASSERT_TRUE(leaves->Stop().ok());
  }
  Read(*stays);
  ExpectEachOnce();
}

TEST_P(ClientHistories, AReaderThatGoesWithAStateHoldsUpNoMove) {
  DispatcherConfig config;
  config.client_timeout = absl::Minutes(10);  // nobody is declared dead here
  Cluster cluster(1, config);
  absl::StatusOr<Iterator> stays = Job(cluster, AckMode::kOnCommit).MakeIterator();
  ASSERT_TRUE(stays.ok()) << stays.status();
  Read(*stays, 10);
  State state;
  {
    absl::StatusOr<Iterator> goes = Job(cluster, AckMode::kOnCommit).MakeIterator();
    ASSERT_TRUE(goes.ok()) << goes.status();
    Read(*goes, 200);
    absl::StatusOr<State> saved = goes->Save();
    ASSERT_TRUE(saved.ok()) << saved.status();
    state = *std::move(saved);
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(goes->Next().ok());  // not in its history
  }
  cluster.AddWorker();
  cluster.RemoveWorker(0);
  Read(*stays, 1000);  // far more than was received
  absl::StatusOr<Iterator> comes_back = Job(cluster, AckMode::kOnCommit).MakeIterator();
  ASSERT_TRUE(comes_back.ok()) << comes_back.status();
  const absl::Status restored = comes_back->Restore(state);
  ASSERT_TRUE(restored.ok()) << restored;
  Read(*comes_back, 10);
  Read(*stays);
  Read(*comes_back);
  ExpectEachOnce();
}

TEST_P(ClientHistories, ReadersAtOnceShareTheJob) {
  Cluster cluster(2);
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      absl::StatusOr<Iterator> it = Job(cluster).MakeIterator();
      ASSERT_TRUE(it.ok()) << it.status();
      Read(*it);
    });
  }
  for (std::thread& reader : readers) reader.join();
  ExpectEachOnce();
}

TEST_P(ClientHistories, WorkersThatGoWhileReadersReadLoseNothing) {
  Cluster cluster(3);
  std::vector<std::thread> readers;
  std::atomic<int> under_way{0};
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      absl::StatusOr<Iterator> it = Job(cluster).MakeIterator();
      ASSERT_TRUE(it.ok()) << it.status();
      Read(*it, 300);
      under_way.fetch_add(1);
      under_way.notify_all();
      Read(*it);
    });
  }
  for (int seen; (seen = under_way.load()) < 2;) under_way.wait(seen);
  cluster.RemoveWorker(0);
  cluster.RemoveWorker(0);
  for (std::thread& reader : readers) reader.join();
  ExpectEachOnce();
}

TEST_P(ClientHistories, ATrainerRestoredOverAndOverKeepsOneHistory) {
  Cluster cluster(2);
  State state;
  for (int life = 0; life < 6; ++life) {
    absl::StatusOr<Iterator> it = Job(cluster, AckMode::kOnCommit).MakeIterator();
    ASSERT_TRUE(it.ok()) << it.status();
    if (life > 0) {
      absl::Status restored = it->Restore(state);
      ASSERT_TRUE(restored.ok()) << restored;
    }
    if (life == 5) {
      Read(*it);
      break;
    }
    Read(*it, 200);
    absl::StatusOr<State> saved = it->Save();
    ASSERT_TRUE(saved.ok()) << saved.status();
    state = *saved;
    if (life % 2 == 0) {  // every other life ends between writing and committing
      absl::Status committed = it->Commit(state);
      ASSERT_TRUE(committed.ok()) << committed;
    }
    for (int i = 0; i < 100; ++i)
      ASSERT_TRUE(it->Next().ok());  // after the state: not in its history
  }
  ExpectEachOnce();
}

TEST_P(ClientHistories, TheStateAtTheEndContainsAllThatWasDelivered) {
  Cluster cluster(2);
  const std::pair<std::string, std::function<Dataset(const Dataset&)>> shapes[] = {
      {"plain", [](const Dataset& job) { return job; }},
      {"repeated", [](const Dataset& job) { return job.Repeat(2); }},
      {"mapped",
       [](const Dataset& job) { return job.Repeat(1).Map([](auto x) { return x + 1; }); }},
      {"in turn", [](const Dataset& job) { return job.Concatenate(Dataset::Range(5)); }},
  };
  for (const auto& [name, shape] : shapes) {
    SCOPED_TRACE(name);
    DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic, name);
    options.data_transfer_protocol = GetParam();
    options.ack_mode = AckMode::kOnCommit;
    absl::StatusOr<Iterator> it = shape(Dataset::Range(100).Distribute(options)).MakeIterator();
    ASSERT_TRUE(it.ok()) << it.status();
    for (bool more = true; more;) {
      absl::StatusOr<std::optional<Element>> element = it->Next();
      ASSERT_TRUE(element.ok()) << element.status();
      more = element->has_value();
    }
    absl::StatusOr<State> state = it->Save();
    ASSERT_TRUE(state.ok()) << state.status();
    ASSERT_TRUE(it->Commit(*state).ok());
    ASSERT_TRUE(it->Stop().ok());
    absl::StatusOr<control::DispatcherStatus> status =
        (*control::DispatcherStub::Make(cluster.service()))->GetStatus({});
    ASSERT_TRUE(status.ok()) << status.status();
    for (const control::IterationStatus& iteration : status->jobs.back().iterations) {
      EXPECT_TRUE(iteration.finished) << "owed: " << iteration.owed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Protocols, ClientHistories, testing::Values("local", "shm", "tcp", "grpc"),
                         [](const auto& its) { return its.param; });

}  // namespace
}  // namespace penstock
