// SPDX-License-Identifier: Apache-2.0
#include "dataplane/element/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataplane/element/error_block.h"
#include "dataplane/memory/pool.h"
#include "tests/dataplane/element/sample.h"

namespace penstock {
namespace {

using testing::HasSubstr;

Element Number(int64_t value) {
  const Tensor tensors[] = {Tensor(kInt64, {}, &value)};
  Element element = MakeElement(DefaultPool(), tensors, Scalar(kInt64)).value();
  element.set_identity({.partition = PartitionId(1), .index = value});
  return element;
}

// Returns a frame of the numbers 0 … count − 1 in a slot.
Loan FrameOf(int64_t count, size_t* bytes) {
  Loan loan = DefaultPool().Lend(64 << 10).value();
  FrameWriter writer(loan.bytes());
  for (int64_t i = 0; i < count; ++i) EXPECT_TRUE(writer.Append(Number(i).block()));
  *bytes = writer.Seal().size();
  return loan;
}

template <class T>
T& At(const Loan& loan, size_t offset) {
  return *reinterpret_cast<T*>(loan.bytes().data() + offset);
}

TEST(Frame, YieldsItsElementsInOrder) {
  size_t bytes;
  Loan loan = FrameOf(100, &bytes);
  FrameReader reader = FrameReader::Open(std::move(loan), bytes, Scalar(kInt64)).value();
  for (int64_t i = 0; i < 100; ++i) {
    const std::optional<Element> element = reader.Next().value();
    ASSERT_TRUE(element);
    EXPECT_EQ(element->tensor(0).scalar<int64_t>(), i);
    EXPECT_EQ(element->identity().index, i);
  }
  EXPECT_FALSE(reader.Next().value());
  EXPECT_FALSE(reader.Next().value());
}

TEST(Frame, OfNoElementsEndsAtOnce) {
  size_t bytes;
  Loan loan = FrameOf(0, &bytes);
  EXPECT_EQ(bytes, sizeof(FramePrefix));
  FrameReader reader = FrameReader::Open(std::move(loan), bytes, Scalar(kInt64)).value();
  EXPECT_FALSE(reader.Next().value());
}

TEST(Frame, TakesElementsThatFitAndRefusesOthers) {
  Loan loan = DefaultPool().Lend(1024).value();
  FrameWriter writer(loan.bytes().subspan(0, 64 + 2 * 192 + 128));
  EXPECT_TRUE(writer.Append(Number(1).block()));
  EXPECT_TRUE(writer.Append(Number(2).block()));
  EXPECT_FALSE(writer.Append(Number(3).block()));
  EXPECT_EQ(writer.count(), 2u);
  EXPECT_EQ(writer.Seal().size(), 64 + 2 * 192u);
  EXPECT_FALSE(writer.Open(128).empty());  // a smaller one still fits
}

TEST(Frame, MixesElementsWithErrors) {
  const absl::Status error = absl::DataLossError("record 5");
  Loan loan = DefaultPool().Lend(4096).value();
  FrameWriter writer(loan.bytes());
  ASSERT_TRUE(writer.Append(SampleElement().block()));
  WriteErrorBlock(writer.Open(ErrorBlockBytes(error)), {.index = 5}, error);
  const size_t bytes = writer.Seal().size();
  FrameReader reader = FrameReader::Open(std::move(loan), bytes, SampleSpec()).value();
  EXPECT_EQ(reader.Next().value()->ToString(), SampleElement().ToString());
  const Element second = *reader.Next().value();
  ASSERT_TRUE(IsError(second));
  EXPECT_EQ(ReadErrorBlock(second), error);
}

TEST(Frame, StaysUntilItsLastElementIsReleased) {
  const std::shared_ptr<Pool> pool = Pool::Create();
  Loan loan = pool->Lend(4096).value();
  FrameWriter writer(loan.bytes());
  for (int64_t i = 0; i < 3; ++i) ASSERT_TRUE(writer.Append(Number(i).block()));
  const size_t bytes = writer.Seal().size();
  std::vector<Element> kept;
  {
    FrameReader reader = FrameReader::Open(std::move(loan), bytes, Scalar(kInt64)).value();
    while (std::optional<Element> element = reader.Next().value())
      kept.push_back(*std::move(element));
  }
  kept.erase(kept.begin(), kept.begin() + 2);
  EXPECT_EQ(pool->counters().slots_returned, 0);
  EXPECT_EQ(kept[0].tensor(0).scalar<int64_t>(), 2);
  kept.clear();
  EXPECT_EQ(pool->counters().slots_returned, 1);
}

TEST(Frame, ReleasesSmallElementsByCopyingThem) {
  const std::shared_ptr<Pool> pool = Pool::Create();
  size_t bytes;
  Loan loan = FrameOf(1, &bytes);
  FrameReader reader = FrameReader::Open(std::move(loan), bytes, Scalar(kInt64)).value();
  Element element = *reader.Next().value();
  EXPECT_TRUE(element.IsShared());
  element = CopyOutOfFrame(*pool, std::move(element)).value();
  EXPECT_FALSE(element.IsShared());
  EXPECT_EQ(element.tensor(0).scalar<int64_t>(), 0);
  const std::byte* block = element.block().data();
  element = CopyOutOfFrame(*pool, std::move(element)).value();
  EXPECT_EQ(element.block().data(), block);  // the slot is the element's own: nothing is copied
}

TEST(FrameReader, RefusesADamagedPrefix) {
  const auto status_after = [](auto damage) {
    size_t bytes;
    Loan loan = FrameOf(2, &bytes);
    damage(loan, bytes);
    return FrameReader::Open(std::move(loan), bytes, Scalar(kInt64)).status();
  };
  EXPECT_THAT(std::string(status_after([](Loan& loan, size_t&) {
                            At<FramePrefix>(loan, 0).magic = 1;
                          }).message()),
              HasSubstr("magic"));
  EXPECT_EQ(status_after([](Loan& loan, size_t&) { At<FramePrefix>(loan, 0).version = 9; }).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status_after([](Loan&, size_t& bytes) { bytes = 63; }).code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(status_after([](Loan&, size_t& bytes) { bytes -= 64; }).code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(status_after([](Loan&, size_t& bytes) { bytes = 1 << 20; }).code(),
            absl::StatusCode::kDataLoss);
}

TEST(FrameReader, EndsAtADamagedBlockAndSaysWhere) {
  size_t bytes;
  Loan loan = FrameOf(3, &bytes);
  At<uint32_t>(loan, 64 + 192) = 0;  // the second block's magic
  FrameReader reader = FrameReader::Open(std::move(loan), bytes, Scalar(kInt64)).value();
  EXPECT_TRUE(reader.Next().value());
  const absl::Status status = reader.Next().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("magic number is wrong; at byte 256 of its frame"));
  EXPECT_FALSE(reader.Next().value());
}

TEST(FrameReader, RefusesACountThatIsNotThatOfTheBlocks) {
  for (const uint32_t count : {2, 4}) {
    size_t bytes;
    Loan loan = FrameOf(3, &bytes);
    At<FramePrefix>(loan, 0).block_count = count;
    FrameReader reader = FrameReader::Open(std::move(loan), bytes, Scalar(kInt64)).value();
    for (uint32_t i = 0; i < std::min<uint32_t>(count, 3); ++i) ASSERT_TRUE(reader.Next().ok());
    EXPECT_EQ(reader.Next().status().code(), absl::StatusCode::kDataLoss) << count;
  }
}

}  // namespace
}  // namespace penstock
