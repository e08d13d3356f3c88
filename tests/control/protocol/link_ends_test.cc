// SPDX-License-Identifier: Apache-2.0
// The two ends of a link: a worker's Sender and a client's Receiver.
#include <gtest/gtest.h>

#include <optional>

#include "control/protocol/receiver.h"
#include "control/protocol/sender.h"
#include "tests/control/protocol/coordinator_harness.h"

namespace penstock::protocol {
namespace {

TEST(Sender, OffersDoubtfulElementsOnlyAfterTheClientsAnswer) {
  Sender sender(Assign{.worker = kWorker,
                       .partition = kPartition,
                       .placement = Placement(1),
                       .skip = Range(0, 1),
                       .bookmark = std::nullopt,
                       .readers = {{kAnna, kFirst}, {kBert, kFirst}}});
  ASSERT_TRUE(sender.OnLinkUp(kAnna, kFirst, {}));
  EXPECT_FALSE(sender.OnLinkUp(kAnna, kSecond, {})) << "another process is no reader";
  sender.OnPassed(0);
  sender.OnSent(kAnna, 1);
  sender.OnSent(kAnna, 2);
  sender.OnEnd(3);
  EXPECT_TRUE(sender.ended());
  sender.OnLinkBroken(kAnna);
  EXPECT_FALSE(sender.ended());
  EXPECT_TRUE(sender.again().empty());
  ASSERT_TRUE(sender.OnLinkUp(kAnna, kFirst, Range(1, 2)));
  EXPECT_EQ(sender.again(), Range(2, 3));
  EXPECT_FALSE(sender.OnAddReader({kBert, kFirst})) << "it is one already";
}

TEST(Sender, RefusedElementsAreForAnyone) {
  Sender sender(Assign{.worker = kWorker,
                       .partition = kPartition,
                       .placement = Placement(1),
                       .skip = {},
                       .bookmark = std::nullopt,
                       .readers = {{kAnna, kFirst}, {kBert, kFirst}}});
  ASSERT_TRUE(sender.OnLinkUp(kAnna, kFirst, {}));
  ASSERT_TRUE(sender.OnLinkUp(kBert, kFirst, {}));
  sender.OnSent(kAnna, 0);
  sender.OnEnd(1);
  sender.OnRefused(kAnna, 0);
  EXPECT_FALSE(sender.ended());
  EXPECT_EQ(sender.again(), Range(0, 1));
  EXPECT_TRUE(sender.unconfirmed().empty());
  sender.OnSent(kBert, 0);
  EXPECT_TRUE(sender.ended());
  sender.OnLinkBroken(kAnna);
  EXPECT_TRUE(sender.ended());
}

TEST(Sender, ElementsRefusedAfterABreakAreForAnyone) {
  Sender sender(Assign{.worker = kWorker,
                       .partition = kPartition,
                       .placement = Placement(1),
                       .skip = {},
                       .bookmark = std::nullopt,
                       .readers = {{kAnna, kFirst}}});
  ASSERT_TRUE(sender.OnLinkUp(kAnna, kFirst, {}));
  sender.OnSent(kAnna, 0);
  sender.OnLinkBroken(kAnna);
  ASSERT_TRUE(sender.OnLinkUp(kAnna, kFirst, {}));
  sender.OnRefused(kAnna, 0);
  EXPECT_EQ(sender.again(), Range(0, 1));
  sender.OnSent(kAnna, 0);
  EXPECT_TRUE(sender.again().empty());
}

TEST(Receiver, DropsOlderElementsAfterAFenceAndReportsItsHoldings) {
  Receiver receiver(kPartition);
  EXPECT_EQ(receiver.OnElement(Placement(1), 0), ReceiveResult::kAccepted);
  EXPECT_EQ(receiver.OnElement(Placement(1), 1), ReceiveResult::kAccepted);
  receiver.OnDelivered(0);
  const Report answer = receiver.OnFence(Placement(2));
  EXPECT_EQ(answer.delivered, Range(0, 1));
  EXPECT_EQ(answer.received, Range(1, 2));
  EXPECT_EQ(receiver.OnElement(Placement(1), 2), ReceiveResult::kOldPlacement);
  EXPECT_EQ(receiver.OnElement(Placement(2), 1), ReceiveResult::kAlreadyHere);
  EXPECT_FALSE(receiver.News().has_value());
  receiver.OnConnected();
  EXPECT_EQ(receiver.News()->delivered, Range(0, 1)) << "all again on a new stream";
}

TEST(Receiver, OnlyTheFirstReportOnAStreamIsWhole) {
  Receiver receiver(kPartition);
  receiver.OnElement(Placement(1), 0);
  EXPECT_FALSE(receiver.ReceivedNews()->whole);
  receiver.OnElement(Placement(1), 1);
  EXPECT_FALSE(receiver.News()->whole) << "it does not name what was said before";
  receiver.OnConnected();
  const std::optional<Report> first = receiver.ReceivedNews();
  EXPECT_TRUE(first->whole);
  EXPECT_EQ(first->received, Range(0, 2));
  receiver.OnElement(Placement(1), 2);
  EXPECT_FALSE(receiver.News()->whole);
}

}  // namespace
}  // namespace penstock::protocol
