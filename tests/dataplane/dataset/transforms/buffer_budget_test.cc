// SPDX-License-Identifier: Apache-2.0
// The memory of transforms that keep elements, when the budget is far below what they would keep.
#include "dataplane/memory/buffer_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dataplane/dataset/engine/node_iterator.h"
#include "dataplane/memory/catch_exhausted.h"
#include "dataplane/memory/pool.h"
#include "penstock/dataset.h"

namespace penstock {
namespace {

using testing::HasSubstr;

constexpr int64_t kBufferBytes = 16 << 20;
constexpr int64_t kForever = int64_t{1} << 40;

// Reads `dataset` as a partition of a worker does, until reading ends.
class BufferedReading {
 public:
  explicit BufferedReading(const Dataset& dataset, int64_t budget_bytes = kBufferBytes)
      : budget_(budget_bytes), account_(budget_) {
    EXPECT_TRUE(dataset.status().ok()) << dataset.status();
    context_.pool = pool_.get();
    context_.buffers = &account_;
    absl::StatusOr<std::unique_ptr<NodeIterator>> built = BuildIterator(dataset, context_);
    EXPECT_TRUE(built.ok()) << built.status();
    iterator_ = *std::move(built);
  }

  absl::StatusOr<std::optional<Element>> Next() { return iterator_->Next(); }
  // Returns the error that ends reading; OK at the end.
  absl::Status Read() {
    while (true) {
      const absl::StatusOr<std::optional<Element>> next = Next();
      if (IsExhausted(next.status())) return next.status();
      if (next.ok() && !next->has_value()) return absl::OkStatus();
      ++elements_;
    }
  }
  int64_t elements() const { return elements_; }
  int64_t bytes_in_pool() const { return pool_->counters().bytes_reserved; }
  int64_t taken() const { return budget_.taken(); }
  int64_t used() const { return account_.used(); }
  void Drop() { iterator_.reset(); }

