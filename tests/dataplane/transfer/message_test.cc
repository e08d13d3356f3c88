// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/message.h"

#include <cstring>
#include <utility>

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

// The hello of a client that reads these versions.
std::string HelloOf(const LinkVersions& versions) {
  std::string bytes = Encode(AHello());
  const uint32_t packed = Pack(versions);
  std::memcpy(bytes.data() + kMessageHeaderBytes, &packed, sizeof(packed));
  return bytes;
}

TEST(MessageTest, AHelloNeedsACommonVersion) {
  EXPECT_TRUE(Decode(HelloOf({1, 1})).ok());
  EXPECT_TRUE(Decode(HelloOf({1, 9})).ok());
  const absl::Status status = Decode(HelloOf({2, 9})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("reads v1 of the transfer protocol, but the client reads v2-9"),
            absl::string_view::npos)
      << status;
  EXPECT_EQ(Decode(HelloOf({0, 0})).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(MessageTest, FieldsOfALaterHelloAreIgnored) {
  const std::string later = HelloOf({1, 2}) + '\3' + "further fields";  // after the compression
  const absl::StatusOr<Message> message = Decode(later);
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(std::get<Hello>(*message).client, ClientId(1));
  EXPECT_EQ(std::get<Hello>(*message).compression, LinkCompression::kLz4);
  EXPECT_FALSE(Decode(HelloOf({1, 1}) + '\3' + "further fields").ok());
  EXPECT_FALSE(Decode(later.substr(0, 40)).ok());  // known fields must be whole
}

TEST(LinkVersionsTest, AreReadAsTheyAreWritten) {
  for (const auto& [versions, text] :
       {std::pair(LinkVersions{1, 1}, "v1"), std::pair(LinkVersions{2, 2}, "v2"),
        std::pair(LinkVersions{1, 65'535}, "v1-65535")}) {
    EXPECT_EQ(ToString(versions), text);
    EXPECT_EQ(ParseLinkVersions(text).value(), versions);
    EXPECT_EQ(UnpackLinkVersions(Pack(versions)), versions);
  }
  EXPECT_EQ(Pack({2, 2}), 2u);  // as a release without ranges writes it
  for (const char* text : {"", "1", "v", "v0", "v2-1", "v1-", "v1-2-3", "v1-65536", "vx"}) {
    EXPECT_EQ(ParseLinkVersions(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(LinkVersionsTest, BothSidesUseTheLowerOfTheHighest) {
  EXPECT_EQ(Agree({1, 3}, {2, 5}).value(), 3u);
  EXPECT_EQ(Agree({2, 5}, {1, 3}).value(), 3u);
  EXPECT_EQ(Agree({1, 1}, {1, 4}).value(), 1u);
  EXPECT_FALSE(Agree({1, 1}, {2, 4}).ok());
  EXPECT_TRUE(CheckOffer("v1-4", {3, 3}).ok());
  EXPECT_EQ(CheckOffer("v4-5", {3, 3}).message(), "the worker speaks 'v4-5', this client 'v3'");
  EXPECT_EQ(CheckOffer("other", {3, 3}).code(), absl::StatusCode::kNotFound);
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
