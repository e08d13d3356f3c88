// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/received_sets.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "penstock/fingerprint.h"

namespace penstock::protocol {
namespace {

constexpr PartitionId kLast(39'999);

std::vector<uint64_t> PartitionsOf(const ReceivedSets& sets) {
  std::vector<uint64_t> partitions;
  for (const auto& [partition, set] : sets) partitions.push_back(partition.value());
  return partitions;
}

TEST(ReceivedSets, StoresOnlyTheSetsThatAreNotEmpty) {
  ReceivedSets sets = {IndexSet::Of(0, 5), {}, IndexSet::Of(2, 3)};
  sets.Add(kLast, IndexSet::Of(7, 9));
  sets.Add(PartitionId(8), {});
  EXPECT_EQ(PartitionsOf(sets), (std::vector<uint64_t>{1, 3, 39'999}));
  EXPECT_EQ(Of(sets, PartitionId(1)), IndexSet::Of(0, 5));
  EXPECT_TRUE(Of(sets, PartitionId(2)).empty());
  EXPECT_EQ(Of(sets, PartitionId(3)), IndexSet::Of(2, 3));
  EXPECT_EQ(Of(sets, kLast), IndexSet::Of(7, 9));
  EXPECT_TRUE(Of(sets, PartitionId(40'000)).empty());
  sets.clear();
  EXPECT_TRUE(sets.empty());
  EXPECT_TRUE(Of(sets, kLast).empty());
}

TEST(ReceivedSets, AreEqualIfTheirSetsAre) {
  const ReceivedSets two = {IndexSet::Of(0, 5), IndexSet::Of(0, 1)};
  ReceivedSets descending;
  descending.Add(PartitionId(2), IndexSet::Of(0, 1));
  descending.Add(PartitionId(1), IndexSet::Of(0, 5));
  EXPECT_EQ(descending, two);
  EXPECT_EQ((ReceivedSets{IndexSet::Of(0, 5), IndexSet::Of(0, 1), {}, {}}), two);
  EXPECT_EQ((ReceivedSets{{}, {}}), ReceivedSets());
  EXPECT_NE((ReceivedSets{IndexSet::Of(0, 5)}), two);
  EXPECT_NE((ReceivedSets{IndexSet::Of(0, 1), IndexSet::Of(0, 5)}), two);
}

TEST(ReceivedSets, ContainThoseWhoseElementsTheyHave) {
  const ReceivedSets has = {IndexSet::Of(0, 5), {}, IndexSet::Of(2, 4)};
  EXPECT_TRUE(Contains(has, {}));
  EXPECT_TRUE(Contains(has, has));
  EXPECT_TRUE(Contains(has, {IndexSet::Of(1, 2), {}, IndexSet::Of(3, 4)}));
  EXPECT_FALSE(Contains(has, {IndexSet::Of(1, 6)}));
  EXPECT_FALSE(Contains(has, {{}, IndexSet::Of(0, 1)}));
  EXPECT_FALSE(Contains({}, has));
}

// The journal has marks from all releases.
TEST(ReceivedSets, HaveTheMarkThatReleasesRecorded) {
  uint64_t hash = 0;
  for (const uint64_t part : {0, 0, 5, 2, 2, 3, 2, 8, 9}) hash = Fingerprint(part, hash);
  ReceivedSets sets = {IndexSet::Of(0, 5), {}, IndexSet::Of(2, 3), {}};
  sets.Add(PartitionId(3), IndexSet::Of(8, 9));
  EXPECT_EQ(MarkOf(sets), (CommittedMark{.count = 7, .hash = hash}));
  EXPECT_EQ(MarkOf({}), CommittedMark());
  EXPECT_NE(MarkOf({IndexSet::Of(0, 1)}), MarkOf({{}, IndexSet::Of(0, 1)}));
}

TEST(ReceivedSets, AgreeWithSetsByPartition) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    std::mt19937_64 random(seed);
    ReceivedSets sets, other;
    std::map<uint64_t, IndexSet> expected, of_other;
    for (int step = 0; step < 40; ++step) {
      const uint64_t partition = 1 + random() % 30;
      const auto begin = static_cast<Index>(random() % 20);
      const IndexSet added = IndexSet::Of(begin, begin + 1 + static_cast<Index>(random() % 4));
      const bool to_other = random() % 2 == 0;
      (to_other ? other : sets).Add(PartitionId(partition), added);
      (to_other ? of_other : expected)[partition].Add(added);
    }
    for (const auto& [partition, set] : other) sets.Add(partition, set);
    for (const auto& [partition, set] : of_other) expected[partition].Add(set);
    auto next = expected.begin();
    for (const auto& [partition, set] : sets) {
      ASSERT_NE(next, expected.end()) << "seed " << seed;
      EXPECT_EQ(partition.value(), next->first);
      EXPECT_EQ(set, next->second);
      EXPECT_EQ(Of(sets, partition), next->second);
      ++next;
    }
    ASSERT_EQ(next, expected.end()) << "seed " << seed;
    EXPECT_TRUE(Contains(sets, other));
    const ReceivedSets before = sets;
    for (const auto& [partition, set] : other) sets.Add(partition, set);
    EXPECT_EQ(sets, before);
  }
}

TEST(DenseSets, AreEqualIfAllSetsAre) {
  DenseSets sets, other;
  sets.Add(PartitionId(3), IndexSet::Of(0, 2));
  sets.Add(PartitionId(1), IndexSet::Of(4, 5));
  sets.Add(PartitionId(9), {});
  other.Add({IndexSet::Of(4, 5), {}, IndexSet::Of(0, 1)});
  EXPECT_NE(sets, other);
  other.Add({{}, {}, IndexSet::Of(1, 2)});
  EXPECT_EQ(sets, other);
  EXPECT_EQ(Of(sets, PartitionId(3)), IndexSet::Of(0, 2));
  EXPECT_TRUE(Of(sets, PartitionId(2)).empty() && Of(sets, PartitionId(9)).empty());
}

}  // namespace
}  // namespace penstock::protocol
