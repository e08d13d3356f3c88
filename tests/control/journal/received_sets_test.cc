// SPDX-License-Identifier: Apache-2.0
// The bytes of a reader's sets in a journal.
#include <string>

#include "control/journal/records_proto.h"
#include "control/state/format.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

namespace p = protocol;

constexpr uint32_t kDense = kSparseSetsFormat - 1;
const std::string kSet = "\x0a\x04\x0a\x02\x04\x02";  // of the indices 4 and 5

p::ReceivedSets SetOf(uint64_t partition) {
  p::ReceivedSets sets;
  sets.Add(PartitionId(partition), IndexSet::Of(4, 6));
  return sets;
}

TEST(ReceivedSetsBytes, OfTheFirstFormatHaveASetForEachPartition) {
  const std::string empty("\x0a\x00", 2);
  EXPECT_EQ(BytesOf(SetOf(3), kDense), empty + empty + kSet);
}

TEST(ReceivedSetsBytes, NameThePartitions) {
  EXPECT_EQ(BytesOf(SetOf(3), kSparseSetsFormat), "\x12\x01\x03" + kSet);
  EXPECT_LT(BytesOf(SetOf(40'000), kSparseSetsFormat).size(), 20u);
}

TEST(ReceivedSetsBytes, AreAbsentIfAllSetsAreEmpty) {
  for (const uint32_t format : {kDense, kSparseSetsFormat}) EXPECT_EQ(BytesOf({}, format), "");
}

TEST(ReceivedSetsBytes, AreReadAsTheyWereWritten) {
  p::ReceivedSets sets;
  for (uint64_t i = 1; i < 1000; i += 1 + i / 3)
    sets.Add(PartitionId(i), IndexSet::Of(static_cast<Index>(i), static_cast<Index>(2 * i)));
  for (const uint32_t format : {kDense, kSparseSetsFormat}) {
    p::ReceivedSets read;
    EXPECT_TRUE(ReadFrom(BytesOf(sets, format), read).ok());
    EXPECT_EQ(read, sets);
  }
}

TEST(ReceivedSetsBytes, AreThoseOfAMessage) {
  const p::ReceivedSets sets = {{}, {}, IndexSet::Of(0, 300), {}, IndexSet::Of(7, 8)};
  wire::ReceivedSetsByPartition message;
  message.ParseFromString(BytesOf(sets, kDense));
  EXPECT_EQ(message.sets_size(), 5);
  EXPECT_EQ(message.SerializeAsString(), BytesOf(sets, kDense));
  message.ParseFromString(BytesOf(sets, kSparseSetsFormat));
  EXPECT_EQ(message.sets_size(), 2);
  EXPECT_EQ(message.partitions_size(), 2);
  EXPECT_EQ(message.partitions(1), 5u);
}

TEST(ReceivedSetsBytes, ThatAreTornAreReadOrRefused) {
  const p::ReceivedSets sets = {{}, {}, IndexSet::Of(0, 300), {}, IndexSet::Of(7, 8)};
  for (const uint32_t format : {kDense, kSparseSetsFormat}) {
    const std::string bytes = BytesOf(sets, format);
    for (size_t size = 1; size < bytes.size(); ++size) {
      p::ReceivedSets some;
      const absl::Status status = ReadFrom(bytes.substr(0, size), some);
      EXPECT_TRUE((status.ok() && format == kDense) || absl::IsInvalidArgument(status))
          << size << ": " << status;
    }
  }
}

TEST(ReceivedSetsBytes, OfSetsThatDoNotFitThePartitionsAreNotRead) {
  const std::string zero("\x12\x01\x00", 3);
  for (const std::string& bytes :
       {zero + kSet, "\x12\x02\x03\x03" + kSet + kSet, "\x12\x02\x03\x02" + kSet + kSet,
        "\x12\x02\x03\x04" + kSet, "\x12\x01\x03" + kSet + kSet, kSet + "\x12\x01\x03",
        std::string("\x12\x05\x03"), std::string("\x12\x05"), std::string("\x12\x00", 2) + kSet,
        std::string("\x12\x01\xff"), std::string("\x0a")}) {
    p::ReceivedSets read;
    EXPECT_EQ(ReadFrom(bytes, read).code(), absl::StatusCode::kInvalidArgument)
        << testing::PrintToString(bytes);
  }
}

TEST(ReceivedSetsBytes, OfALaterReleaseAreNotRead) {
  for (const std::string newer : {"\xa0\x38\x01", "\x0a\x03\xa0\x38\x01"}) {
    p::ReceivedSets read;
    const absl::Status status = ReadFrom(newer, read);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_NE(status.message().find("does not know field 900"), std::string::npos) << status;
  }
}

}  // namespace
}  // namespace penstock::control
