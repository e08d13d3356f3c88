// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/lives.h"

#include "gtest/gtest.h"

namespace penstock::control {
namespace {

constexpr uint64_t kJournal = 7;

Life LifeOf(uint64_t id, uint64_t term, uint64_t journal = kJournal) {
  return {.journal = journal, .id = id, .term = Term(term)};
}

// Terms 3 to 5, which began with records 20, 50 and 90.
const std::vector<BegunLife> kLives = {
    {.life = LifeOf(13, 3), .begins = 20}, {LifeOf(14, 4), 50, {}}, {LifeOf(15, 5), 90, {}}};

TEST(Lives, AProcessThatHeardNothingHasNoOrigin) {
  EXPECT_EQ(OriginOf({}, kLives), Origin::kNone);
}

TEST(Lives, ThePresentOneIsHere) {
  EXPECT_EQ(OriginOf({LifeOf(15, 5), 90}, kLives), Origin::kHere);
  EXPECT_EQ(OriginOf({LifeOf(15, 5), 1000}, kLives), Origin::kHere);
}

TEST(Lives, AnEarlierOneIsHereAsFarAsTheNextWentOnFromIt) {
  EXPECT_EQ(OriginOf({LifeOf(13, 3), 49}, kLives), Origin::kHere);
  EXPECT_EQ(OriginOf({LifeOf(13, 3), 50}, kLives), Origin::kBeyond);
  EXPECT_EQ(OriginOf({LifeOf(14, 4), 89}, kLives), Origin::kHere);
  EXPECT_EQ(OriginOf({LifeOf(14, 4), 120}, kLives), Origin::kBeyond);
}

TEST(Lives, AnUnknownLifeIsBeyondTheJournal) {
  EXPECT_EQ(OriginOf({LifeOf(99, 6), 95}, kLives), Origin::kBeyond) << "began from this journal";
  EXPECT_EQ(OriginOf({LifeOf(99, 5), 95}, kLives), Origin::kBeyond) << "began beside the present";
  EXPECT_EQ(OriginOf({LifeOf(99, 4), 60}, kLives), Origin::kBeyond);
}

TEST(Lives, AnEarlierLifeIsKnownUpToTheFirstKeptOne) {
  EXPECT_EQ(OriginOf({LifeOf(99, 2), 19}, kLives), Origin::kHere);
  EXPECT_EQ(OriginOf({LifeOf(99, 2), 20}, kLives), Origin::kBeyond);
}

TEST(Lives, LivesOfAnotherJournalAreForeign) {
  EXPECT_EQ(OriginOf({LifeOf(15, 5, 8), 90}, kLives), Origin::kOther);
  EXPECT_EQ(OriginOf({LifeOf(1, 1, 8), 1}, kLives), Origin::kOther);
}

}  // namespace
}  // namespace penstock::control
