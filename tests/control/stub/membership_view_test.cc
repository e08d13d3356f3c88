// SPDX-License-Identifier: Apache-2.0
// How a client puts the messages about its iteration's partitions and workers together.
#include "control/stub/membership_view.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr WorkerId kA(10), kB(11), kC(12);

Membership::Partition On(WorkerId worker, uint64_t partition, uint64_t placement = 1) {
  return {PartitionId(partition), Placement(placement), worker};
}
Membership::Worker At(WorkerId worker, const std::string& address) {
  return {.worker = worker, .address = address, .offers = {}, .tags = {}, .process = {}};
}
Membership Whole() {
  return {
      .version = 3, .partitions = {On(kA, 1), On(kB, 2)}, .workers = {At(kA, "a"), At(kB, "b")}};
}

TEST(MembershipView, AppliesChangesInOrder) {
  MembershipView view;
  EXPECT_FALSE(view.served());
  EXPECT_THAT(*view.Apply(Whole()), ElementsAre(kA, kB));
  EXPECT_EQ(view.Whole(), Whole());
  EXPECT_TRUE(view.served());

  // Partition 2 moves, and partition 3 is opened. Nothing is left on worker B.
  EXPECT_THAT(*view.Apply({.version = 5,
                           .partitions = {On(kC, 2, 4), On(kC, 3)},
                           .workers = {At(kC, "c")},
                           .max_bytes_in_flight = 7,
                           .since = 3}),
              ElementsAre(kB, kC));
  EXPECT_EQ(view.Whole(), (Membership{.version = 5,
                                      .partitions = {On(kA, 1), On(kC, 2, 4), On(kC, 3)},
                                      .workers = {At(kA, "a"), At(kC, "c")},
                                      .max_bytes_in_flight = 7}));
  EXPECT_FALSE(view.IsPlaced(kB));
  EXPECT_EQ(view.WorkerOf(PartitionId(2)), kC);
  EXPECT_EQ(view.WorkerOf(PartitionId(4)), WorkerId());
  EXPECT_TRUE(view.MayForgetReceives(PartitionId(2), Placement(3)));
  EXPECT_FALSE(view.MayForgetReceives(PartitionId(2), Placement(4)));
  EXPECT_FALSE(view.MayForgetReceives(PartitionId(4), Placement(1)));
  EXPECT_EQ(view.Find(kB), nullptr);
  ASSERT_NE(view.Find(kC), nullptr);
  EXPECT_EQ(view.Find(kC)->address, "c");

  // Only a worker's address changes.
  EXPECT_THAT(*view.Apply({.version = 6, .workers = {At(kA, "elsewhere")}, .since = 5}),
              ElementsAre(kA));
  EXPECT_EQ(view.Find(kA)->address, "elsewhere");
}

TEST(MembershipView, HasNoWorkersWhileAllPartitionsWait) {
  MembershipView view;
  ASSERT_TRUE(view.Apply(Whole()).ok());
  const Membership waits{
      .version = 4, .partitions = {On(WorkerId(), 1, 2), On(WorkerId(), 2, 2)}, .since = 3};
  EXPECT_THAT(*view.Apply(waits), ElementsAre(kA, kB));
  EXPECT_THAT(view.Whole().workers, IsEmpty());
  EXPECT_FALSE(view.MayForgetReceives(PartitionId(1), Placement(1)));
  EXPECT_FALSE(view.served());
  ASSERT_TRUE(view.Apply({.version = 5, .closed = true, .since = 4}).ok());
  EXPECT_TRUE(view.served());
}

TEST(MembershipView, HasNoWorkersOnceTheIterationIsClosed) {
  MembershipView view;
  ASSERT_TRUE(view.Apply(Whole()).ok());
  EXPECT_THAT(*view.Apply({.version = 4, .closed = true, .since = 3}), ElementsAre(kA, kB));
  EXPECT_THAT(view.Whole().workers, IsEmpty());
  for (const Membership::Partition& partition : view.Whole().partitions)
    EXPECT_FALSE(partition.worker);
}

TEST(MembershipView, KnowsAPlacedWorkerWithoutARecord) {
  MembershipView view;
  ASSERT_TRUE(view.Apply({.version = 1, .partitions = {On(kA, 1)}}).ok());
  EXPECT_TRUE(view.IsPlaced(kA));
  EXPECT_EQ(view.Find(kA), nullptr);
}

TEST(MembershipView, RefusesAChangeSinceAnotherVersion) {
  for (const uint64_t since : {2, 4}) {
    MembershipView view;
    ASSERT_TRUE(view.Apply(Whole()).ok());
    const Membership change{.version = 6, .partitions = {On(kC, 1, 2)}, .since = since};
    EXPECT_TRUE(absl::IsAborted(view.Apply(change).status()));
    EXPECT_TRUE(view.IsPlaced(kA)) << "links to the workers stay";
    EXPECT_TRUE(absl::IsAborted(view.Apply({.version = 7, .since = 3}).status()));
    EXPECT_TRUE(view.Apply(Whole()).ok());
    EXPECT_TRUE(view.Apply({.version = 7, .since = 3}).ok());
  }
}

TEST(MembershipView, ExpectsAWholeOnANewStream) {
  MembershipView view;
  EXPECT_TRUE(absl::IsAborted(view.Apply({.version = 1, .since = 1}).status()));
  ASSERT_TRUE(view.Apply(Whole()).ok());
  view.ExpectWhole();
  EXPECT_TRUE(absl::IsAborted(view.Apply({.version = 4, .since = 3}).status()));
  EXPECT_THAT(*view.Apply({.version = 4, .partitions = {On(kC, 1)}, .workers = {At(kC, "c")}}),
              ElementsAre(kA, kB, kC));
}

// Partitions that serve other clients only are not named.
TEST(MembershipView, KnowsSomePartitionsOfMany) {
  MembershipView view;
  EXPECT_THAT(*view.Apply({.version = 1,
                           .partitions = {On(kA, 7), On(kA, 40'000)},
                           .workers = {At(kA, "a")},
                           .num_partitions = 40'000}),
              ElementsAre(kA));
  EXPECT_THAT(*view.Apply({.version = 2,
                           .partitions = {On(WorkerId(), 7, 2), On(kB, 40'001)},
                           .workers = {At(kB, "b")},
                           .since = 1,
                           .num_partitions = 40'001}),
              ElementsAre(kA, kB));
  EXPECT_TRUE(view.IsPlaced(kA));
  EXPECT_EQ(view.Whole(),
            (Membership{.version = 2,
                        .partitions = {On(WorkerId(), 7, 2), On(kA, 40'000), On(kB, 40'001)},
                        .workers = {At(kA, "a"), At(kB, "b")},
                        .num_partitions = 40'001}));
  view.Apply({.version = 3,
              .partitions = {On(WorkerId(), 40'000, 3)},
              .since = 2,
              .num_partitions = 40'001})
      .IgnoreError();
  EXPECT_FALSE(view.IsPlaced(kA));
}

}  // namespace
}  // namespace penstock::control
