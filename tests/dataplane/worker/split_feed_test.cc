// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/split_feed.h"

#include <future>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Question = std::tuple<int, int64_t, int64_t>;

// A feed whose requests are recorded, and answered by the test.
struct Feed {
  explicit Feed(std::vector<control::SplitRun> given = {})
      : splits(
            std::move(given),
            [this](int provider, int64_t repetition, int64_t first, int32_t wants) {
              std::lock_guard lock(mu);
              questions.emplace_back(provider, repetition, first);
              wanted.push_back(wants);
            },
            [this](bool begins) {
              std::lock_guard lock(mu);
              if (begins) ++waits;
              asked.notify_all();
            },
            [this] {
              std::lock_guard lock(mu);
              return now;
            }) {}

  void AwaitAWaiter() {
    std::unique_lock lock(mu);
    asked.wait(lock, [&] { return waits > 0; });
  }
  std::vector<Question> Asked() {
    std::lock_guard lock(mu);
    return questions;
  }

  std::mutex mu;
  std::condition_variable asked;
  int waits = 0;
  std::vector<Question> questions;
  std::vector<int32_t> wanted;
  absl::Time now = absl::UnixEpoch();
  PartitionSplits splits;
};

TEST(PartitionSplits, ReplaysTheAssignmentsSplitsWithoutARequest) {
  Feed feed(std::vector<control::SplitRun>{{.numbers = {7, 3, 9, 4}}});
  EXPECT_EQ(**feed.splits.Get(0, 0, 0), 7);
  EXPECT_EQ(**feed.splits.Get(0, 0, 1), 3);
  EXPECT_EQ(**feed.splits.Get(0, 0, 0), 7);
  EXPECT_THAT(feed.Asked(), ElementsAre(Question{0, 0, 4}));
}

TEST(PartitionSplits, AsksOnceWhenHalfTheLastBlockIsRead) {
  Feed feed(std::vector<control::SplitRun>{{.numbers = {1, 2, 3, 4}}});
  EXPECT_EQ(**feed.splits.Get(0, 0, 0), 1);
  EXPECT_THAT(feed.Asked(), IsEmpty());
  EXPECT_EQ(**feed.splits.Get(0, 0, 1), 2);
  EXPECT_EQ(**feed.splits.Get(0, 0, 2), 3);
  EXPECT_EQ(**feed.splits.Get(0, 0, 3), 4);
  EXPECT_THAT(feed.Asked(), ElementsAre(Question{0, 0, 4}));
  feed.splits.Append({.first_ordinal = 4, .numbers = {5, 6}});
  EXPECT_EQ(**feed.splits.Get(0, 0, 4), 5);
  EXPECT_THAT(feed.Asked(), ElementsAre(Question{0, 0, 4}, Question{0, 0, 6}));
}

TEST(PartitionSplits, WhereTheyComeOneAtATimeNoneIsAskedForAhead) {
  Feed feed;
  auto got = std::async(std::launch::async, [&] { return feed.splits.Get(0, 0, 0); });
  feed.AwaitAWaiter();
  feed.splits.Append({.numbers = {5}});
  EXPECT_EQ(**got.get(), 5);
  EXPECT_THAT(feed.Asked(), ElementsAre(Question{0, 0, 0}));
}

TEST(PartitionSplits, RequestsSplitsForATenthOfASecond) {
  for (const auto& [each, wanted] :
       {std::pair(absl::Milliseconds(1), 16), std::pair(absl::Milliseconds(20), 5),
        std::pair(absl::Seconds(3), 1)}) {
    Feed feed(std::vector<control::SplitRun>{{.numbers = {1, 2, 3, 4}}});
    feed.now = absl::UnixEpoch();
    for (int64_t ordinal = 0; ordinal < 4; ++ordinal) {
      ASSERT_TRUE(feed.splits.Get(0, 0, ordinal).ok());
      feed.now += each;
    }
    EXPECT_THAT(feed.wanted, ElementsAre(wanted));
  }
}

