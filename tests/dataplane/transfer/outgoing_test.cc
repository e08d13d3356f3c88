// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/outgoing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::transfer {
namespace {

using testing::ElementsAre;

constexpr size_t kFrame = 4096;

Sent Blob(Index index, int64_t bytes) {
  std::vector<uint8_t> values(bytes, static_cast<uint8_t>(index));
  const int64_t dims[] = {bytes};
  Sent sent;
  sent.identity = {.partition = PartitionId(1), .placement = Placement(1), .index = index};
  sent.element = *MakeElement(DefaultPool(), {Tensor(kUInt8, dims, values.data())},
                              Spec(Dense(kUInt8, {kUnknownDim})));
  sent.element.set_identity(sent.identity);
  return sent;
}

Sent Error(Index index) {
  return {{.partition = PartitionId(1), .index = index}, absl::DataLossError("bad")};
}

std::vector<Index> IndicesOf(const std::vector<Sent>& sent) {
  std::vector<Index> indices;
  for (const Sent& one : sent) indices.push_back(one.identity.index);
  return indices;
}

class OutgoingTest : public testing::Test {
 protected:
  bool Lands(int64_t count) { return out_.OnLanded(count, landed_); }

  std::vector<Acknowledged> landed_;
  std::shared_ptr<Pool> pool_ = Pool::Create();
  Outgoing out_{*pool_, kFrame};
};

TEST_F(OutgoingTest, SmallElementsShareAFrameUntilItIsSealed) {
  for (Index i = 0; i < 3; ++i) out_.Push(Blob(i, 100));
  EXPECT_EQ(out_.ready(), 0);
  EXPECT_TRUE(out_.filling());
  out_.Seal();
  ASSERT_EQ(out_.ready(), 1);
  const Outgoing::Parcel parcel = out_.Take();
  EXPECT_TRUE(parcel.is_frame);
  FrameReader frame = *FrameReader::Open(parcel.loan.Share(), parcel.bytes.size(),
                                         Spec(Dense(kUInt8, {kUnknownDim})));
  for (Index i = 0; i < 3; ++i) EXPECT_EQ((*frame.Next())->identity().index, i);
  EXPECT_FALSE(frame.Next()->has_value());
}

TEST_F(OutgoingTest, AFullFrameIsReadyAndTheNextOneOpens) {
  Index i = 0;
  while (out_.ready() == 0) out_.Push(Blob(i++, 1000));
  EXPECT_TRUE(out_.filling());
  EXPECT_LE(out_.Take().bytes.size(), kFrame);
}

TEST_F(OutgoingTest, WhatIsTooLargeForAFrameAndErrorsGoAloneAndInOrder) {
  out_.Push(Blob(0, 100));
  out_.Push(Blob(1, 100'000));
  out_.Push(Error(2));
  out_.Push(Blob(3, 5000));  // small, but larger than these frames
  EXPECT_EQ(out_.ready(), 4);
  EXPECT_TRUE(out_.Take().is_frame);
  EXPECT_FALSE(out_.Take().is_frame);
  EXPECT_EQ(out_.Take().error->identity.index, 2);
  EXPECT_FALSE(out_.Take().is_frame);
}

// It may wait for a slot meanwhile.
TEST_F(OutgoingTest, AnErrorThatWasTakenStaysWhileMoreIsSent) {
  out_.Push(Error(0));
  const Outgoing::Parcel parcel = out_.Take();
  for (Index i = 1; i < 100; ++i) out_.Push(Error(i));
  EXPECT_EQ(parcel.error->identity.index, 0);
  EXPECT_EQ(parcel.error->error, absl::DataLossError("bad"));
}

TEST_F(OutgoingTest, ElementsOfAnotherSpecOpenAFrameOfTheirOwn) {
  out_.Push(Blob(0, 100));
  Sent other = Blob(1, 100);
  other.element = Element(other.element.loan().Share(), other.element.block().data(),
                          Spec(Dense(kUInt8, {100})));
  out_.Push(std::move(other));
  EXPECT_EQ(out_.ready(), 1);
}

TEST_F(OutgoingTest, AFramesSlotReturnsWhenAllInItHasLanded) {
  for (Index i = 0; i < 3; ++i) out_.Push(Blob(i, 100));
  out_.Seal();
  out_.Take();
  EXPECT_TRUE(Lands(2));
  EXPECT_EQ(pool_->counters().slots_returned, 0);
  EXPECT_TRUE(Lands(1));
  EXPECT_EQ(pool_->counters().slots_returned, 1);
}

// Of a group, whose members share an element, in a frame and alone.
TEST_F(OutgoingTest, EachHasTheIdentityThatItWasSentUnder) {
  const auto member = [](Index index, int64_t bytes) {
    Sent sent = Blob(0, bytes);
    sent.identity.index = index;
    return sent;
  };
  for (Index i = 0; i < 4; ++i) out_.Push(member(i, 100));
  for (Index i = 4; i < 6; ++i) out_.Push(member(i, 100'000));
  while (out_.ready() > 0) out_.Take();
  EXPECT_TRUE(Lands(2));
  EXPECT_TRUE(Lands(3));
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(landed_[i].identity.index, i);
    EXPECT_GE(landed_[i].bytes, i < 4 ? 100 : 100'000);
  }
  EXPECT_THAT(IndicesOf(out_.TakeUnconfirmed()), ElementsAre(5));
}

TEST_F(OutgoingTest, MoreThanWasTakenCannotLand) {
  out_.Push(Blob(0, 100));
  out_.Push(Blob(1, 100'000));
  out_.Take();
  EXPECT_FALSE(Lands(2));
}

TEST_F(OutgoingTest, WhatHasNotLandedComesBackWhole) {
  for (Index i = 0; i < 3; ++i) out_.Push(Blob(i, 100));
  out_.Seal();
  out_.Take();
  out_.Push(Error(3));
  out_.Push(Blob(4, 100'000));
  out_.Push(Blob(5, 200));  // in a frame that is still open
  ASSERT_TRUE(Lands(1));
  const std::vector<Sent> back = out_.TakeUnconfirmed();
  EXPECT_THAT(IndicesOf(back), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(back[0].element.tensor(0).data<uint8_t>()[99], 1);
  EXPECT_EQ(back[4].element.tensor(0).data<uint8_t>().size(), 200);
}

TEST_F(OutgoingTest, WithoutRoomForAFrameElementsGoAlone) {
  std::shared_ptr<Pool> full = Pool::Create({.max_bytes = 1});
  Outgoing out(*full, kFrame);
  out.Push(Blob(0, 100));
  EXPECT_EQ(out.ready(), 1);
  EXPECT_FALSE(out.Take().is_frame);
}

}  // namespace
}  // namespace penstock::transfer
