// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session_state/step_marks.h"

#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

std::vector<int64_t> StepsOf(const StepMarks& marks) {
  std::vector<int64_t> steps;
  for (const control::StepMark& mark : marks.Marks()) steps.push_back(mark.step);
  return steps;
}

StepMarks MarksUpTo(int64_t last) {
  StepMarks marks;
  for (int64_t step = 0; step <= last; ++step) marks.Note(step, {PartitionId(1), 2 * step});
  return marks;
}

TEST(StepMarksTest, AreTheLatestThatPowersOfTwoDivide) {
  EXPECT_THAT(StepsOf(StepMarks()), ::testing::IsEmpty());
  EXPECT_THAT(StepsOf(MarksUpTo(0)), ::testing::ElementsAre(0));
  EXPECT_THAT(StepsOf(MarksUpTo(13)), ::testing::ElementsAre(13, 12, 10, 8, 0));
  EXPECT_EQ(MarksUpTo(13).Marks()[3].row, (protocol::PartitionRow{PartitionId(1), 16}));
}

TEST(StepMarksTest, OfTwoConsumersHaveOneInCommon) {
  for (int64_t behind = 0; behind < 200; ++behind) {
    for (int64_t apart : {0, 1, 2, 7, 30, 100}) {
      const std::vector<int64_t> one = StepsOf(MarksUpTo(behind));
      const std::vector<int64_t> other = StepsOf(MarksUpTo(behind + apart));
      int64_t common = -1;
      for (int64_t step : one) {
        if (std::count(other.begin(), other.end(), step) > 0) common = std::max(common, step);
      }
      ASSERT_GE(common, std::max<int64_t>(0, behind - 2 * apart)) << behind << " " << apart;
    }
  }
}

}  // namespace
}  // namespace penstock::client