TEST(PartitionSplits, WaitsForTheAnswerAndTellsThatItWaits) {
  Feed feed;
  auto got = std::async(std::launch::async, [&] { return feed.splits.Get(1, 2, 0); });
  feed.AwaitAWaiter();
  EXPECT_THAT(feed.Asked(), ElementsAre(Question{1, 2, 0}));
  feed.splits.Append({.provider = 1, .repetition = 2, .numbers = {42}, .no_more = true});
  EXPECT_EQ(**got.get(), 42);
  EXPECT_EQ(*feed.splits.Get(1, 2, 1), std::nullopt);
  EXPECT_EQ(feed.Asked().size(), 1u);
}

TEST(PartitionSplits, TakesARepeatedAnswerOnceAndRequestsGapsAgain) {
  Feed feed(std::vector<control::SplitRun>{{.numbers = {0, 1}}});
  ASSERT_TRUE(feed.splits.Get(0, 0, 1).ok());
  feed.splits.Append({.first_ordinal = 3, .numbers = {9}});
  EXPECT_THAT(feed.Asked(), ElementsAre(Question{0, 0, 2}, Question{0, 0, 2}));
  feed.splits.Append({.first_ordinal = 2, .numbers = {3}});
  feed.splits.Append({.first_ordinal = 2, .numbers = {3, 4}, .no_more = true});
  EXPECT_EQ(**feed.splits.Get(0, 0, 3), 4);
  EXPECT_EQ(*feed.splits.Get(0, 0, 4), std::nullopt);
}

TEST(PartitionSplits, RepeatsOpenQuestionsForARenewedSession) {
  Feed feed(
      std::vector<control::SplitRun>{{.numbers = {0, 1}}, {.provider = 1, .numbers = {5, 6, 7}}});
  ASSERT_TRUE(feed.splits.Get(0, 0, 1).ok());
  ASSERT_TRUE(feed.splits.Get(1, 0, 0).ok());
  feed.splits.AskAgain();
  EXPECT_THAT(feed.Asked(), ElementsAre(Question{0, 0, 2}, Question{0, 0, 2}));
}

TEST(PartitionSplits, NamesRetiredSplitsThatItRefuses) {
  Feed feed(std::vector<control::SplitRun>{{.first_ordinal = 10, .numbers = {1, 2, 3, 4}}});
  EXPECT_EQ(**feed.splits.Get(0, 0, 10), 1);
  absl::Status early = feed.splits.Get(0, 0, 9).status();
  EXPECT_EQ(early.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(early.message(), ::testing::HasSubstr("from ordinal 10 on"));
}

TEST(PartitionSplits, CancelWakesAWaitingCall) {
  Feed feed;
  auto got = std::async(std::launch::async, [&] { return feed.splits.Get(0, 0, 0); });
  feed.AwaitAWaiter();
  feed.splits.Cancel();
  EXPECT_EQ(got.get().status().code(), absl::StatusCode::kCancelled);
}

TEST(PartitionSplits, UnneededSplitsAreForgotten) {
  Feed feed(std::vector<control::SplitRun>{
      {.repetition = 0, .numbers = {1, 2}, .no_more = true},
      {.repetition = 1, .numbers = {3, 4, 5}, .no_more = true},
      {.provider = 1, .repetition = 0, .numbers = {6}, .no_more = true}});
  feed.splits.Forget(std::vector<control::SplitMark>{{0, 1, 2}});
  EXPECT_TRUE(absl::IsNotFound(feed.splits.Get(0, 1, 1).status()));
  EXPECT_EQ(**feed.splits.Get(0, 1, 2), 5);
  EXPECT_FALSE(feed.splits.Get(0, 1, 3)->has_value());
  EXPECT_EQ(**feed.splits.Get(1, 0, 0), 6);
  feed.splits.Forget(std::vector<control::SplitMark>{{0, 2, 0}, {1, 0, 7}});
  EXPECT_TRUE(absl::IsNotFound(feed.splits.Get(1, 0, 0).status()));
  EXPECT_THAT(feed.Asked(), IsEmpty());
}

}  // namespace
}  // namespace penstock::worker
