// SPDX-License-Identifier: Apache-2.0
#include "control/policy/audience.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "control/state/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/policy/audience_fixture.h"

namespace penstock::control {
namespace {

namespace p = ::penstock::protocol;
using ::testing::Each;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;

using AudienceTest = AudienceFixture;

// Returns the positions of the bits that are set.
IndexSet Positions(uint64_t bits) {
  IndexSet positions;
  for (Index i = 0; i < 64; ++i)
    if ((bits >> i & 1) != 0) positions.Add(i);
  return positions;
}

TEST_F(AudienceTest, EachReaderReadsAllOfAFewWorkers) {
  for (uint64_t client = 1; client <= 3; ++client) Join(client);
  EXPECT_EQ(ChooseAudience(record_, WorkerId(7), {.workers = 64, .max_links = 64},
                           ReadingPositions(record_)),
            IndexSet::Of(0, 3));
  EXPECT_EQ(ChooseAudience(record_, WorkerId(7), {.workers = 9000, .max_links = 0},
                           ReadingPositions(record_)),
            IndexSet::Of(0, 3));
}

TEST_F(AudienceTest, LinksGrowAsReadersAndAreBalanced) {
  for (uint64_t client = 1; client <= 100; ++client) Join(client);
  AssignAll({.workers = 1000, .max_links = 64});
  const std::vector<int64_t> links = Links();
  const int64_t mean = AllLinks() / 100;
  EXPECT_NEAR(static_cast<double>(mean), 64, 4);
  EXPECT_THAT(links, Each(Le(mean * 3 / 2)));
  EXPECT_THAT(links, Each(Ge(mean / 2)));
  for (const p::PartitionRecord& partition : record_.partitions)
    EXPECT_GE(partition.audience->size(), static_cast<int64_t>(kFewestReaders));
  EXPECT_THAT(ReadersToAdd(record_, context_, {.workers = 1000, .max_links = 64}).of, IsEmpty());
}

TEST_F(AudienceTest, EachWorkerHasTwoReadersIfThereAreFew) {
  for (uint64_t client = 1; client <= 5; ++client) Join(client);
  AssignAll({.workers = 100, .max_links = 2});
  for (const p::PartitionRecord& partition : record_.partitions) {
    EXPECT_GE(partition.audience->size(), 2);
    EXPECT_LE(partition.audience->size(), 3);
  }
  EXPECT_THAT(Links(), Each(Ge(20)));
}

TEST_F(AudienceTest, OneReaderReadsAllWorkers) {
  Join(1);
  EXPECT_EQ(ChooseAudience(record_, WorkerId(7), {.workers = 1000, .max_links = 2},
                           ReadingPositions(record_)),
            IndexSet::Of(0, 1));
}

TEST_F(AudienceTest, ReadersThatLeftAreNotChosen) {
  for (uint64_t client = 1; client <= 3; ++client) Join(client);
  Leave(2);
  EXPECT_EQ(ReadingPositions(record_).ToString(), "[0,1) [2,3)");
}

TEST_F(AudienceTest, AReaderThatLeavesChangesOnlyItsWorkers) {
  constexpr LinkRule kRule{.workers = 500, .max_links = 20};
  for (uint64_t client = 1; client <= 100; ++client) Join(client);
  std::vector<IndexSet> before;
  for (uint64_t worker = 1; worker <= 500; ++worker)
    before.push_back(ChooseAudience(record_, WorkerId(worker), kRule, ReadingPositions(record_)));
  Leave(30);
  for (uint64_t worker = 1; worker <= 500; ++worker) {
    IndexSet expected = before[worker - 1];
    const bool served = expected.Contains(29);
    const IndexSet now =
        ChooseAudience(record_, WorkerId(worker), kRule, ReadingPositions(record_));
    if (!served) {
      EXPECT_EQ(now, expected);
    } else {
      expected.Remove(IndexSet::Of(29, 30));
      EXPECT_TRUE(now.Contains(expected));
    }
  }
}

TEST_F(AudienceTest, AReaderThatJoinsGetsItsShare) {
  constexpr LinkRule kRule{.workers = 400, .max_links = 40};
  for (uint64_t client = 1; client <= 50; ++client) Join(client);
  AssignAll(kRule);
  Join(51);
  const MoreReaders more = Extend(kRule);
  const int64_t its = Links()[50];
  EXPECT_GT(its, 20);
  EXPECT_LT(its, 60);
  EXPECT_EQ(static_cast<size_t>(its), more.of.size());
  for (const auto& [partition, readers] : more.of) EXPECT_EQ(readers, IndexSet::Of(50, 51));
  EXPECT_THAT(Extend(kRule).of, IsEmpty());
}

TEST_F(AudienceTest, ReadersThatJoinOneAfterAnotherHaveFewLinks) {
  constexpr LinkRule kRule{.workers = 200, .max_links = 10};
  Join(1);
  AssignAll(kRule);
  for (uint64_t client = 2; client <= 100; ++client) {
    Join(client);
    Extend(kRule);
  }
  EXPECT_LT(AllLinks(), 3 * 100 * 10);
  EXPECT_THAT(Links(), Each(Ge(1)));
  EXPECT_EQ(Links()[1], 200) << "each worker needs two readers";
}

// A reader has nothing to wait for if all its partitions have ended.
TEST_F(AudienceTest, AReaderWhosePartitionsHaveEndedReadsOthers) {
  constexpr LinkRule kRule{.workers = 100, .max_links = 5};
  for (uint64_t client = 1; client <= 40; ++client) Join(client);
  AssignAll(kRule);
  for (size_t n = 0; n < 97; ++n) {
    context_.partitions[n].ended = 10;
    Extend(kRule);
    for (size_t reader = 0; reader < 40; ++reader) {
      const auto serves = [&](size_t at) {
        return !context_.partitions[at].ended && record_.partitions[at].MayServe(reader);
      };
      bool any = false;
      for (size_t at = 0; at < 100; ++at) any |= serves(at);
      EXPECT_TRUE(any) << "reader " << reader << " after the end of " << n + 1;
    }
  }
}

// It may get elements that others give back, and must not give up before.
TEST_F(AudienceTest, AReaderThatJoinsAfterAllHaveEndedReadsSome) {
  constexpr LinkRule kRule{.workers = 100, .max_links = 5};
  for (uint64_t client = 1; client <= 40; ++client) Join(client);
  AssignAll(kRule);
  for (protocol::PartitionContext& partition : context_.partitions) partition.ended = 10;
  EXPECT_THAT(Extend(kRule).of, IsEmpty()) << "each has one already";
  Join(41);
  EXPECT_EQ(Links()[40], 0);
  Extend(kRule);
  EXPECT_GE(Links()[40], 1);
  const MoreReaders more = Extend(kRule);
  EXPECT_THAT(more.of, IsEmpty());
  EXPECT_EQ(more.spare, 0) << "a partition that is placed again is the only one that counts";
}

// Counts that are kept up to date equal computed counts, and the same readers are added.
TEST_F(AudienceTest, CountsFollowChanges) {
  constexpr LinkRule kRule{.workers = 30, .max_links = 6};
  std::mt19937_64 random(1);
  for (uint64_t client = 1; client <= 12; ++client) Join(client);
  Open(20);
  AudienceCounts counts;
  std::vector<PartitionId> changed;
  int added = 0;
  for (int step = 0; step < 3000; ++step) {
    const PartitionId id(1 + random() % 30);
    if (id.value() > record_.partitions.size()) {
      Open(record_.partitions.size() + 1);
    } else if (const p::PartitionRecord& its = record_.partition(id); its.collecting()) {
      const WorkerId worker(101 + random() % 30);
      std::optional<IndexSet> audience;
      if (random() % 8 > 0) audience = Positions(random() % 4096);
      Alter(p::PartitionAssigned{id, its.placement, worker, audience});
    } else if (random() % 2 == 0) {
      context_.partitions[id.value() - 1].ended = 10;
    } else if (its.audience && random() % 2 == 0) {
      Alter(p::AudienceExtended{id, Positions(random() % 4096)});
    } else {
      context_.partitions[id.value() - 1].ended.reset();
      const Placement next(its.placement.value() + 1);
      Alter(p::PlacementRaised{id, next});
      const bool answered = random() % 2 == 0;
      for (size_t r = 0; answered && r < record_.readers.size(); ++r)
        context_.partitions[id.value() - 1].acks.At(r).at = next;
    }
    changed.push_back(id);
    if (random() % 100 == 0) Join(record_.readers.size() + 1);
    if (random() % 3 > 0) continue;
    counts.Update(record_, context_, changed);
    changed.clear();
    AudienceCounts computed;
    computed.Update(record_, context_, {});
    ASSERT_TRUE(counts == computed) << "step " << step;
    const MoreReaders more = ReadersToAdd(record_, counts, kRule);
    const MoreReaders expected = ReadersToAdd(record_, context_, kRule);
    ASSERT_EQ(more.of, expected.of) << "step " << step;
    ASSERT_EQ(more.counted, expected.counted);
    ASSERT_EQ(more.spare, expected.spare);
    added += more.of.empty() ? 0 : 1;
  }
  EXPECT_GT(added, 10);
}

// So that the dispatcher need not look at each change.
TEST_F(AudienceTest, NoReaderNeedsMoreWhileSomeArePending) {
  constexpr LinkRule kRule{.workers = 300, .max_links = 30};
  for (uint64_t client = 1; client <= 40; ++client) Join(client);
  AssignAll(kRule);
  size_t ended = 0;
  int64_t looked = 0;
  while (ended < 250) {
    const int64_t spare = ReadersToAdd(record_, context_, kRule).spare;
    ++looked;
    for (int64_t i = 0; i < spare && ended < 250; ++i) {
      context_.partitions[ended++].ended = 10;
      EXPECT_THAT(ReadersToAdd(record_, context_, kRule).of, IsEmpty());
    }
    context_.partitions[ended++].ended = 10;
    Extend(kRule);
  }
  EXPECT_LT(looked, 120);
}

// One that waits for a worker may do so until others have ended.
TEST_F(AudienceTest, APartitionCountsWhileItWaitsForAnswersOnly) {
  constexpr LinkRule kRule{.workers = 4, .max_links = 2};
  for (uint64_t client = 1; client <= 2; ++client) Join(client);
  Open(4);
  Assign(1, IndexSet::Of(0, 1));
  for (uint64_t n = 2; n <= 4; ++n) Assign(n, IndexSet::Of(1, 2));
  Alter(p::PlacementRaised{PartitionId(1), Placement(2)});
  EXPECT_THAT(ReadersToAdd(record_, context_, kRule).of, IsEmpty());
  context_.partitions[0].acks.At(0).at = Placement(2);
  EXPECT_EQ(ReadersToAdd(record_, context_, kRule).of.size(), 3u);
}

TEST_F(AudienceTest, TheLinksOfAReaderAreDescribedWithTheirReason) {
  for (uint64_t client = 1; client <= 3; ++client) Join(client);
  Open(5);
  Alter(p::PartitionAssigned{PartitionId(1), Placement(1), WorkerId(7)});
  State state;
  state.format = kAudiencesFormat;
  JobTerms& terms = state.jobs[JobId(1)].terms;
  Division division;
  const auto describe = [&](size_t reader, int64_t max_links) {
    IterationState iteration;
    iteration.job = JobId(1);
    iteration.division = division;
    iteration.record = record_;
    return DescribeLinks(state, iteration, reader, max_links);
  };
  EXPECT_EQ(describe(2, 1), "all 1");
  for (uint64_t n = 2; n <= 4; ++n) Assign(n, IndexSet::Of(0, 2));
  EXPECT_EQ(describe(0, 4), "all 4");
  EXPECT_EQ(describe(2, 1), "1 of 4 (max_links 1)");
  EXPECT_EQ(describe(2, 0), "1 of 4 (max_links was lower)");
  EXPECT_EQ(describe(0, 1), "all 4 (few trainers, partitions from before, or local workers)");
  state.format = kFirstFormat;
  EXPECT_EQ(describe(0, 1), "all 4 (the upgrade is not finalised)");
  record_.at_least_once = true;
  EXPECT_EQ(describe(0, 1), "all 4 (visitation at_least_once)");
  division.count = 4;
  EXPECT_EQ(describe(0, 1), "all 4 (static shards)");
  terms.deterministic = true;
  EXPECT_EQ(describe(0, 1), "all 4 (a fixed order)");
}

}  // namespace
}  // namespace penstock::control
