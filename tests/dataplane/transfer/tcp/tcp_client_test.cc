// SPDX-License-Identifier: Apache-2.0
// The client is ours; the worker speaks the protocol by hand and lies.
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/element/block.h"
#include "dataplane/element/frame.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/tcp/wire.h"
#include "gmock/gmock.h"
#include "tests/dataplane/transfer/blob_spec.h"
#include "tests/dataplane/transfer/ends.h"
#include "tests/dataplane/transfer/tcp/tcp_peer.h"

namespace penstock::transfer::tcp {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kBlobBytes = 1 << 20;

// A client's link to a port where `peer` answers and has sent Welcome.
class TcpClientTest : public testing::Test {
 protected:
  void SetUp() override {
    PeerPort port;
    DialOptions options;
    options.spec = BlobSpec();
    options.pool = pool_.get();
    options.timeout = absl::Minutes(1);
    auto link = (*FindTransport("tcp"))->Dial(port.address(), options, client_);
    ASSERT_TRUE(link.ok()) << link.status();
    link_ = *std::move(link);
    peer_.emplace(port.Accept());
    ASSERT_TRUE(std::holds_alternative<Hello>(*Decode(peer_->ReadMessage())));
    ASSERT_TRUE(peer_->Write(WithPrefix(Encode(Welcome()))));
    ASSERT_TRUE(client_->AwaitOpen());
  }

  bool WriteHead(MessageType type, uint64_t body_bytes) {
    const Head head = HeadOf(type, 0, body_bytes, 0);
    return peer_->Write({head.data(), head.size()});
  }
  bool Write(MessageType type, absl::Span<const std::byte> body) {
    return peer_->Write(Whole(type, body));
  }
  static std::string Whole(MessageType type, absl::Span<const std::byte> body, uint8_t flags = 0) {
    const Head head = HeadOf(type, flags, body);
    return absl::StrCat(absl::string_view(head.data(), head.size()),
                        absl::string_view(reinterpret_cast<const char*>(body.data()), body.size()));
  }
  bool Write(MessageType type, const Element& element) {
    return Write(type, absl::Span<const std::byte>(element.block()));
  }
  // An element of this many bytes, all 7.
  static Element ABlob(int64_t bytes) {
    const std::vector<uint8_t> values(bytes, 7);
    const int64_t dims[] = {bytes};
    return *MakeElement(DefaultPool(), {Tensor(kUInt8, dims, values.data())}, Spec(BlobSpec()));
  }
  void ExpectUngranted() {
    const absl::Status reason = client_->AwaitClosed();
    EXPECT_EQ(reason.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(reason.message()), HasSubstr("granted"));
  }

