// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/message.h"

#include "gtest/gtest.h"

namespace penstock::transfer {
namespace {

Hello AHello() {
  IndexSet has = IndexSet::Of(3, 5);
  has.Add(9, 1000);
  return {.token = "secret",
          .client = ClientId(1),
          .incarnation = Incarnation(2),
          .iteration = IterationId(3),
          .holdings = {{PartitionId(4), Placement(5), has}, {PartitionId(6), Placement(7), {}}}};
}

std::vector<std::string> OneOfEach() {
  Identity identity{JobId(1), IterationId(2), PartitionId(3), Placement(4), 5, 6, 7};
  return {Encode(AHello()),
          Encode(Update{.received = 1, .granted = 2, .recall = true, .granted_after_recall = 3}),
          Encode(Goodbye()),
          Encode(Welcome()),
          Encode(Recalled{9}),
          Encode(ErrorMessage{identity, absl::DataLossError("file at 7")}),
          Encode(Closed{absl::AbortedError("moved")})};
}

TEST(MessageTest, MessagesSurviveEncodingAndDecoding) {
  std::vector<std::string> bytes = OneOfEach();
  auto hello = std::get<Hello>(*Decode(bytes[0]));
  EXPECT_EQ(hello.token, "secret");
  EXPECT_EQ(hello.client, ClientId(1));
  ASSERT_EQ(hello.holdings.size(), 2u);
  EXPECT_EQ(hello.holdings[0].indices, AHello().holdings[0].indices);
  EXPECT_EQ(hello.holdings[1].placement, Placement(7));
  auto update = std::get<Update>(*Decode(bytes[1]));
  EXPECT_EQ(update.received, 1);
  EXPECT_EQ(update.granted, 2);
  EXPECT_TRUE(update.recall);
  EXPECT_EQ(update.granted_after_recall, 3);
  EXPECT_TRUE(std::holds_alternative<Goodbye>(*Decode(bytes[2])));
  EXPECT_TRUE(std::holds_alternative<Welcome>(*Decode(bytes[3])));
  EXPECT_EQ(std::get<Recalled>(*Decode(bytes[4])).count, 9);
  auto error = std::get<ErrorMessage>(*Decode(bytes[5]));
  EXPECT_EQ(error.error, absl::DataLossError("file at 7"));
  EXPECT_EQ(error.identity.index, 5);
  EXPECT_EQ(error.identity.consumer, 7);
  EXPECT_EQ(std::get<Closed>(*Decode(bytes[6])).reason, absl::AbortedError("moved"));
  EXPECT_TRUE(std::get<Closed>(*Decode(Encode(Closed{}))).reason.ok());
}

TEST(MessageTest, EveryCutAndEveryExtraByteIsRefused) {
  for (const std::string& bytes : OneOfEach()) {
    for (size_t cut = 0; cut < bytes.size(); ++cut) {
      EXPECT_FALSE(Decode(std::string_view(bytes).substr(0, cut)).ok()) << cut;
    }
    EXPECT_FALSE(Decode(bytes + '\0').ok());
  }
}

TEST(MessageTest, NumbersBelowZeroAreRefused) {
  EXPECT_FALSE(Decode(Encode(Update{.received = -1})).ok());
  EXPECT_FALSE(Decode(Encode(Update{.granted = -1})).ok());
  EXPECT_FALSE(Decode(Encode(Update{.granted_after_recall = -1})).ok());
  EXPECT_FALSE(Decode(Encode(Recalled{-1})).ok());
}

TEST(MessageTest, AnotherVersionIsRefusedByNumber) {
  std::string bytes = Encode(AHello());
  bytes[kMessageHeaderBytes] = 9;
  absl::Status status = Decode(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("version 9"), absl::string_view::npos);
}

TEST(MessageTest, AnUnknownTypeIsRefused) {
  std::string bytes = Encode(Welcome());
  bytes[0] = 99;
  EXPECT_EQ(TypeOf(bytes).status().code(), absl::StatusCode::kInvalidArgument);
  bytes = Encode(Welcome());
  bytes[3] = 1;
  EXPECT_EQ(TypeOf(bytes).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(MessageTest, AnElementIsNotDecodedHere) {
  EXPECT_EQ(*TypeOf(EncodeHeader(MessageType::kElement)), MessageType::kElement);
  EXPECT_FALSE(Decode(EncodeHeader(MessageType::kElement)).ok());
}

}  // namespace
}  // namespace penstock::transfer
