// SPDX-License-Identifier: Apache-2.0
// Snapshots as releases before kPiecesFormat read them.
#include "control/journal/joined_pieces.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/journal/changes_proto.h"
#include "control/proto/journal.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/journal/each_change.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;

// Returns the joined pieces in their order.
std::vector<std::string> Joined(const State& state) {
  SnapshotChanges changes = EncodeSnapshot(state).value();
  EXPECT_TRUE(changes.joined);
  const absl::Status joined = JoinPieces(changes);
  EXPECT_TRUE(joined.ok()) << joined;
  EXPECT_TRUE(changes.whole);
  std::vector<std::string> pieces;
  for (const auto& [key, piece] : changes.pieces) pieces.push_back(piece.value());
  return pieces;
}

// An iteration of 100 partitions with a bookmark of this size each.
State LargeIteration(size_t bookmark_bytes) {
  State state;
  auto dataset = std::make_shared<const DatasetRecord>(DatasetRecord{"1000", "definition", {}});
  state.Apply(DatasetRegistered{dataset});
  state.Apply(JobCreated{{.id = JobId(1), .name = "job", .dataset = dataset}});
  const auto apply = [&](protocol::IterationChange change) {
    state.Apply(IterationAltered{IterationId(1), std::move(change)});
  };
  state.Apply(IterationCreated{IterationId(1), JobId(1), 0});
  for (size_t p = 1; p <= 100; ++p) {
    apply(protocol::PartitionOpened{PartitionId(p)});
    apply(protocol::BookmarkAdded{PartitionId(p), {1, std::string(bookmark_bytes, 'b')}});
  }
  return state;
}

TEST(JoinedPieces, AreTheState) {
  State state;
  for (const Change& change : EachChangeBeforeFinalised()) {
    state.Apply(change);
    const std::vector<std::string> joined = Joined(state);
    EXPECT_EQ(joined.size(), 1u);
    absl::StatusOr<State> decoded = DecodeState(joined);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(EncodeState(*decoded), EncodeState(state)) << "after change " << change.index();
  }
}

TEST(JoinedPieces, HaveWholeIterations) {
  const std::vector<std::string> joined = Joined(LargeIteration(1000));
  wire::Snapshot snapshot;
  for (const std::string& piece : joined) ASSERT_TRUE(snapshot.MergeFromString(piece));
  ASSERT_EQ(snapshot.iterations_size(), 1);
  EXPECT_EQ(snapshot.iterations(0).partitions_size(), 100);
}

TEST(JoinedPieces, EndAt16MiB) {
  State state = LargeIteration(20'000);
  for (int i = 0; i < 40; ++i) {
    const std::string id = absl::StrCat("dataset", i);
    state.Apply(DatasetRegistered{
        std::make_shared<const DatasetRecord>(DatasetRecord{id, std::string(kMiB, 'x'), {}})});
  }
  const std::vector<std::string> joined = Joined(state);
  ASSERT_EQ(joined.size(), 3u);
  for (const std::string& piece : joined) EXPECT_LT(piece.size(), 18 * kMiB);
  EXPECT_EQ(EncodeState(DecodeState(joined).value()), EncodeState(state));
}

// The release before could not read the iteration, so its snapshot is not written.
TEST(JoinedPieces, NameAnObjectThatIsTooLarge) {
  SnapshotChanges changes = EncodeSnapshot(LargeIteration(20'000)).value();
  const absl::Status joined = JoinPieces(changes, 17 * kMiB);
  EXPECT_EQ(joined.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(joined.message(), HasSubstr("iteration/00000000000000000001 takes 20"));
  EXPECT_THAT(joined.message(), HasSubstr("penstock upgrade finalise"));
}

}  // namespace
}  // namespace penstock::control
