// SPDX-License-Identifier: Apache-2.0
#include "control/state/change_log.h"

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/ids.h"

namespace penstock::control {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ChangeLog, TellsWhatChangedSinceACount) {
  ChangeLog<WorkerId> log;
  log.Add(WorkerId(1));
  const uint64_t seen = log.count();
  EXPECT_THAT(*log.After(seen), IsEmpty());
  log.Add(WorkerId(2));
  log.Add(WorkerId(1));
  EXPECT_THAT(*log.After(seen), ElementsAre(WorkerId(2), WorkerId(1)));
  EXPECT_THAT(*log.After(0), ElementsAre(WorkerId(1), WorkerId(2), WorkerId(1)));
}

TEST(ChangeLog, ForgetsTheOldestOfManyChanges) {
  ChangeLog<WorkerId> log;
  for (uint64_t i = 0; i < 200'000; ++i) log.Add(WorkerId(i));
  EXPECT_EQ(log.count(), 200'000u);
  EXPECT_FALSE(log.After(0).has_value());
  ASSERT_TRUE(log.After(190'000).has_value());
  EXPECT_EQ(log.After(190'000)->front(), WorkerId(190'000));
  EXPECT_EQ(log.After(190'000)->size(), 10'000u);
}

TEST(ChangeLog, ACountOfAnotherLogIsNotKnown) {
  EXPECT_FALSE(ChangeLog<WorkerId>().After(1).has_value());
}

}  // namespace
}  // namespace penstock::control
