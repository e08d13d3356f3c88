// SPDX-License-Identifier: Apache-2.0
// Snapshots that are taken a piece at a time, while the state goes on changing.
#include "control/journal/snapshot_taker.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "control/journal/changes_proto.h"
#include "control/state/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/journal/each_change.h"

namespace penstock::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;

// A state, and the snapshots of it, each merged into the ones before it.
class SnapshotTakerTest : public ::testing::Test {
 protected:
  void Apply(const Change& change) {
    ASSERT_TRUE(Fits(state_, change).ok()) << Fits(state_, change);
    taker_.BeforeChange(state_, change);
    state_.Apply(change);
  }
  // Takes a whole snapshot or what has changed since the last one. Returns what it changed.
  SnapshotChanges Take() {
    taker_.BeginSnapshot(state_, ++sequence_);
    return Finish();
  }
  SnapshotChanges Finish() {
    while (!Step()) {
    }
    EXPECT_EQ(last_.sequence, sequence_);
    return std::move(last_.changes);
  }
  // Encodes one piece. Returns whether the snapshot is complete, or could not be taken.
  bool Step() {
    auto taken = taker_.Continue(state_, sequence_, 1);
    EXPECT_TRUE(taken.ok()) << taken.status();
    if (!taken.ok()) return true;
    if (!taken->has_value()) return false;
    last_ = **std::move(taken);
    Merge(last_.changes, merged_);
    return true;
  }
  std::vector<std::string> Pieces() const {
    std::vector<std::string> pieces;
    for (const auto& [key, piece] : merged_.pieces)
      if (piece.has_value()) pieces.push_back(*piece);
    return pieces;
  }
  // Makes a job with one iteration, and opens its partitions.
  void MakeIteration(size_t partitions) {
    auto dataset = std::make_shared<const DatasetRecord>(DatasetRecord{"1000", "definition", {}});
    Apply(DatasetRegistered{dataset});
    Apply(JobCreated{{.id = JobId(1), .name = "job", .dataset = dataset}});
    Apply(IterationCreated{kIteration, JobId(1), 0});
    for (size_t p = 1; p <= partitions; ++p) Alter(protocol::PartitionOpened{PartitionId(p)});
  }
  void Alter(protocol::IterationChange change) {
    Apply(IterationAltered{kIteration, std::move(change)});
  }
  void AddBookmark(size_t partition, Index index, size_t bytes) {
    Alter(protocol::BookmarkAdded{PartitionId(partition), {index, std::string(bytes, 'b')}});
  }

  static constexpr IterationId kIteration{1};
  State state_{.format = kNewestFormat};
  SnapshotTaker taker_;
  uint64_t sequence_ = 0;
  SnapshotTaker::Taken last_{};
  SnapshotChanges merged_;
};

TEST_F(SnapshotTakerTest, EachChangeIsInTheNextSnapshot) {
  taker_.Begin(state_);
  EXPECT_TRUE(Take().whole);
  for (const Change& change : EachChangeBeforeFinalised()) {
    Apply(change);
    EXPECT_FALSE(Take().whole);
    EXPECT_EQ(Pieces(), EncodeState(state_).value()) << "change " << change.index();
  }
}

TEST_F(SnapshotTakerTest, ASnapshotIsTheStateWithWhichItBegan) {
  const std::vector<Change> changes = EachChangeBeforeFinalised();
  for (size_t begins = 0; begins < changes.size(); ++begins) {
    SCOPED_TRACE(absl::StrCat("before change ", begins));
    state_ = {.format = kNewestFormat};
    taker_ = SnapshotTaker();
    taker_.Begin(state_);
    for (size_t i = 0; i < begins; ++i) Apply(changes[i]);
    const std::vector<std::string> then = EncodeState(state_).value();
    taker_.BeginSnapshot(state_, ++sequence_);
    for (size_t i = begins; i < changes.size(); ++i) Apply(changes[i]);
    EXPECT_TRUE(Finish().whole);
    EXPECT_EQ(Pieces(), then);
    Take();
    EXPECT_EQ(Pieces(), EncodeState(state_).value());
  }
}

TEST_F(SnapshotTakerTest, ARecoveredStateIsTakenAsAWhole) {
  for (const Change& change : EachChangeBeforeFinalised()) state_.Apply(change);
  taker_.Begin(state_);
  EXPECT_TRUE(Take().whole);
  EXPECT_EQ(Pieces(), EncodeState(state_).value());
}

// The release before knows only whole snapshots.
TEST_F(SnapshotTakerTest, EachSnapshotIsWholeUntilTheFormatIsFinalised) {
  state_ = {};
  taker_.Begin(state_);
  const auto take = [&] {
    merged_ = {};
    const SnapshotChanges taken = Take();
    EXPECT_TRUE(taken.whole);
    EXPECT_EQ(Pieces(), EncodeState(state_).value());
    EXPECT_EQ(Pieces().size(), taken.pieces.size()) << "it names what is not there";
    return taken.joined;
  };
  for (const Change& change : EachChangeBeforeFinalised()) {
    Apply(change);
    EXPECT_TRUE(take()) << "change " << change.index();
  }
  taker_.BeginSnapshot(state_, ++sequence_);
  Apply(FormatFinalised{kPiecesFormat});
  EXPECT_TRUE(Finish().joined) << "it began before";
  EXPECT_FALSE(take());
  const SnapshotChanges next = Take();
  EXPECT_FALSE(next.joined);
  EXPECT_FALSE(next.whole);
  EXPECT_THAT(next.pieces, IsEmpty());
}

