// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/send_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

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

class SendQueueTest : public testing::Test {
 protected:
  void SetUp() override { LetIn(queue_); }
  static void LetIn(SendQueue& queue) {
    queue.Welcome();
    ASSERT_EQ(queue.Take().type, MessageType::kWelcome);
    ASSERT_TRUE(queue.Grant(1000).ok());
  }
  void Send(Sent sent) { ASSERT_TRUE(queue_.Send(std::move(sent)).ok()); }
  bool Acknowledge(int64_t count) { return queue_.OnReceived(count, received_).ok(); }

  std::vector<Acknowledged> received_;
  std::shared_ptr<Pool> pool_ = Pool::Create();
  SendQueue queue_{*pool_, kFrame};
};

TEST_F(SendQueueTest, SmallElementsShareAFrameUntilItIsSealed) {
  for (Index i = 0; i < 3; ++i) Send(Blob(i, 100));
  EXPECT_EQ(queue_.size(), 0);
  EXPECT_TRUE(queue_.has_open_frame());
  queue_.Seal();
  ASSERT_EQ(queue_.size(), 1);
  const SendQueue::OutgoingMessage next = queue_.Take();
  EXPECT_EQ(next.type, MessageType::kFrame);
  FrameReader frame =
      *FrameReader::Open(next.loan.Share(), next.bytes.size(), Spec(Dense(kUInt8, {kUnknownDim})));
  for (Index i = 0; i < 3; ++i) EXPECT_EQ((*frame.Next())->identity().index, i);
  EXPECT_FALSE(frame.Next()->has_value());
}

TEST_F(SendQueueTest, AFullFrameIsReadyAndTheNextOneOpens) {
  Index i = 0;
  while (queue_.size() == 0) Send(Blob(i++, 1000));
  EXPECT_TRUE(queue_.has_open_frame());
  EXPECT_LE(queue_.Take().bytes.size(), kFrame);
}

