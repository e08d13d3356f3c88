// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/graph/position_versions.h"

#include <algorithm>

#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/graph/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A kind of a later release, whose positions have version 3.
void RegisterLaterRange() {
  NodeKind kind = *FindNodeKind("Range");
  kind.op = "LaterRange";
  kind.position_version = 3;
  kind.oldest_position = 2;
  RegisterNodeKind(std::move(kind));
}

TEST(PositionVersions, AreThoseOfTheNodesInTheDataset) {
  RegisterLaterRange();
  EXPECT_THAT(PositionVersionsOf(Dataset::Range(5).Shuffle(3)), IsEmpty()) << "all are the first";
  const Dataset range = Dataset::Range(5);
  const Dataset later = DatasetOf(MakeNode("LaterRange", NodeOf(range)->attrs, {}, {}));
  ASSERT_TRUE(NodeOf(later)->status.ok()) << NodeOf(later)->status;
  EXPECT_THAT(PositionVersionsOf(later.Take(2).Concatenate(later)),
              ElementsAre(control::PositionVersion{"LaterRange", 3}));
}

TEST(PositionVersions, ThatCanBeReadAreTheRangesOfAllKinds) {
  RegisterLaterRange();
  const auto readable = ReadablePositions();
  EXPECT_THAT(readable, Contains(control::PositionVersions{"LaterRange", 2, 3}));
  EXPECT_TRUE(std::ranges::none_of(readable, [](const auto& its) {
    return its.operation == "Range" || its.operation == "position";
  })) << "they have only the first version";
}

}  // namespace
}  // namespace penstock
