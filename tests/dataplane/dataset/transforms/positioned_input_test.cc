// SPDX-License-Identifier: Apache-2.0
// Positions of an input that is read ahead. Each state begins where the one before it began, or
// later, because the elements of the earlier one may be committed.
#include "dataplane/dataset/transforms/positioned_input.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "include/status_macros.h"

namespace penstock {
namespace {

// Counts 0, 1, 2, …; its state is the next number, and bytes that say nothing.
class CountingInput final : public NodeIterator {
 public:
  explicit CountingInput(size_t state_bytes = 0) : rest_(state_bytes, 'x') {}
  absl::StatusOr<std::optional<Element>> Next() override { return absl::InternalError("skip it"); }
  absl::StatusOr<int64_t> Skip(int64_t count) override {
    next_ += count;
    return count;
  }
  absl::Status Save(StateWriter& writer) override {
    writer.WriteInt(next_);
    if (!rest_.empty()) writer.WriteString(rest_);
    return absl::OkStatus();
  }
  absl::Status Restore(StateReader& reader) override {
    ASSIGN_OR_RETURN(next_, reader.ReadInt());
    return absl::OkStatus();
  }

 private:
  const std::string rest_;
  int64_t next_ = 0;
};

PositionedInput OfCounting() {
  return PositionedInput(std::make_unique<CountingInput>(), kRememberSeldom);
}

// Returns the input's position in the state after the first `n` elements.
int64_t Begin(PositionedInput& input, int64_t n, uint64_t save_number) {
  StateWriter writer(save_number);
  const absl::Status saved = input.Save(writer, n);
  EXPECT_TRUE(saved.ok()) << saved;
  StateReader reader(writer.bytes());
  return static_cast<int64_t>(*reader.ReadUnsigned());
}

class PositionedInputs : public testing::TestWithParam<uint64_t> {};

TEST_P(PositionedInputs, AStateNeverBeginsBeforeAnEarlierOne) {
  PositionedInput input = OfCounting();
  ASSERT_EQ(*input.Skip(100), 100);
  EXPECT_EQ(Begin(input, 70, GetParam()), 0);
  EXPECT_EQ(Begin(input, 100, GetParam()), 100);  // nothing was read ahead
  ASSERT_EQ(*input.Skip(50), 50);
  input.Release(120);
  EXPECT_EQ(Begin(input, 120, GetParam()), 100);
  EXPECT_EQ(Begin(input, 150, GetParam()), 150);
  EXPECT_EQ(Begin(input, 150, GetParam()), 150);
}

TEST_P(PositionedInputs, AStateNeverBeginsBeforeTheRestoredOne) {
  PositionedInput before = OfCounting();
  ASSERT_EQ(*before.Skip(100), 100);
  StateWriter writer(GetParam());
  ASSERT_TRUE(before.Save(writer, 100).ok());
  PositionedInput input = OfCounting();
  StateReader reader(writer.bytes());
  ASSERT_TRUE(input.Restore(reader).ok());
  ASSERT_EQ(*input.Skip(50), 50);
  EXPECT_EQ(Begin(input, 120, GetParam()), 100);
}

// 0: states that a node above keeps. 7: states that a user gets.
INSTANTIATE_TEST_SUITE_P(Saves, PositionedInputs, testing::Values(0, 7));

TEST(PositionedInput, RemembersFewerPositionsIfTheirStatesAreLarge) {
  constexpr int64_t kElements = 20'000;
  PositionedInput input(std::make_unique<CountingInput>(size_t{1} << 20), kRememberOften);
  int64_t begin = 0;
  for (int64_t read = 0; read < kElements; read += kRememberOften) {
    ASSERT_EQ(*input.Skip(kRememberOften), kRememberOften);
    if (read % 1000 != 0) continue;
    const int64_t n = read / 2;  // all elements before it are kept, and as many after it
    const int64_t before = std::exchange(begin, Begin(input, n, 0));
    EXPECT_GE(begin, before);
    EXPECT_LE(begin, n);
    EXPECT_LE(n - begin, read / 16 + kRememberOften);
  }
}

// The oldest element stays for long, then many are released at once.
TEST(PositionedInput, RemembersPositionsAtLikeDistancesAfterARelease) {
  constexpr int64_t kFirst = 20'000;
  PositionedInput input(std::make_unique<CountingInput>(size_t{1} << 20), kRememberOften);
  for (int64_t read = 0; read < 2 * kFirst; read += kRememberOften) {
    ASSERT_EQ(*input.Skip(kRememberOften), kRememberOften);
    if (read == kFirst) input.Release(kFirst / 5 * 3);
  }
  int64_t begin = 0;
  for (int64_t n = kFirst / 5 * 3; n < 2 * kFirst; n += 97) {
    const int64_t before = std::exchange(begin, Begin(input, n, 0));
    EXPECT_GE(begin, before);
    EXPECT_LE(n - begin, 2 * kFirst / 16);
  }
}

}  // namespace
}  // namespace penstock