TEST_F(SendQueueTest, LargeElementsAndErrorsGoAloneAndInOrder) {
  Send(Blob(0, 100));
  Send(Blob(1, 100'000));
  Send(Error(2));
  Send(Blob(3, 5000));  // small, but larger than these frames
  EXPECT_EQ(queue_.size(), 4);
  EXPECT_EQ(queue_.Take().type, MessageType::kFrame);
  EXPECT_EQ(queue_.Take().type, MessageType::kElement);
  EXPECT_EQ(queue_.Take().error->identity.index, 2);
  EXPECT_EQ(queue_.Take().type, MessageType::kElement);
}

// The error may wait for a slot meanwhile.
TEST_F(SendQueueTest, ATakenErrorStaysWhileMoreIsSent) {
  Send(Error(0));
  const SendQueue::OutgoingMessage next = queue_.Take();
  for (Index i = 1; i < 100; ++i) Send(Error(i));
  EXPECT_EQ(next.error->identity.index, 0);
  EXPECT_EQ(next.error->error, absl::DataLossError("bad"));
}

TEST_F(SendQueueTest, ElementsOfAnotherSpecOpenAFrameOfTheirOwn) {
  Send(Blob(0, 100));
  Sent other = Blob(1, 100);
  other.element = Element(other.element.loan().Share(), other.element.block().data(),
                          Spec(Dense(kUInt8, {100})));
  Send(std::move(other));
  EXPECT_EQ(queue_.size(), 1);
}

TEST_F(SendQueueTest, AFramesSlotReturnsWhenAllInItWasReceived) {
  for (Index i = 0; i < 3; ++i) Send(Blob(i, 100));
  queue_.Seal();
  queue_.Take();
  EXPECT_TRUE(Acknowledge(2));
  EXPECT_EQ(pool_->counters().slots_returned, 0);
  EXPECT_TRUE(Acknowledge(1));
  EXPECT_EQ(pool_->counters().slots_returned, 1);
}

// Members of a group share an element, in a frame and alone.
TEST_F(SendQueueTest, EachHasTheIdentityThatItWasSentUnder) {
  const auto member = [](Index index, int64_t bytes) {
    Sent sent = Blob(0, bytes);
    sent.identity.index = index;
    return sent;
  };
  for (Index i = 0; i < 4; ++i) Send(member(i, 100));
  for (Index i = 4; i < 6; ++i) Send(member(i, 100'000));
  while (queue_.size() > 0) queue_.Take();
  EXPECT_TRUE(Acknowledge(2));
  EXPECT_TRUE(Acknowledge(3));
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(received_[i].identity.index, i);
    EXPECT_GE(received_[i].bytes, i < 4 ? 100 : 100'000);
  }
  EXPECT_THAT(IndicesOf(queue_.TakeUnconfirmed()), ElementsAre(5));
}

TEST_F(SendQueueTest, MoreThanWasTakenCannotBeReceived) {
  Send(Blob(0, 100));
  Send(Blob(1, 100'000));
  queue_.Take();
  EXPECT_FALSE(Acknowledge(2));
}

TEST_F(SendQueueTest, UnreceivedElementsComeBackWhole) {
  for (Index i = 0; i < 3; ++i) Send(Blob(i, 100));
  queue_.Seal();
  queue_.Take();
  Send(Error(3));
  Send(Blob(4, 100'000));
  Send(Blob(5, 200));  // in a frame that is still open
  ASSERT_TRUE(Acknowledge(1));
  const std::vector<Sent> back = queue_.TakeUnconfirmed();
  EXPECT_THAT(IndicesOf(back), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(back[0].element.tensor(0).data<uint8_t>()[99], 1);
  EXPECT_EQ(back[4].element.tensor(0).data<uint8_t>().size(), 200);
}

TEST_F(SendQueueTest, WithoutRoomForAFrameElementsGoAlone) {
  std::shared_ptr<Pool> full = Pool::Create({.max_bytes = 1});
  SendQueue queue(*full, kFrame);
  LetIn(queue);
  ASSERT_TRUE(queue.Send(Blob(0, 100)).ok());
  EXPECT_EQ(queue.size(), 1);
  EXPECT_EQ(queue.Take().type, MessageType::kElement);
}

// Each answer goes out once, and none is counted as sent.
TEST_F(SendQueueTest, AnswersFollowEarlierElements) {
  Send(Blob(0, 100));
  queue_.Recall();
  EXPECT_EQ(queue_.credits(), 0);
  ASSERT_TRUE(queue_.Grant(1).ok());
  Send(Error(1));
  EXPECT_FALSE(queue_.Send(Error(2)).ok());
  EXPECT_EQ(queue_.Take().type, MessageType::kFrame);
  const SendQueue::OutgoingMessage recalled = queue_.Take();
  EXPECT_EQ(recalled.type, MessageType::kRecalled);
  EXPECT_EQ(recalled.count, 999);
  EXPECT_EQ(queue_.Take().type, MessageType::kError);
  EXPECT_TRUE(queue_.empty());
  EXPECT_TRUE(Acknowledge(2));
  EXPECT_FALSE(Acknowledge(1));
  EXPECT_THAT(queue_.TakeUnconfirmed(), testing::IsEmpty());
}

TEST_F(SendQueueTest, AnAnswerIsNotUnconfirmed) {
  Send(Blob(0, 100'000));
  queue_.Recall();
  ASSERT_TRUE(queue_.Grant(1).ok());
  Send(Blob(1, 100'000));
  queue_.Take();
  queue_.Take();
  EXPECT_THAT(IndicesOf(queue_.TakeUnconfirmed()), ElementsAre(0, 1));
}

TEST_F(SendQueueTest, CreditsThatCannotBeCountedAreRefused) {
  EXPECT_FALSE(queue_.Grant(std::numeric_limits<int64_t>::max()).ok());
  EXPECT_EQ(queue_.credits(), 1000);
}

// --- Its beginning and its end ----------------------------------------------------------

TEST_F(SendQueueTest, NothingIsSentBeforeTheHelloIsAnswered) {
  SendQueue queue(*pool_, kFrame);
  queue.Close(absl::AbortedError("enough"));  // by a worker before it has sent Welcome
  EXPECT_TRUE(queue.empty());
  queue.Welcome();
  EXPECT_EQ(queue.Take().type, MessageType::kWelcome);
  EXPECT_EQ(queue.Take().error->error, absl::AbortedError("enough"));
  EXPECT_TRUE(queue.empty());
}

TEST_F(SendQueueTest, ARefusedHelloIsAnsweredByItsReasonAlone) {
  SendQueue queue(*pool_, kFrame);
  queue.Close(absl::CancelledError("the worker let go of the link"));
  queue.Refuse(absl::NotFoundError("no such partition"));
  const SendQueue::OutgoingMessage last = queue.Take();
  EXPECT_EQ(last.type, MessageType::kClosed);
  EXPECT_EQ(last.error->error, absl::NotFoundError("no such partition"));
  EXPECT_TRUE(queue.close_sent());
}

TEST_F(SendQueueTest, TheFirstReasonFollowsSentElements) {
  Send(Blob(0, 100));  // in a frame that is still open
  queue_.Close(absl::AbortedError("first"));
  queue_.Refuse(absl::InvalidArgumentError("second"));
  Sent late = Blob(1, 100);
  EXPECT_TRUE(absl::IsUnavailable(queue_.Send(std::move(late))));
  EXPECT_TRUE(late.element);  // it still belongs to the caller
  EXPECT_EQ(queue_.Take().type, MessageType::kFrame);
  EXPECT_FALSE(queue_.close_sent());
  EXPECT_EQ(queue_.Take().error->error, absl::AbortedError("first"));
  EXPECT_TRUE(queue_.close_sent());
}

TEST_F(SendQueueTest, NothingIsSentAfterTheClose) {
  queue_.Close(absl::OkStatus());
  EXPECT_EQ(queue_.Take().type, MessageType::kClosed);
  queue_.Recall();
  EXPECT_TRUE(queue_.empty());
}

}  // namespace
}  // namespace penstock::transfer
