// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session/agenda.h"

#include "gtest/gtest.h"

namespace penstock::client {
namespace {

class AgendaTest : public testing::Test {
 protected:
  static absl::Time At(int second) { return absl::FromUnixSeconds(second); }
  // Returns the key that is due; 0: none.
  int Next(int second) {
    wake_ = At(100);
    return agenda_.Next(At(second), wake_).value_or(0);
  }

  Agenda<int> agenda_;
  absl::Time wake_;
};

TEST_F(AgendaTest, GivesTheEarliestKeyOnceItIsDue) {
  EXPECT_EQ(Next(0), 0);
  EXPECT_EQ(wake_, At(100));
  agenda_.Set(1, At(20));
  agenda_.Set(2, At(10));
  EXPECT_EQ(Next(9), 0);
  EXPECT_EQ(wake_, At(10));
  EXPECT_EQ(Next(10), 2);
  EXPECT_EQ(Next(30), 2) << "until its time is set again";
  agenda_.Set(2, absl::InfiniteFuture());
  EXPECT_EQ(Next(30), 1);
}

TEST_F(AgendaTest, AKeyHasItsLastTime) {
  agenda_.Set(1, At(10));
  agenda_.Set(1, At(30));
  agenda_.Set(1, At(30));
  EXPECT_EQ(Next(29), 0);
  EXPECT_EQ(wake_, At(30));
  agenda_.Set(1, absl::InfinitePast());
  EXPECT_EQ(Next(0), 1);
}

TEST_F(AgendaTest, KeysOfOneTimeAreAscending) {
  for (int key : {3, 1, 2}) agenda_.Set(key, At(10));
  for (int key : {1, 2, 3}) {
    EXPECT_EQ(Next(10), key);
    agenda_.Set(key, absl::InfiniteFuture());
  }
  EXPECT_EQ(Next(10), 0);
}

}  // namespace
}  // namespace penstock::client
