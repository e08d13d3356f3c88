// SPDX-License-Identifier: Apache-2.0
// When readers are added to partitions that serve some readers only.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/membership_fixture.h"

namespace penstock::control {
namespace {

// Twelve workers and eight readers. With two links for each reader, each worker has two or three.
class AudienceGrowthTest : public MembershipTest {
 protected:
  static constexpr uint64_t kNumWorkers = 12;
  static constexpr uint64_t kReaders = 8;

  const auto& Partitions() const {
    return recovered_.FindIteration(job_.job, 0)->record.partitions;
  }
  static CoreOptions Options() {
    return {.client_timeout = absl::Hours(1), .worker_timeout = absl::Hours(1), .max_links = 2};
  }
  void SetUp() override {
    Start(Options());
    job_ = DynamicJob();
    for (uint64_t worker = 1; worker <= kNumWorkers; ++worker) workers_.push_back(Work(worker));
    for (uint64_t id = 1; id <= kReaders; ++id) clients_.push_back({Come(job_, 0, id), {}});
    ReadAll();
    // The first two readers read all workers until the partitions are placed again.
    for (uint64_t worker = 1; worker <= kNumWorkers; ++worker) Connect(worker, {});
    before_ = Partitions();
    ASSERT_EQ(before_.size(), kNumWorkers);
    for (const protocol::PartitionRecord& its : before_) ASSERT_LT(its.audience->size(), kReaders);
  }
  void Connect(uint64_t worker, std::vector<PlacedPartition> held) {
    Hello(workers_[worker - 1], absl::StrCat("worker", worker), std::move(held), worker);
    ReadAll();
  }
  void ReadAll() {
    for (bool any = true; any;) {
      Pass(kSweepInterval, kSweepInterval);
      any = false;
      for (Client& client : clients_) any |= Read(client);
    }
  }
  JobAnswer job_;
  std::vector<Worker> workers_;
  std::vector<Client> clients_;
  absl::InlinedVector<protocol::PartitionRecord, 1> before_;
};

// If each partition were to serve all readers, it would do so until it ends.
TEST_F(AudienceGrowthTest, ARestartAddsNoReader) {
  Reopen(Options());
  clients_.clear();
  for (Worker& worker : workers_) worker.peer = nullptr;  // of the earlier core
  EXPECT_EQ(Partitions(), before_) << "no worker is connected yet";
  for (uint64_t n = 1; n <= kNumWorkers; ++n) {
    Connect(n, Held(n));
    EXPECT_EQ(Partitions(), before_) << "worker " << n;
    if (n > kReaders) continue;
    clients_.push_back({Come(job_, 0, n), {}});
    ReadAll();
    EXPECT_EQ(Partitions(), before_) << "reader " << n;
    EXPECT_EQ(clients_.back().fences, 0) << "no partition has moved";
  }
}

TEST_F(AudienceGrowthTest, TheLossOfMostStreamsAddsNoReader) {
  for (uint64_t n = 2; n <= kNumWorkers; ++n) {
    core_->OnClosed(std::exchange(workers_[n - 1].peer, nullptr));
    core_->OnClosed(clients_[n % kReaders].reader.peer);
    clients_[n % kReaders].reader = Come(job_, 0, n % kReaders + 1);
    ReadAll();
    EXPECT_EQ(Partitions(), before_) << n;
  }
  for (uint64_t n = 2; n <= kNumWorkers; ++n) Connect(n, Held(n));
  EXPECT_EQ(Partitions(), before_);
}

}  // namespace
}  // namespace penstock::control
