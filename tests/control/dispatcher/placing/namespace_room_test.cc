// SPDX-License-Identifier: Apache-2.0
// Who gets room in a namespace, and who gives it up, without a dispatcher around it.
#include "control/dispatcher/placing/namespace_room.h"

#include <memory>
#include <optional>

#include "control/protocol/invariant.h"
#include "control/protocol/scoped_name.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

namespace p = ::penstock::protocol;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NamespaceRoomTest : public ::testing::Test {
 protected:
  void Limit(NamespaceLimits limits) {
    quotas_ = Quotas(limits);
    room_.emplace(
        quotas_, state_, contexts_, [this] { return permits_; },
        /*check_kept=*/[] { return true; });
  }
  // Makes a job with one iteration that has `partitions`, of which the first `placed` are at work.
  IterationId Add(JobShare share, int placed, int partitions = 8,
                  const std::string& name_space = "") {
    const JobId job(state_.next_job);
    const IterationId id(state_.next_iteration);
    state_.Apply(JobCreated{{.id = job,
                             .name = ScopedName(name_space, absl::StrCat(job.value())),
                             .dataset = dataset_,
                             .terms = {.share = share}}});
    state_.Apply(IterationCreated{id, job, 0});
    contexts_[id].partitions.resize(partitions);
    for (int n = 1; n <= partitions; ++n) {
      const PartitionId partition(static_cast<uint64_t>(n));
      Alter(id, p::PartitionOpened{partition});
      if (n <= placed) Place(id, partition);
    }
    return id;
  }
  void Place(IterationId id, PartitionId partition) {
    const Placement placement = state_.iterations.at(id).record.partition(partition).placement;
    Alter(id, p::PartitionAssigned{partition, placement, WorkerId(1)});
  }
  void Raise(const PartitionKey& key) {
    const Placement now =
        state_.iterations.at(key.iteration).record.partition(key.partition).placement;
    Alter(key.iteration, p::PlacementRaised{key.partition, Placement(now.value() + 1)});
  }
  void Alter(IterationId id, p::IterationChange change) {
    state_.Apply(IterationAltered{id, std::move(change)});
    ++contexts_[id].placing_changes;
    if (room_) room_->Count(id);
  }
  const JobRecord& JobOf(IterationId id) const {
    return state_.jobs.at(state_.iterations.at(id).job);
  }
  int64_t RoomOf(IterationId id) const { return room_->For(JobOf(id)); }
  int64_t AtWork(IterationId id) const {
    return room_->ClaimOf(state_.iterations.at(id)).partitions;
  }

