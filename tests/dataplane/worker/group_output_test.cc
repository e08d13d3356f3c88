// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/group_output.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::worker {
namespace {

using ::testing::ElementsAre;

// Counts 0, 1, 2, …, with an error in place of one.
class Counting final : public NodeIterator {
 public:
  explicit Counting(int64_t count, int64_t error_at = -1) : count_(count), error_at_(error_at) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    if (at_ == count_) return std::nullopt;
    ++made_;
    const int64_t value = at_++;
    if (value == error_at_) return absl::DataLossError("broken");
    return *MakeElement(DefaultPool(), {Tensor(kInt64, {}, &value)}, Scalar(kInt64));
  }
  absl::StatusOr<int64_t> Skip(int64_t count) override {
    const int64_t passed = std::min(count, count_ - at_);
    at_ += passed;
    return passed;
  }
  absl::Status Save(StateWriter&) override { return absl::OkStatus(); }
  absl::Status Restore(StateReader&) override { return absl::OkStatus(); }

  int64_t made() const { return made_; }

 private:
  const int64_t count_;
  const int64_t error_at_;
  int64_t at_ = 0;
  int64_t made_ = 0;
};

class GroupOutputTest : public ::testing::Test {
 protected:
  GroupOutput Of(Counting& counting, int64_t size, Index index = 0) {
    return GroupOutput(counting, size, index,
                       [this](Element element, Index first) -> absl::StatusOr<Element> {
                         EXPECT_FALSE(element.IsShared());
                         finished_.push_back(first);
                         return element;
                       });
  }
  std::vector<Index> finished_;
};

std::string TextOf(const absl::StatusOr<std::optional<Element>>& next) {
  if (!next.ok()) return std::string(next.status().message());
  return next->has_value() ? std::to_string((*next)->tensor(0).scalar<int64_t>()) : "end";
}

TEST_F(GroupOutputTest, EachMemberHasEachElementAndItIsMadeAndFinishedOnce) {
  Counting counting(3, /*error_at=*/1);
  GroupOutput output = Of(counting, 2);
  std::vector<std::string> all;
  for (int i = 0; i < 8; ++i) all.push_back(TextOf(output.Next()));
  EXPECT_THAT(all, ElementsAre("0", "0", "broken", "broken", "2", "2", "end", "end"));
  EXPECT_EQ(counting.made(), 3);
  EXPECT_THAT(finished_, ElementsAre(0, 4));
}

TEST_F(GroupOutputTest, MembersShareOneBlock) {
  Counting counting(1);
  GroupOutput output = Of(counting, 3);
  std::vector<Element> members;
  for (int i = 0; i < 3; ++i) members.push_back(**output.Next());
  for (const Element& member : members) {
    EXPECT_EQ(member.block().data(), members[0].block().data());
  }
  members.resize(1);
  EXPECT_FALSE(members[0].IsShared());  // nothing else holds it
}

TEST_F(GroupOutputTest, PassesOverMembersAndOverWholeElements) {
  Counting counting(10);
  GroupOutput output = Of(counting, 3, /*index=*/30);
  EXPECT_TRUE(output.whole());
  EXPECT_EQ(*output.Skip(1), 1);
  EXPECT_FALSE(output.whole());
  EXPECT_EQ(TextOf(output.Next()), "0");
  EXPECT_EQ(*output.Skip(10), 10);  // one member of element 0, and elements 1 to 3
  EXPECT_TRUE(output.whole());
  EXPECT_EQ(counting.made(), 1);
  EXPECT_EQ(*output.Skip(2), 2);
  EXPECT_EQ(TextOf(output.Next()), "4");
  EXPECT_EQ(TextOf(output.Next()), "5");
  EXPECT_EQ(*output.Skip(100), 2 + 4 * 3);
  EXPECT_EQ(*output.Skip(1), 0);
  EXPECT_EQ(TextOf(output.Next()), "end");
  EXPECT_THAT(finished_, ElementsAre(30, 42, 45));
}

TEST_F(GroupOutputTest, WithoutGroupsItIsTheIteratorsOwn) {
  Counting counting(5);
  GroupOutput output = Of(counting, 1, /*index=*/7);
  EXPECT_EQ(TextOf(output.Next()), "0");
  EXPECT_EQ(*output.Skip(3), 3);
  EXPECT_EQ(TextOf(output.Next()), "4");
  EXPECT_EQ(TextOf(output.Next()), "end");
  EXPECT_EQ(counting.made(), 2);
  EXPECT_THAT(finished_, ElementsAre(7, 11));
}

}  // namespace
}  // namespace penstock::worker
