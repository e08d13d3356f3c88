// SPDX-License-Identifier: Apache-2.0
// Groups of the ranks of a communicator, with host communicators in place of NCCL.
#include <set>

#include "gmock/gmock.h"
#include "penstock/replica.h"
#include "tests/dataplane/replica/collectives.h"

namespace penstock {

namespace replica {

// `communicator` is a std::unique_ptr<Collective>.
absl::StatusOr<NcclRanks> CollectiveOfNccl(void* communicator) {
  auto& own = *static_cast<std::unique_ptr<Collective>*>(communicator);
  const int rank = own->rank();
  return NcclRanks{std::move(own), rank};
}

}  // namespace replica

namespace {

std::vector<std::optional<ReplicaGroup>> GroupsOf(int ranks) {
  replica::Collectives communicators = replica::CollectiveOfConnections(ranks);
  std::vector<std::optional<ReplicaGroup>> groups(static_cast<size_t>(ranks));
  replica::OnRanks(ranks, [&](int rank) {
    auto at = static_cast<size_t>(rank);
    absl::StatusOr<ReplicaGroup> group = ReplicaGroup::FromNccl(&communicators[at]);
    EXPECT_TRUE(group.ok()) << group.status();
    if (group.ok()) groups[at] = *std::move(group);
  });
  return groups;
}

TEST(FromNccl, HasAReplicaPerRankOnItsDevice) {
  const auto groups = GroupsOf(3);
  for (int rank = 0; rank < 3; ++rank) {
    const auto& group = groups[static_cast<size_t>(rank)];
    ASSERT_TRUE(group.has_value());
    EXPECT_EQ(group->process(), rank);
    EXPECT_EQ(group->num_replicas_in_sync(), 3);
    EXPECT_EQ(group->ToString(),
              absl::StrCat("3 replica(s) in 3 process(es); here ", rank, " on GPU:", rank));
    EXPECT_TRUE(group->connected());
  }
}

// So processes of a launch shuffle alike, and two launches do not.
TEST(FromNccl, RanksAgreeOnALaunchThatNoOtherHas) {
  std::set<std::string> launches;
  for (int time = 0; time < 3; ++time) {
    const auto groups = GroupsOf(2);
    EXPECT_EQ(groups[0]->launch_id(), groups[1]->launch_id());
    EXPECT_FALSE(groups[0]->launch_id().empty());
    launches.insert(groups[0]->launch_id());
  }
  EXPECT_EQ(launches.size(), 3u);
}

}  // namespace
}  // namespace penstock