  std::shared_ptr<Pool> pool_ = Pool::Create();
  std::shared_ptr<ClientEnd> client_ = std::make_shared<ClientEnd>();
  std::unique_ptr<ReceiveLink> link_;
  std::optional<Peer> peer_;
};

TEST_F(TcpClientTest, AWorkerKilledInTheMiddleOfAnElementIsUnavailable) {
  link_->Grant({1});
  ASSERT_TRUE(WriteHead(MessageType::kElement, kBlobBytes));
  ASSERT_TRUE(peer_->Write(std::string(1000, 'x')));
  peer_->Kill();
  EXPECT_EQ(client_->AwaitClosed().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(client_->indices(), IsEmpty());
  EXPECT_EQ(pool_->counters().bytes_lent, 0);
}

TEST_F(TcpClientTest, AConnectionThatEndsWithoutAReasonIsUnavailable) {
  peer_.reset();
  EXPECT_EQ(client_->AwaitClosed().code(), absl::StatusCode::kUnavailable);
}

TEST_F(TcpClientTest, AnEnormousElementTakesNoMemory) {
  ASSERT_TRUE(WriteHead(MessageType::kElement, uint64_t{1} << 60));
  EXPECT_EQ(client_->AwaitClosed().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(pool_->counters().slots_lent, 0);
}

TEST_F(TcpClientTest, AnEnormousFrameTakesNoMemory) {
  ASSERT_TRUE(WriteHead(MessageType::kFrame, kBlobBytes));
  EXPECT_EQ(client_->AwaitClosed().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(pool_->counters().slots_lent, 0);
}

TEST_F(TcpClientTest, GarbageIsDataLoss) {
  ASSERT_TRUE(peer_->Write(std::string(64, 'x')));
  EXPECT_EQ(client_->AwaitClosed().code(), absl::StatusCode::kDataLoss);
}

TEST_F(TcpClientTest, ASecondWelcomeIsDataLoss) {
  ASSERT_TRUE(peer_->Write(WithPrefix(Encode(Welcome()))));
  EXPECT_EQ(client_->AwaitClosed().code(), absl::StatusCode::kDataLoss);
}

TEST_F(TcpClientTest, AnElementWithoutACreditIsDataLossAndTakesNoMemory) {
  link_->Grant({1});
  ASSERT_TRUE(Write(MessageType::kElement, ABlob(kBlobBytes)));
  ASSERT_TRUE(client_->AwaitCount(1));
  ASSERT_TRUE(WriteHead(MessageType::kElement, kBlobBytes));
  ExpectUngranted();
  EXPECT_EQ(pool_->counters().slots_lent, 1);
}

TEST_F(TcpClientTest, OfAFrameWithMoreElementsThanCreditsOnlySoManyAreReceived) {
  const Element element = ABlob(64);
  Loan loan = *pool_->Lend(kFrameBytes);
  FrameWriter frame(loan.bytes());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(frame.Append(element.block()));
  link_->Grant({2});
  ASSERT_TRUE(Write(MessageType::kFrame, frame.Seal()));
  ExpectUngranted();
  EXPECT_EQ(client_->indices().size(), 2u);
}

TEST_F(TcpClientTest, AnErrorWithoutACreditIsDataLoss) {
  ASSERT_TRUE(peer_->Write(WithPrefix(Encode(ErrorMessage{{}, absl::InternalError("no")}))));
  ExpectUngranted();
}

TEST_F(TcpClientTest, MoreCreditsGivenBackThanThereWereAreDataLoss) {
  link_->Grant({3});
  ASSERT_TRUE(peer_->Write(WithPrefix(Encode(Recalled{4}))));
  ExpectUngranted();
}

// Alters a value, then the head, of an element; only the second is noticed.
TEST_F(TcpClientTest, AnAlteredHeadIsNoticed) {
  const Element element = ABlob(kBlobBytes);
  const std::string whole = Whole(MessageType::kElement, element.block());
  const size_t head_bytes = kHeadBytes + PrefixOf(element.block().data()).head_bytes;
  link_->Grant({2});
  std::string value = whole;
  value.back() ^= 1;  // a value, which is not checked by default
  ASSERT_TRUE(peer_->Write(value));
  ASSERT_TRUE(client_->AwaitCount(1));
  std::string altered = whole;
  altered[head_bytes - 1] ^= 1;
  ASSERT_TRUE(peer_->Write(altered));
  EXPECT_EQ(client_->AwaitClosed().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(client_->indices().size(), 1u);
}

TEST_F(TcpClientTest, AValueUnderASumOfAllIsNeverAltered) {
  std::string whole = Whole(MessageType::kElement, ABlob(kBlobBytes).block(), kSumOfAll);
  link_->Grant({2});
  ASSERT_TRUE(peer_->Write(whole));
  ASSERT_TRUE(client_->AwaitCount(1));
  whole.back() ^= 1;
  ASSERT_TRUE(peer_->Write(whole));
  EXPECT_EQ(client_->AwaitClosed().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(client_->indices().size(), 1u);
}

TEST(TcpWire, OfAFrameTheHeadsOfAllItsBlocksAreSummed) {
  Loan loan = *DefaultPool().Lend(kFrameBytes);
  FrameWriter frame(loan.bytes());
  for (int64_t bytes : {64, 0, 1000}) {
    const std::vector<uint8_t> values(bytes, 7);
    const Element element =
        *MakeElement(DefaultPool(), {Tensor(kUInt8, absl::MakeConstSpan(&bytes, 1), values.data())},
                     Spec(BlobSpec()));
    ASSERT_TRUE(frame.Append(element.block()));
  }
  const absl::Span<std::byte> sealed = frame.Seal();
  const uint32_t sum = SumOfBody(MessageType::kFrame, 0, sealed);
  int unnoticed = 0;
  for (std::byte& byte : sealed) {
    byte ^= std::byte{4};
    unnoticed += SumOfBody(MessageType::kFrame, 0, sealed) == sum;
    EXPECT_NE(SumOfBody(MessageType::kFrame, kSumOfAll, sealed), sum);
    byte ^= std::byte{4};
  }
  EXPECT_EQ(unnoticed, 64 + 1024);  // the bytes of values
}

TEST_F(TcpClientTest, ABlockIsReadIntoTheSlotItStaysIn) {
  link_->Grant({1});
  ASSERT_TRUE(Write(MessageType::kElement, ABlob(kBlobBytes)));
  ASSERT_TRUE(client_->AwaitCount(1));
  EXPECT_EQ(pool_->counters().slots_lent, 1);
  std::vector<Element> received = client_->TakeElements();
  EXPECT_EQ(received[0].tensor(0).data<uint8_t>().back(), 7);
  EXPECT_FALSE(received[0].loan().IsShared());
}

}  // namespace
}  // namespace penstock::transfer::tcp