TEST_F(SnapshotTakerTest, OnlyChangedPiecesAreTaken) {
  taker_.Begin(state_);
  MakeIteration(1000);
  Alter(protocol::ReaderJoined{ClientId(7), Incarnation(1)});
  Alter(protocol::ReaderJoined{ClientId(8), Incarnation(1)});
  EXPECT_GT(Take().pieces.size(), 1000 / kPartitionsPerPiece);
  EXPECT_THAT(Take().pieces, IsEmpty());
  AddBookmark(40, 5, 100);
  EXPECT_THAT(Take().pieces, ElementsAre(Key(HasSubstr("partitions/00000000000000000002"))));
  Alter(protocol::ReaderCommitted{ClientId(8), PartitionId(3), IndexSet::Of(0, 5)});
  EXPECT_THAT(Take().pieces, ElementsAre(Key(HasSubstr("reader/00000000000000000001"))));
}

TEST_F(SnapshotTakerTest, OneStepTakesFewBytes) {
  taker_.Begin(state_);
  MakeIteration(1000);
  for (size_t p = 1; p <= 1000; ++p) AddBookmark(p, 1, 1000);
  taker_.BeginSnapshot(state_, 1);
  int steps = 1;
  while (!taker_.Continue(state_, 1, 100'000).value().has_value()) ++steps;
  EXPECT_GE(steps, 8);
  EXPECT_FALSE(taker_.under_way());
}

// The end of the iteration makes its pieces small. Before it, only the first ones can be encoded:
// the others are larger than a piece may be.
TEST_F(SnapshotTakerTest, TheEndOfALargeIterationEncodesFewPieces) {
  taker_ = SnapshotTaker(/*most_piece_bytes=*/5000, /*bytes_before_changes=*/1000);
  taker_.Begin(state_);
  MakeIteration(1000);
  for (size_t p = 1; p <= 1000; ++p) AddBookmark(p, 1, p <= 64 ? 100 : 1000);
  Alter(protocol::IterationClosed{absl::InlinedVector<Index, 1>(1000, 2)});
  taker_.BeginSnapshot(state_, ++sequence_);
  Alter(protocol::IterationFinished{});
  ++sequence_;
  EXPECT_TRUE(Finish().whole);  // as of the later record
  EXPECT_EQ(Pieces(), EncodeState(state_).value());
  EXPECT_THAT(Take().pieces, IsEmpty());
}

TEST_F(SnapshotTakerTest, ASnapshotThatBeginsAgainIsTheStateAfterItsSequence) {
  const std::vector<Change> changes = EachChangeBeforeFinalised();
  for (size_t begins = 0; begins < changes.size(); ++begins) {
    SCOPED_TRACE(absl::StrCat("before change ", begins));
    state_ = {};
    merged_ = {};
    taker_ = SnapshotTaker(kMostSnapshotPieceBytes, /*bytes_before_changes=*/0);
    taker_.Begin(state_);
    for (size_t i = 0; i < begins; ++i) Apply(changes[i]);
    std::map<uint64_t, std::vector<std::string>> states;
    const auto step = [&] {
      states[sequence_] = EncodeState(state_).value();
      if (taker_.under_way() && Step()) {
        EXPECT_EQ(Pieces(), states.at(last_.sequence));
      }
    };
    taker_.BeginSnapshot(state_, sequence_ = begins);
    step();
    for (size_t i = begins; i < changes.size(); ++i) {
      Apply(changes[i]);
      ++sequence_;
      step();
    }
    while (taker_.under_way()) step();
    Take();
    EXPECT_EQ(Pieces(), EncodeState(state_).value());
  }
}

TEST_F(SnapshotTakerTest, AStreamOfLargeChangesDoesNotHoldASnapshotUpForEver) {
  taker_ = SnapshotTaker(kMostSnapshotPieceBytes, /*bytes_before_changes=*/100);
  taker_.Begin(state_);
  MakeIteration(1600);
  taker_.BeginSnapshot(state_, ++sequence_);
  for (int end = 0; end < 100 && taker_.under_way(); ++end) {
    Alter(protocol::IterationClosed{absl::InlinedVector<Index, 1>(1600, end)});
    Alter(protocol::IterationReopened{});
    ++sequence_;
    Step();
  }
  ASSERT_FALSE(taker_.under_way());
  Take();
  EXPECT_EQ(Pieces(), EncodeState(state_).value());
}

// SQLite and Protobuf limit the size of one piece.
TEST_F(SnapshotTakerTest, ALargeIterationIsTakenInPieces) {
  taker_ = SnapshotTaker(/*most_piece_bytes=*/200'000);
  taker_.Begin(state_);
  MakeIteration(100);
  for (size_t p = 1; p <= 100; ++p) AddBookmark(p, 1, 10'000);
  Take();
  EXPECT_GT(SnapshotBytes(Pieces()), 1'000'000u);
  absl::StatusOr<State> decoded = DecodeState(Pieces());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->iterations, state_.iterations);
}

TEST_F(SnapshotTakerTest, APieceThatIsTooLargeIsNamedAndTriedAgain) {
  taker_ = SnapshotTaker(/*most_piece_bytes=*/5000);
  taker_.Begin(state_);
  Apply(DatasetRegistered{
      std::make_shared<const DatasetRecord>(DatasetRecord{"big", std::string(6000, 'x'), {}})});
  taker_.BeginSnapshot(state_, 1);
  const absl::Status refused = taker_.Continue(state_, 1, 1'000'000).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("dataset/big takes 60"));
  EXPECT_FALSE(taker_.under_way());
  Apply(DatasetUnregistered{"big"});
  EXPECT_TRUE(Take().whole);
  EXPECT_EQ(Pieces(), EncodeState(state_).value());
}

}  // namespace
}  // namespace penstock::control