  const std::shared_ptr<const DatasetRecord> dataset_ =
      std::make_shared<const DatasetRecord>(DatasetRecord{"1000", "", {}});
  State state_;
  NamespaceRoom::Contexts contexts_;
  Quotas quotas_;
  int64_t permits_ = 8;
  std::optional<NamespaceRoom> room_;
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(NamespaceRoomTest, IsWhatTheLimitLeaves) {
  Limit({.partitions = 5});
  const IterationId first = Add({}, 3);
  const IterationId other = Add({}, 4, 8, "v");
  EXPECT_EQ(RoomOf(first), 2);
  EXPECT_EQ(RoomOf(other), 1);
  EXPECT_THAT(room_->WhyFull(JobOf(first)), IsEmpty());
  const IterationId second = Add({}, 2);
  EXPECT_EQ(RoomOf(first), 0);
  EXPECT_THAT(room_->WhyFull(JobOf(second)), HasSubstr("default has 5 of 5 partitions"));
  contexts_[first].NoteEndOf(0, 7);
  room_->Count(first);
  EXPECT_EQ(RoomOf(second), 1);
  state_.Apply(IterationFailed{first, absl::InternalError("why")});
  room_->Count(first);
  EXPECT_EQ(RoomOf(second), 3);
}

TEST_F(NamespaceRoomTest, IsComparedWithASearchThroughAllPartitions) {
  Limit({.partitions = 5});
  const IterationId id = Add({}, 3);
  contexts_[id].NoteEndOf(1, 7);
  room_->Count(id);
  EXPECT_EQ(RoomOf(id), 3);
  ++contexts_[id].num_ended;
  room_->Count(id);
  const p::InvariantsThrow throws;
  EXPECT_THROW(RoomOf(id), p::InvariantBroken);
}

TEST_F(NamespaceRoomTest, PartitionsOfAReopenedIterationTakeIt) {
  Limit({.partitions = 5});
  const IterationId id = Add({}, 2, 2);
  for (size_t at = 0; at < 2; ++at) contexts_[id].NoteEndOf(at, 7);
  Alter(id, p::IterationClosed{{7, 7}});
  EXPECT_EQ(RoomOf(id), 5);
  Alter(id, p::IterationReopened{});
  for (size_t at = 0; at < 2; ++at) {
    contexts_[id].NoteRaised(at);
    Raise({id, PartitionId(at + 1)});
  }
  EXPECT_EQ(RoomOf(id), 5);
  Place(id, PartitionId(2));
  EXPECT_EQ(RoomOf(id), 4);
}

TEST_F(NamespaceRoomTest, IsTheSameAfterARestart) {
  Limit({.partitions = 5});
  const IterationId id = Add({}, 3);
  Limit({.partitions = 4});
  room_->Begin();
  EXPECT_EQ(RoomOf(id), 1);
  Limit({.partitions = 2});
  room_->Begin();
  EXPECT_EQ(RoomOf(id), 0);
}

TEST_F(NamespaceRoomTest, FollowsThePermitsOfTheWorkers) {
  Limit({.worker_percent = 50});
  const IterationId id = Add({}, 3);
  EXPECT_EQ(RoomOf(id), 1);
  permits_ = 4;
  EXPECT_EQ(RoomOf(id), 0);
  EXPECT_THAT(room_->WhyFull(JobOf(id)), HasSubstr("3 of 2 partitions, 50 % of 4 permits"));
}

TEST_F(NamespaceRoomTest, GoesToTheBestClaimOfTheNamespaceFirst) {
  Limit({.partitions = 3});
  const IterationId low = Add({}, 3);
  const IterationId high = Add({.priority = 1}, 0);
  const IterationId elsewhere = Add({.priority = 2}, 0, 8, "v");
  room_->Wait(high);
  room_->Wait(elsewhere);
  EXPECT_TRUE(room_->OtherGoesFirst(state_.iterations.at(low)));
  EXPECT_FALSE(room_->OtherGoesFirst(state_.iterations.at(high)));
  room_->Wait(low);
  std::vector<IterationId> order;
  for (const Claim& claim : room_->Waiting()) order.push_back(claim.iteration);
  EXPECT_THAT(order, ElementsAre(elsewhere, high, low));
  state_.Apply(JobCancelled{JobOf(high).id});
  room_->Count(high);
  EXPECT_FALSE(room_->OtherGoesFirst(state_.iterations.at(low)));
  room_->EndWait(elsewhere);
  EXPECT_EQ(room_->Waiting().size(), 1u);
}

TEST_F(NamespaceRoomTest, IsGivenUpOnceASecond) {
  Limit({.partitions = 3});
  const IterationId low = Add({}, 3);
  const IterationId high = Add({.priority = 1}, 0);
  room_->Wait(high);
  EXPECT_THAT(room_->ToGiveUp(now_), ElementsAre(PartitionKey{low, PartitionId(3)}));
  Raise({low, PartitionId(3)});
  EXPECT_THAT(room_->ToGiveUp(now_ + absl::Milliseconds(999)), IsEmpty());
  EXPECT_THAT(room_->ToGiveUp(now_ + absl::Seconds(1)),
              ElementsAre(PartitionKey{low, PartitionId(2)}));
}

// Preempts and places as the dispatcher does, until nothing moves.
TEST_F(NamespaceRoomTest, IsSharedByWeight) {
  Limit({.partitions = 8});
  const IterationId first = Add({}, 8);
  const IterationId second = Add({.weight = 3}, 0);
  room_->Wait(first);
  room_->Wait(second);
  int moves = 0;
  for (; moves <= 8; ++moves) {
    now_ += absl::Seconds(1);
    const std::vector<PartitionKey> given_up = room_->ToGiveUp(now_);
    if (given_up.empty()) break;
    Raise(given_up.front());
    const IterationId next = room_->Waiting().begin()->iteration;
    EXPECT_EQ(next, second);
    Place(next, PartitionId(static_cast<uint64_t>(AtWork(next) + 1)));
  }
  EXPECT_EQ(moves, 6);
  EXPECT_EQ(AtWork(first), 2);
  EXPECT_EQ(AtWork(second), 6);
}

}  // namespace
}  // namespace penstock::control