 private:
  BufferBudget budget_;
  BufferAccount account_;
  std::shared_ptr<Pool> pool_ = Pool::Create();
  RunContext context_;
  std::unique_ptr<NodeIterator> iterator_;
  int64_t elements_ = 0;
};

// The same element of doubles, again and again.
Dataset SameElement(int64_t doubles) {
  const std::vector<double> values(static_cast<size_t>(doubles));
  return Dataset::FromTensors({Tensor(kFloat64, {&doubles, 1}, values.data())},
                              Dense(kFloat64, {doubles}))
      .Repeat();
}

// Elements of 64 KiB.
Dataset LargeElements() {
  return SameElement(8192).Map([](Expr x) { return x + 1.0; });
}

struct BufferCase {
  std::string name;
  std::string node;
  Dataset dataset;
};

std::vector<BufferCase> BufferCases() {
  const auto one_key = [](Expr) { return Expr(int64_t{0}); };
  const auto own_key = [](Expr x) { return x; };
  const Dataset numbers = Dataset::Range(kForever);
  const Dataset same = SameElement(10);
  const Dataset failing = numbers.Map([](Expr x) { return Expr(1) / (x * 0); });
  return {
      {"Shuffle", "Shuffle#3", LargeElements().Shuffle(kForever)},
      {"ShuffleOfSmallElements", "Shuffle#1", numbers.Shuffle(kForever)},
      {"ShuffleOfOneElement", "Shuffle#2", same.Shuffle(kForever)},
      {"ShuffleOfErrors", "Shuffle#2", failing.Shuffle(kForever)},
      {"GroupByWindow", "GroupByWindow#3",
       LargeElements().GroupByWindow(one_key, kForever).Batch()},
      {"GroupByWindowOfOneElement", "GroupByWindow#2",
       same.GroupByWindow(one_key, kForever).Batch()},
      {"GroupByWindowOfManyKeys", "GroupByWindow#1", numbers.GroupByWindow(own_key, 2).Batch()},
      {"Window", "Window#3", LargeElements().Window(kForever).Batch()},
      {"WindowOfOneElement", "Window#2", same.Window(kForever).Batch()},
      {"WindowOfErrors", "Window#2", failing.Window(kForever).Batch()},
      {"Rebatch", "Rebatch#3", LargeElements().Rebatch(kForever)},
      {"RebatchOfOneElement", "Rebatch#2", same.Rebatch(kForever)},
      {"Pack", "Pack#4",
       LargeElements()
           .Map([](Expr x) {
             return Struct({{"t", x}});
           })
           .Pack(1 << 24)},
      {"Rounds", "Rounds#1", numbers.Rounds(1 << 20, {.bucket = one_key})},
      {"RoundsOfErrors", "Rounds#2", failing.Rounds(1 << 20, {.bucket = one_key})},
      {"ShuffleOfCachesThatAreGone", "Shuffle#",
       numbers.FlatMap([](Expr) { return LargeElements().Take(1).Cache(); }).Shuffle(kForever)},
      {"ShuffleOfACacheThatNeverFills", "Shuffle#7",
       LargeElements().Take(2).Cache().Take(1).Repeat().Shuffle(kForever)},
      {"ArgumentsOfOpenDatasets", "Interleave#",
       LargeElements().Interleave([](Expr x) { return Dataset::FromTensors(x).Repeat(); },
                                  {.cycle_length = 4096})},
      {"RowsOfABatch", "Batch#1", numbers.Batch(int64_t{1} << 40)},
      {"CyclesInCycles", "Interleave",
       numbers.Interleave(
           [](Expr) {
             return Dataset::Range(kForever).Interleave(
                 [](Expr) { return Dataset::Range(kForever); }, {.cycle_length = 4096});
           },
           {.cycle_length = 4096})},
  };
}

class BuffersBeyondTheBudget : public testing::TestWithParam<BufferCase> {};

TEST_P(BuffersBeyondTheBudget, EndReadingWithAnErrorThatNamesTheNode) {
  BufferedReading reading(GetParam().dataset);
  const absl::Status ended = reading.Read();
  EXPECT_TRUE(absl::IsResourceExhausted(ended)) << ended;
  EXPECT_THAT(ended.message(), HasSubstr("buffer_budget_bytes"));
  EXPECT_THAT(ended.message(), HasSubstr(GetParam().node));
  EXPECT_LE(reading.taken(), kBufferBytes);
  EXPECT_GT(reading.used(), kBufferBytes / 2);
  EXPECT_LE(reading.bytes_in_pool(), 2 * kBufferBytes);
  reading.Drop();
  EXPECT_EQ(reading.used(), 0);
  EXPECT_EQ(reading.taken(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, BuffersBeyondTheBudget, testing::ValuesIn(BufferCases()),
                         [](const auto& info) { return info.param.name; });

TEST(BufferedReading, ACacheWithoutRoomReadsItsInputAgain) {
  BufferedReading reading(LargeElements().Take(1000).Cache().Repeat(3));
  EXPECT_EQ(reading.Read(), absl::OkStatus());
  EXPECT_EQ(reading.elements(), 3000);
  EXPECT_LE(reading.bytes_in_pool(), 2 * kBufferBytes);
  EXPECT_EQ(reading.used(), 0);
}

TEST(BufferedReading, APrefetchWithoutRoomReadsLessAhead) {
  BufferedReading reading(LargeElements().Take(2000).Prefetch(1000));
  EXPECT_EQ(reading.Read(), absl::OkStatus());
  EXPECT_EQ(reading.elements(), 2000);
  EXPECT_LE(reading.bytes_in_pool(), 2 * kBufferBytes);
  EXPECT_EQ(reading.used(), 0);
}

TEST(BufferedReading, BuffersThatFitAreReadToTheEnd) {
  BufferedReading shuffle(LargeElements().Take(1000).Shuffle(100));
  EXPECT_EQ(shuffle.Read(), absl::OkStatus());
  EXPECT_EQ(shuffle.elements(), 1000);
  EXPECT_EQ(shuffle.used(), 0);
  BufferedReading cache(LargeElements().Take(50).Cache().Repeat(5));
  EXPECT_EQ(cache.Read(), absl::OkStatus());
  EXPECT_EQ(cache.elements(), 250);
  EXPECT_GT(cache.used(), 50 * (64 << 10));
}

// Nodes that can do without leave room for those that cannot.
TEST(BufferedReading, AShuffleKeepsItsRoomBeforeACacheAndAPrefetch) {
  BufferedReading cache(LargeElements().Take(1000).Shuffle(100).Cache().Repeat(3));
  EXPECT_EQ(cache.Read(), absl::OkStatus());
  EXPECT_EQ(cache.elements(), 3000);
  BufferedReading prefetch(LargeElements().Take(2000).Shuffle(100).Prefetch(1000));
  EXPECT_EQ(prefetch.Read(), absl::OkStatus());
  EXPECT_EQ(prefetch.elements(), 2000);
}

TEST(BufferedReading, AShuffleOfACacheCountsItsElementsOnce) {
  BufferedReading reading(LargeElements().Take(150).Cache().Repeat(2).Shuffle(150));
  EXPECT_EQ(reading.Read(), absl::OkStatus()) << "150 elements of 64 KiB are 9.4 MiB of 16";
  EXPECT_EQ(reading.elements(), 300);
}

TEST(BufferBudget, LeavesBytesForOthersBesideAPartitionThatGrowsWithoutEnd) {
  BufferBudget budget(kBufferBytes);
  BufferAccount greedy(budget);
  BufferAccount other_greedy(budget);
  BufferAccount modest(budget);
  while (greedy.Add(1000)) {
  }
  EXPECT_GT(greedy.used(), kBufferBytes / 10 * 9);
  while (other_greedy.Add(1000)) {
  }
  EXPECT_TRUE(modest.Add(kBufferBytes / 2000));
  EXPECT_LE(budget.taken(), kBufferBytes);
}

TEST(BufferBudget, ARefusalOnOneThreadRefusesNothingOnAnother) {
  BufferBudget budget(kBufferBytes);
  BufferAccount account(budget);
  ASSERT_TRUE(account.Add(kBufferBytes / 2));
  std::atomic<bool> done = false;
  std::thread greedy([&] {
    while (!done) EXPECT_FALSE(account.Add(kBufferBytes));
  });
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(account.Add(1000));
    account.Subtract(1000);
  }
  done = true;
  greedy.join();
  EXPECT_EQ(account.used(), kBufferBytes / 2);
}

TEST(BufferBudget, CountsASlotOfSeveralHoldersOnce) {
  BufferBudget budget(kBufferBytes);
  BufferAccount account(budget);
  const int slot = 0;
  ASSERT_TRUE(account.AddSlot(&slot, 1000, 1));
  ASSERT_TRUE(account.AddSlot(&slot, 1000, 1));
  EXPECT_EQ(account.used(), 1002);
  account.SubtractSlot(&slot, 1);
  EXPECT_EQ(account.used(), 1001);
  account.SubtractSlot(&slot, 1);
  EXPECT_EQ(budget.taken(), 0);
}

TEST(BufferBudget, APartCountsForTheWholeAndHasItsOwnLimit) {
  BufferBudget whole(kBufferBytes);
  BufferBudget part(kBufferBytes / 4, "part_bytes", whole);
  BufferAccount of_part(part), other(whole);
  ASSERT_TRUE(of_part.Add(kBufferBytes / 8));
  EXPECT_FALSE(of_part.Add(kBufferBytes / 8 + 1));
  EXPECT_STREQ(part.Refusing(of_part.used(), kBufferBytes / 8 + 1).setting(), "part_bytes");
  EXPECT_EQ(whole.taken(), part.taken());
  ASSERT_TRUE(other.Add(kBufferBytes / 16 * 13));
  EXPECT_FALSE(part.HasRoomForOptional(1));
  EXPECT_FALSE(of_part.Add(kBufferBytes / 10));  // the part has it, but the whole does not
  EXPECT_STREQ(part.Refusing(of_part.used(), kBufferBytes / 10).setting(), "buffer_budget_bytes");
  EXPECT_EQ(whole.taken(), part.taken() + kBufferBytes / 16 * 13);
  of_part.Subtract(kBufferBytes / 8);
  EXPECT_EQ(part.taken(), 0);
  EXPECT_EQ(whole.taken(), kBufferBytes / 16 * 13);
}

TEST(BufferBudget, GetsBackWhatAPartitionNoLongerUses) {
  BufferBudget budget(kBufferBytes);
  BufferAccount first(budget);
  EXPECT_TRUE(first.Add(kBufferBytes / 4 * 3));
  first.Subtract(kBufferBytes / 4 * 3 - 1);
  EXPECT_LE(budget.taken(), 1 << 20);
  {
    BufferAccount second(budget);
    EXPECT_TRUE(second.Add(kBufferBytes / 4 * 3));
  }
  EXPECT_LE(budget.taken(), 1 << 20);
}

}  // namespace
}  // namespace penstock
