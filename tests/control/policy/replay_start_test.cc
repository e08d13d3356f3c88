// SPDX-License-Identifier: Apache-2.0
// Which bookmark a worker gets, by the versions that it reads.
#include "control/policy/replay_start.h"

#include <utility>

#include "gtest/gtest.h"

namespace penstock::control {
namespace {

using Readable = std::vector<PositionVersions>;

using Versions = std::vector<PositionVersion>;

TEST(CanRead, OnlyVersionsInTheRange) {
  const Readable readable = {{"Shuffle", 2, 3}};
  for (const auto& [version, is_read] :
       {std::pair(1u, false), std::pair(2u, true), std::pair(3u, true), std::pair(4u, false)}) {
    EXPECT_EQ(CanRead(readable, Versions{{"Shuffle", version}}), is_read) << version;
  }
  EXPECT_FALSE(CanRead(readable, Versions{{"Shuffle", 2}, {"Batch", 2}}));
}

TEST(CanRead, TheFirstVersionsOfOperationsThatAreNotListed) {
  EXPECT_TRUE(CanRead({}, Versions()));
  EXPECT_TRUE(CanRead({}, Versions{{"Shuffle", 1}}));
  EXPECT_FALSE(CanRead({}, Versions{{"Shuffle", 2}}));
}

// Partition 1 has bookmarks of the first version at 10, and of a later one at 20 and 30.
IterationState AnIteration() {
  IterationState iteration{.id = IterationId(1)};
  iteration.record.partitions.resize(1);
  iteration.record.partitions[0].bookmarks = {{10, "a"}, {20, "b"}, {30, "c"}};
  iteration.splits.resize(1);
  iteration.splits[0].marks = {{20, {}, {{"Shuffle", 2}}}, {30, {}, {{"Shuffle", 2}}}};
  return iteration;
}

std::optional<Index> StartOf(const IterationState& iteration, size_t newest,
                             const Readable& readable) {
  const auto start = ReplayStart(iteration, PartitionId(1),
                                 iteration.record.partitions[0].bookmarks[newest], readable);
  if (!start.has_value()) return std::nullopt;
  return start->index;
}

TEST(ReplayStart, IsTheNewestBookmarkThatTheWorkerReads) {
  IterationState iteration = AnIteration();
  EXPECT_EQ(StartOf(iteration, 2, {{"Shuffle", 1, 2}}), 30);
  EXPECT_EQ(StartOf(iteration, 1, {{"Shuffle", 1, 2}}), 20) << "not after what is allowed";
  EXPECT_EQ(StartOf(iteration, 2, {}), 10);
  EXPECT_EQ(StartOf(iteration, 0, {}), 10);
}

TEST(ReplayStart, IsTheBeginningIfNothingElseCanBeRead) {
  IterationState iteration = AnIteration();
  iteration.record.partitions[0].bookmarks.erase(iteration.record.partitions[0].bookmarks.begin());
  EXPECT_EQ(StartOf(iteration, 1, {}), std::nullopt);
  iteration.splits[0].given[{0, 0}] = {.first_ordinal = 0, .numbers = {1, 2}};
  EXPECT_EQ(StartOf(iteration, 1, {}), std::nullopt);
}

// Then the worker refuses the bookmark, and the partition goes to another worker.
TEST(ReplayStart, StaysWhereItIsIfThePartitionHasNoBeginningAnyMore) {
  IterationState iteration = AnIteration();
  iteration.record.partitions[0].bookmarks.erase(iteration.record.partitions[0].bookmarks.begin());
  IterationState retired = iteration;
  retired.splits[0].given[{0, 0}] = {.first_ordinal = 1, .numbers = {2}};
  EXPECT_EQ(StartOf(retired, 1, {}), 30);
  IterationState restored = iteration;
  restored.leads = {0};
  EXPECT_EQ(StartOf(restored, 1, {}), 30);
  IterationState later_pass = iteration;
  later_pass.passes_over = {{0, 1}};
  EXPECT_EQ(StartOf(later_pass, 1, {}), 30);
}

TEST(ReplayStart, IsNeverEarlierInASharedWindow) {
  IterationState iteration = AnIteration();
  iteration.record.commit_policy = protocol::CommitPolicy::kNever;
  EXPECT_EQ(StartOf(iteration, 2, {}), 30);
}

}  // namespace
}  // namespace penstock::control
