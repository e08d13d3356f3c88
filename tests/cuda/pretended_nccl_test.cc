// SPDX-License-Identifier: Apache-2.0
// cuda/nccl_collective.cc with several ranks, one of which may be lost, on a pretended NCCL and
// CUDA that record calls that the real ones do not forgive.
#include "tests/cuda/pretended_nccl.h"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "cuda/nccl_library.h"
#include "dataplane/replica/collective/collective.h"
#include "tests/cuda/pretended_cuda.h"

namespace penstock::replica {
namespace {

using pretended_cuda::TakeViolations;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kRanks = 3;

// Calls fn(rank) on one thread per rank.
void OnRanks(const std::function<void(int)>& fn) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back(fn, rank);
  for (std::thread& thread : threads) thread.join();
}

class PretendedNccl : public testing::Test {
 protected:
  PretendedNccl() {
    // One process for all cases, because cuda/context.cc keeps contexts until the process ends.
    static const bool begun = [] {
      pretended_cuda::Begin({.devices = kRanks, .named = {0, 1, 2}});
      return true;
    }();
    EXPECT_TRUE(begun);
    trainers_ = pretended_nccl::MakeCommunicator(kRanks);
    OnRanks([this](int rank) {
      absl::StatusOr<NcclRanks> ranks = CollectiveOfNccl(trainers_[static_cast<size_t>(rank)]);
      ASSERT_TRUE(ranks.ok()) << ranks.status();
      EXPECT_EQ(ranks->device, rank);
      all_[rank] = std::move(ranks->own);
    });
  }
  // In parallel: a rank's communicator is destroyed when the others' are.
  ~PretendedNccl() override {
    OnRanks([this](int rank) { all_[rank].reset(); });
    EXPECT_THAT(TakeViolations(), IsEmpty());
  }

  std::vector<void*> trainers_;
  std::unique_ptr<Collective> all_[kRanks];
};

// Breaks each rule once.
TEST_F(PretendedNccl, RecordsMisuses) {
  const cuda::NcclLibrary& nccl = **cuda::NcclLibrary::Get();
  std::thread([&] {
    EXPECT_EQ(nccl.CommDestroy(trainers_[0]), cuda::kNcclSuccess);
    int count = 0;
    EXPECT_NE(nccl.CommCount(trainers_[0], &count), cuda::kNcclSuccess);
    EXPECT_EQ(cudaSetDevice(2), cudaSuccess);
    cuda::NcclComm made = nullptr;
    cuda::NcclConfig config{.blocking = 0};
    EXPECT_EQ(nccl.CommSplit(trainers_[1], 0, 0, &made, &config), cuda::kNcclInProgress);
  }).join();
  EXPECT_THAT(
      TakeViolations(),
      ElementsAre("ncclCommDestroy of a communicator with unfinished work",
                  "ncclCommCount of a communicator that is gone",
                  "ncclCommSplit under the context of device 2: the communicator is of device 1"));
}

TEST_F(PretendedNccl, ReducesAndGathersInTheOrderOfRanks) {
  OnRanks([this](int rank) {
    Collective& own = *all_[rank];
    EXPECT_EQ(own.rank(), rank);
    EXPECT_EQ(own.size(), kRanks);
    for (int round = 0; round < 50; ++round) {
      ASSERT_TRUE(own.Start(CollectiveOp::kSum, {rank, round}).ok());
      ASSERT_TRUE(own.Start(CollectiveOp::kMin, {rank, -rank}).ok());
      ASSERT_TRUE(own.Start(CollectiveOp::kMax, {rank * rank}).ok());
      EXPECT_THAT(own.Finish().value(), ElementsAre(3, 3 * round));
      EXPECT_THAT(own.Finish().value(), ElementsAre(0, -2));
      EXPECT_THAT(own.Finish().value(), ElementsAre(4));
      const std::string bytes(static_cast<size_t>(rank), static_cast<char>('a' + rank));
      EXPECT_THAT(own.AllGather(bytes).value(), ElementsAre("", "b", "cc"));
    }
  });
}

TEST_F(PretendedNccl, ReductionsWaitForNoDeviceOnceTheirBuffersAreThere) {
  const auto reduce = [this] {
    OnRanks([this](int rank) {
      ASSERT_TRUE(all_[rank]->Start(CollectiveOp::kSum, {1, 2}).ok());
      EXPECT_THAT(all_[rank]->Finish().value(), ElementsAre(3, 6));
    });
  };
  reduce();
  const pretended_cuda::Step step;
  for (int round = 0; round < 20; ++round) reduce();
  EXPECT_THAT(TakeViolations(), IsEmpty());
}

TEST_F(PretendedNccl, SplitsHaveRanksAndEndsOfTheirOwn) {
  OnRanks([this](int rank) {
    std::unique_ptr<Collective> part = all_[rank]->Split(rank % 2).value();
    EXPECT_EQ(part->size(), rank % 2 == 0 ? 2 : 1);
    EXPECT_EQ(part->rank(), rank / 2);
    ASSERT_TRUE(part->Start(CollectiveOp::kSum, {rank}).ok());
    EXPECT_EQ(part->Finish().value()[0], rank % 2 == 0 ? 2 : 1);
    part->Abort(absl::AbortedError("enough"));
    EXPECT_TRUE(all_[rank]->AllGather("still there").ok());
  });
  EXPECT_EQ(pretended_nccl::Aborted(), kRanks);
}

TEST_F(PretendedNccl, ALostRankEndsTheOthersWaits) {
  OnRanks([this](int rank) {
    if (rank == 2) return pretended_nccl::Lose(trainers_[2]);
    ASSERT_TRUE(all_[rank]->Start(CollectiveOp::kSum, {1}).ok() || !all_[rank]->AsyncError().ok());
    const absl::Status lost = all_[rank]->Finish().status();
    EXPECT_FALSE(lost.ok());
    EXPECT_THAT(std::string(all_[rank]->AsyncError().message()),
                HasSubstr("remote process exited"));
    EXPECT_FALSE(all_[rank]->Start(CollectiveOp::kSum, {1}).ok());
  });
  all_[2].reset();  // in reality its process does this
}

// A launch that stays in progress holds no lock that an abort needs.
TEST_F(PretendedNccl, ALaunchThatIsStuckIsAborted) {
  pretended_nccl::StuckLaunches stuck;
  const absl::Status why = absl::UnavailableError("replica 2 is lost");
  auto started =
      std::async(std::launch::async, [this] { return all_[0]->Start(CollectiveOp::kSum, {1}); });
  stuck.Await();
  EXPECT_TRUE(all_[0]->AsyncError().ok());
  all_[0]->Abort(why);
  ASSERT_EQ(started.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_EQ(started.get(), why);
  EXPECT_EQ(all_[0]->AsyncError(), why);
}

// NCCL would wait for its work for ever.
TEST_F(PretendedNccl, AnUnfinishedCommunicatorIsAborted) {
  ASSERT_TRUE(all_[0]->Start(CollectiveOp::kSum, {1}).ok());
  all_[0].reset();
  EXPECT_EQ(pretended_nccl::Aborted(), 1);
  EXPECT_EQ(pretended_nccl::Destroyed(), 0);
}

TEST_F(PretendedNccl, AFinishedCommunicatorIsDestroyed) {
  OnRanks([this](int rank) {
    ASSERT_TRUE(all_[rank]->AllGather("").ok());
    all_[rank].reset();
  });
  EXPECT_EQ(pretended_nccl::Aborted(), 0);
  EXPECT_EQ(pretended_nccl::Destroyed(), kRanks);
}

}  // namespace
}  // namespace penstock::replica
