// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/graph/state_bytes.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace penstock {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(StateBytes, AreReadAsWritten) {
  StateWriter writer;
  for (int64_t value : {int64_t{0}, int64_t{-1}, int64_t{63}, int64_t{64}, kMin, kMax})
    writer.WriteInt(value);
  writer.WriteUnsigned(~uint64_t{0});
  writer.WriteBool(true);
  writer.WriteString("text");
  StateReader reader(writer.bytes());
  for (int64_t value : {int64_t{0}, int64_t{-1}, int64_t{63}, int64_t{64}, kMin, kMax})
    EXPECT_EQ(reader.ReadInt().value(), value);
  EXPECT_EQ(reader.ReadUnsigned().value(), ~uint64_t{0});
  EXPECT_TRUE(reader.ReadBool().value());
  EXPECT_EQ(reader.ReadString().value(), "text");
  EXPECT_TRUE(reader.ExpectEnd().ok());
}

TEST(StateBytes, SmallNumbersTakeOneByte) {
  StateWriter writer;
  writer.WriteInt(-64);
  writer.WriteInt(63);
  writer.WriteUnsigned(127);
  EXPECT_EQ(writer.bytes().size(), 3u);
}

TEST(StateBytes, DamagedBytesAreDataLoss) {
  EXPECT_EQ(StateReader("").ReadUnsigned().status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(StateReader("\x80").ReadInt().status().code(), absl::StatusCode::kDataLoss);
  // More than 64 bits.
  EXPECT_FALSE(StateReader("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02").ReadUnsigned().ok());
  EXPECT_FALSE(StateReader("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").ReadUnsigned().ok());
  EXPECT_FALSE(StateReader("\x02").ReadBool().ok());
  EXPECT_FALSE(StateReader("\x05"
                           "text")
                   .ReadString()
                   .ok());
  EXPECT_FALSE(StateReader("x").ExpectEnd().ok());
  EXPECT_FALSE(StateReader("\x0a").ReadIntIn(0, 4, "a count").ok());
  EXPECT_EQ(StateReader("\x08").ReadIntIn(0, 4, "a count").value(), 4);
}

TEST(StateBytes, ANestedStatesSplitsAreNeededToo) {
  using Needed = StateWriter::SplitsNeeded;
  StateWriter writer, kept, of_a_cache;
  EXPECT_EQ(writer.splits_needed(), Needed());
  writer.NeedsSplits(0, 4, 2);
  writer.NeedsSplits(1, 4, 2);
  kept.NeedsSplits(0, 3, 9);
  kept.NeedsSplits(1, 5, 0);
  ASSERT_TRUE(writer.WriteKept(kept, {}).ok());
  EXPECT_EQ(writer.splits_needed(), (Needed{{0, {3, 9}}, {1, {4, 2}}}));
  of_a_cache.NeedsAllSplits();
  ASSERT_TRUE(writer.WriteKept(of_a_cache, {}).ok());
  EXPECT_EQ(writer.splits_needed(), Needed());
}

}  // namespace
}  // namespace penstock
