// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/iteration_sender.h"

#include <atomic>
#include <future>
#include <set>
#include <thread>
#include <utility>

#include "control/observe/metrics.h"
#include "dataplane/memory/pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "include/status_macros.h"
#include "tests/dataplane/worker/fake_link.h"
#include "tests/dataplane/worker/placed_elements.h"

namespace penstock::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class IterationSenderTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(permit_.Take()); }

  static control::Reader ReaderOf(uint64_t client, uint64_t incarnation = 1) {
    return {ClientId(client), Incarnation(incarnation)};
  }

  // Opens a link of that client, accepted by the sender.
  std::shared_ptr<FakeLink> Open(control::Reader reader,
                                 std::vector<transfer::Holding> holdings = {}) {
    auto link = std::make_shared<FakeLink>(
        transfer::Hello{"token", reader.client, reader.incarnation, kIteration, holdings});
    auto events = sender_->Accept(link->hello(), link);
    EXPECT_TRUE(events.ok()) << events.status();
    link->events = *std::move(events);
    return link;
  }
  std::shared_ptr<PartitionSink> OpenPartition(std::vector<control::Reader> readers,
                                               IndexSet skip = {}) {
    return OpenPartition(
        {.of = kPlaced, .skip = skip, .readers = std::move(readers), .permit = &permit_});
  }
  std::shared_ptr<PartitionSink> OpenPartition(const PartitionSinkOptions& options) {
    partitions_.push_back(sender_->Open(options));
    return partitions_.back();
  }
  void TearDown() override {
    for (const std::shared_ptr<PartitionSink>& partition : partitions_) sender_->Close(*partition);
  }
  std::future<absl::Status> InBackground(std::function<absl::Status()> action) {
    return std::async(std::launch::async, std::move(action));
  }

  std::shared_ptr<Budget> budget_ = std::make_shared<Budget>(1 << 20);
  std::shared_ptr<IterationSender> sender_ =
      std::make_shared<IterationSender>(kIteration, "token", budget_);
  std::vector<std::shared_ptr<PartitionSink>> partitions_;
  Permits permits_{1};
  Permit permit_{permits_, JobId(1)};
};

TEST_F(IterationSenderTest, SendsToReadersWithCreditsInTurn) {
  auto a = Open(ReaderOf(1)), b = Open(ReaderOf(2));
  auto partition = OpenPartition({ReaderOf(1), ReaderOf(2)});
  a->Grant(2);
  b->Grant(3);
  for (Index i = 0; i < 5; ++i) ASSERT_TRUE(partition->Send(ElementAt(i)).ok());
  EXPECT_THAT(a->SentIndices(), ElementsAre(0, 2));
  EXPECT_THAT(b->SentIndices(), ElementsAre(1, 3, 4));
}

TEST_F(IterationSenderTest, WaitsForACreditWithThePermitGivenUp) {
  auto link = Open(ReaderOf(1));
  auto partition = OpenPartition({ReaderOf(1)});
  auto sent = InBackground([&] { return partition->Send(ElementAt(0)); });
  {
    Permit other(permits_, JobId(1));
    EXPECT_TRUE(other.Take());  // returns only once the partition waits
  }
  EXPECT_EQ(link->flushes(), 0);  // the link had nothing to flush
  link->Grant(1);
  EXPECT_TRUE(sent.get().ok());
  EXPECT_THAT(link->SentIndices(), ElementsAre(0));
}

TEST_F(IterationSenderTest, FlushesALinkBeforeItWaits) {
  auto link = Open(ReaderOf(1));
  auto partition = OpenPartition({ReaderOf(1)});
  link->Grant(1);
  ASSERT_TRUE(partition->Send(ElementAt(0)).ok());
  EXPECT_EQ(link->flushes(), 0);
  auto sent = InBackground([&] { return partition->Send(ElementAt(1)); });
  {
    Permit other(permits_, JobId(1));
    ASSERT_TRUE(other.Take());
  }
  partition->Cancel();
  EXPECT_EQ(sent.get().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(link->flushes(), 1);
}

TEST_F(IterationSenderTest, RefusesALinkWithoutTheToken) {
  auto link = std::make_shared<FakeLink>(
      transfer::Hello{"guessed", ClientId(1), Incarnation(1), kIteration, {}});
  EXPECT_EQ(sender_->Accept(link->hello(), link).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(IterationSenderTest, SendsToNamedSessionsAlone) {
  auto named = Open(ReaderOf(1, 5)), older = Open(ReaderOf(1, 4)), other = Open(ReaderOf(2));
  auto partition = OpenPartition({ReaderOf(1, 5)});
  for (auto& link : {named, older, other}) link->Grant(10);
  for (Index i = 0; i < 3; ++i) ASSERT_TRUE(partition->Send(ElementAt(i)).ok());
  EXPECT_THAT(named->SentIndices(), ElementsAre(0, 1, 2));
  EXPECT_THAT(older->SentIndices(), IsEmpty());
  EXPECT_THAT(other->SentIndices(), IsEmpty());
  partition->AddReader(ReaderOf(2));
  for (Index i = 3; i < 5; ++i) ASSERT_TRUE(partition->Send(ElementAt(i)).ok());
  EXPECT_THAT(other->SentIndices(), ::testing::SizeIs(1));
}

TEST_F(IterationSenderTest, DoubtfulElementsWaitForTheClientsAnswer) {
  auto a = Open(ReaderOf(1)), b = Open(ReaderOf(2));
  auto partition = OpenPartition({ReaderOf(1), ReaderOf(2)});
  a->Grant(4);
  for (Index i = 0; i < 4; ++i) ASSERT_TRUE(partition->Send(ElementAt(i)).ok());
  a->Acknowledge(1);
  a->Break();
  b->Grant(10);
  ASSERT_TRUE(partition->Send(ElementAt(4)).ok());
  auto ended = InBackground([&] { return partition->End(5); });
  {
    Permit other(permits_, JobId(1));
    ASSERT_TRUE(other.Take());  // the partition waits: 1, 2 and 3 are in doubt
  }
  EXPECT_THAT(b->SentIndices(), ElementsAre(4));
  auto again = Open(ReaderOf(1), {{PartitionId(1), Placement(3), IndexSet::Of(0, 3)}});
  EXPECT_TRUE(ended.get().ok());
  EXPECT_THAT(b->SentIndices(), ElementsAre(4, 3));
  EXPECT_THAT(again->SentIndices(), IsEmpty());
}

TEST_F(IterationSenderTest, SendsUnreceivedElementsBeforeNewOnes) {
  auto link = Open(ReaderOf(1));
  auto partition = OpenPartition({ReaderOf(1)});
  link->Grant(2);
  for (Index i = 0; i < 2; ++i) ASSERT_TRUE(partition->Send(ElementAt(i)).ok());
  link->Break();
  auto again = Open(ReaderOf(1));
  again->Grant(3);
  ASSERT_TRUE(partition->Send(ElementAt(2)).ok());
  EXPECT_THAT(again->SentIndices(), ElementsAre(0, 1, 2));
}

// The reader gave elements of that placement back, which an earlier link had brought.
TEST_F(IterationSenderTest, HoldingsOfAnEarlierPlacementAreIgnored) {
  auto link = Open(ReaderOf(1));
  auto partition = OpenPartition({ReaderOf(1)});
  link->Grant(2);
  for (Index i = 0; i < 2; ++i) ASSERT_TRUE(partition->Send(ElementAt(i)).ok());
  link->Break();
  auto again = Open(ReaderOf(1), {{PartitionId(1), Placement(2), IndexSet::Of(0, 2)},
                                  {PartitionId(1), Placement(3), IndexSet::Of(1, 2)}});
  again->Grant(2);
  ASSERT_TRUE(partition->Send(ElementAt(2)).ok());
  EXPECT_THAT(again->SentIndices(), ElementsAre(0, 2));
}

// The elements of the group have the first member's index in their heads.
TEST_F(IterationSenderTest, AGroupMembersUnreceivedElementsAreSentAgain) {
  control::Reader first = ReaderOf(1), second = ReaderOf(2);
  first.consumer = 0;
  second.consumer = 1;
  auto a = Open(first), b = Open(second);
  auto partition = OpenPartition({.of = kPlaced,
                                  .readers = {first, second},
                                  .consumers = 2,
                                  .group_size = 2,
                                  .rows = 2,
                                  .permit = &permit_});
  a->Grant(2);
  b->Grant(2);
  for (Index i = 0; i < 4; ++i) {
    transfer::Sent sent = ElementAt(i / 2 * 2);
    sent.identity.index = i;
    ASSERT_TRUE(partition->Send(std::move(sent)).ok());
  }
  b->Acknowledge(1);
  b->Break();
  auto again = Open(second, {{PartitionId(1), Placement(3), IndexSet::Of(1, 2)}});
  again->Grant(1);
  auto lingers = std::async(std::launch::async, [&] { partition->Linger(); });
  EXPECT_THAT(again->AwaitSent(1), ElementsAre(3));
  partition->Cancel();
  lingers.get();
}

TEST_F(IterationSenderTest, AnEndedPartitionSendsUnreceivedElementsAgain) {
  auto link = Open(ReaderOf(1));
  auto partition = OpenPartition({ReaderOf(1)});
  link->Grant(1);
  ASSERT_TRUE(partition->Send(ElementAt(0)).ok());
  ASSERT_TRUE(partition->End(1).ok());
  auto lingers = std::async(std::launch::async, [&] { partition->Linger(); });
  link->Break();
  auto again = Open(ReaderOf(1));
  again->Grant(1);
  EXPECT_THAT(again->AwaitSent(1), ElementsAre(0));
  partition->Cancel();
  lingers.get();
}

TEST_F(IterationSenderTest, ANewLinkOfASessionWaitsForTheEndOfTheOld) {
  auto old = Open(ReaderOf(1));
  auto partition = OpenPartition({ReaderOf(1)});
  old->Grant(5);
  ASSERT_TRUE(partition->Send(ElementAt(0)).ok());
  auto link = Open(ReaderOf(1), {{PartitionId(1), Placement(3), IndexSet::Of(0, 1)}});
  EXPECT_EQ(old->closed_with().code(), absl::StatusCode::kAborted);
  link->Grant(5);
  auto sent = InBackground([&] { return partition->Send(ElementAt(1)); });
  {
    Permit other(permits_, JobId(1));
    ASSERT_TRUE(other.Take());
  }
  EXPECT_THAT(link->SentIndices(), IsEmpty());
  old->Break();
  EXPECT_TRUE(sent.get().ok());
  EXPECT_THAT(old->SentIndices(), ElementsAre(0));
  EXPECT_THAT(link->SentIndices(), ElementsAre(1));
}

TEST_F(IterationSenderTest, ALinkThatBreaksInsideSendLeavesItsElementInDoubt) {
  auto link = Open(ReaderOf(1));
  auto partition = OpenPartition({ReaderOf(1)});
  link->inside_send = [&] { link->Break(); };
  link->Grant(1);
  ASSERT_TRUE(partition->Send(ElementAt(0)).ok());
  auto ended = InBackground([&] { return partition->End(1); });
  auto again = Open(ReaderOf(1));
  again->Grant(1);
  EXPECT_TRUE(ended.get().ok());
  EXPECT_THAT(again->SentIndices(), ElementsAre(0));
}

TEST_F(IterationSenderTest, ALinkThatBreaksBeforeItTakesAnElementLeavesItToAnother) {
  auto a = Open(ReaderOf(1)), b = Open(ReaderOf(2));
  auto partition = OpenPartition({ReaderOf(1), ReaderOf(2)});
  a->before_send = [&] { a->Break(); };
  a->Grant(1);
  b->Grant(1);
  ASSERT_TRUE(partition->Send(ElementAt(0)).ok());
  EXPECT_THAT(b->SentIndices(), ElementsAre(0));
  b->Acknowledge(1);
  EXPECT_EQ(budget_->used(), 0);
  EXPECT_TRUE(partition->End(1).ok());
}

TEST_F(IterationSenderTest, AClientThatComesBackBeforeItsOldLinkTakesAnElementGetsItOnce) {
  auto old = Open(ReaderOf(1));
  auto partition = OpenPartition({ReaderOf(1)});
  std::shared_ptr<FakeLink> link;
  old->before_send = [&] {
    old->Break();
    link = Open(ReaderOf(1));
    link->Grant(5);
  };
  old->Grant(1);
  ASSERT_TRUE(partition->Send(ElementAt(0)).ok());
  ASSERT_TRUE(partition->Send(ElementAt(1)).ok());
  EXPECT_THAT(link->SentIndices(), ElementsAre(0, 1));
  link->Acknowledge(2);
  EXPECT_EQ(budget_->used(), 0);
  EXPECT_TRUE(partition->End(2).ok());
  EXPECT_THAT(link->SentIndices(), ElementsAre(0, 1));
}

TEST_F(IterationSenderTest, ALinkWhoseCreditsWereCalledBackLeavesItsElementToAnother) {
  auto a = Open(ReaderOf(1)), b = Open(ReaderOf(2));
  auto partition = OpenPartition({ReaderOf(1), ReaderOf(2)});
  a->Grant(1);
  a->Recall();
  b->Grant(1);
  ASSERT_TRUE(partition->Send(ElementAt(0)).ok());
  EXPECT_THAT(b->SentIndices(), ElementsAre(0));
  a->Grant(1);
  ASSERT_TRUE(partition->Send(ElementAt(1)).ok());
  EXPECT_THAT(a->SentIndices(), ElementsAre(1));
}

TEST_F(IterationSenderTest, CountsElementsReceivedDuringSend) {
  auto link = Open(ReaderOf(1));
  auto partition = OpenPartition({ReaderOf(1)});
  link->inside_send = [&] { link->Acknowledge(1); };
  link->Grant(1);
  ASSERT_TRUE(partition->Send(ElementAt(0)).ok());
  EXPECT_EQ(budget_->used(), 0);
  link->Break();
  EXPECT_TRUE(partition->End(1).ok());  // nothing is in doubt
}

// Returns partition and index of each element, in the order of sending.
std::vector<std::pair<uint64_t, Index>> SentOn(FakeLink& link) {
  std::vector<std::pair<uint64_t, Index>> sent;
  for (size_t i = 0, count = link.SentIndices().size(); i < count; ++i)
    sent.emplace_back(link.IdentityAt(i).partition.value(), link.IdentityAt(i).index);
  return sent;
}

TEST_F(IterationSenderTest, ReceiptsCountForThePartitionThatSent) {
  constexpr Index kElements = 4;  // in each of two partitions
  for (size_t round = 0; round < 64; ++round) {
    auto link = Open(ReaderOf(1));
    Permits permits(2);
    Permit permit[] = {Permit(permits, JobId(1)), Permit(permits, JobId(1))};
    control::PlacedPartition placed[] = {kPlaced, kPlaced};
    placed[1].partition = PartitionId(2);
    std::shared_ptr<PartitionSink> partitions[2];
    for (int i : {0, 1})
      partitions[i] =
          OpenPartition({.of = placed[i], .readers = {ReaderOf(1)}, .permit = &permit[i]});
    // Holds one thread at a time inside Send() until the other partition has sent, or cannot.
    std::atomic<int> returned = 0;
    std::atomic<bool> held = false;
    link->inside_send = [&] {
      if (held.exchange(true)) return;
      const int before = returned;
      for (int i = 0; i < 1000 && returned == before; ++i) std::this_thread::yield();
      held = false;
    };
    link->Grant(2 * kElements);
    const auto send_all = [&](int i) -> absl::Status {
      for (Index index = 0; index < kElements; ++index) {
        RETURN_IF_ERROR(partitions[i]->Send(ElementAt(index, placed[i])));
        ++returned;
      }
      return absl::OkStatus();
    };
    auto one = InBackground([&] { return send_all(0); });
    auto two = InBackground([&] { return send_all(1); });
    const size_t received = round % (2 * kElements);
    for (size_t i = 0; i < received; ++i) {
      link->AwaitSent(i + 1);
      link->Acknowledge(1);
    }
    ASSERT_TRUE(one.get().ok());
    ASSERT_TRUE(two.get().ok());
    link->Break();

    const auto sent = SentOn(*link);
    IndexSet has[2];
    for (size_t i = 0; i < received; ++i) has[sent[i].first - 1].Add(sent[i].second);
    auto again = Open(ReaderOf(1), {{PartitionId(1), Placement(3), has[0]},
                                    {PartitionId(2), Placement(3), has[1]}});
    again->Grant(2 * kElements);
    for (const auto& partition : partitions) ASSERT_TRUE(partition->End(kElements).ok());
    const auto repeated = SentOn(*again);
    EXPECT_EQ(std::set(repeated.begin(), repeated.end()),
              std::set(sent.begin() + received, sent.end()));
    EXPECT_EQ(repeated.size(), sent.size() - received);
    for (const auto& partition : partitions) sender_->Close(*partition);
    again->Break();
    EXPECT_EQ(budget_->used(), 0);
  }
}

TEST_F(IterationSenderTest, TheBudgetCountsElementsOnTheirWay) {
  auto link = Open(ReaderOf(1));
  auto partition = OpenPartition({ReaderOf(1)});
  link->Grant(2);
  const auto bytes = static_cast<int64_t>(ElementAt(0).element.block().size());
  ASSERT_TRUE(partition->Send(ElementAt(0)).ok());
  ASSERT_TRUE(partition->Send(ElementAt(1)).ok());
  EXPECT_EQ(budget_->used(), 2 * bytes);
  link->Acknowledge(1);
  EXPECT_EQ(budget_->used(), bytes);
  link->Break();
  EXPECT_EQ(budget_->used(), 0);
}

TEST_F(IterationSenderTest, CountsSentAndReceivedElementsForTheMetrics) {
  Counter& sent = ProcessMetrics().GetCounter("penstock_worker_elements_sent_total", "");
  Counter& received = ProcessMetrics().GetCounter("penstock_worker_elements_landed_total", "");
  const int64_t sent_before = sent.value(), received_before = received.value();
  auto link = Open(ReaderOf(1));
  auto partition = OpenPartition({ReaderOf(1)});
  link->Grant(2);
  ASSERT_TRUE(partition->Send(ElementAt(0)).ok());
  ASSERT_TRUE(partition->Send(ElementAt(1)).ok());
  link->Acknowledge(1);
  EXPECT_EQ(sent.value() - sent_before, 2);
  EXPECT_EQ(received.value() - received_before, 1);
}

TEST_F(IterationSenderTest, AnElementThatTheProtocolCannotCarryBecomesAnErrorInItsPlace) {
  auto link = Open(ReaderOf(1));
  auto partition = OpenPartition({ReaderOf(1)});
  link->answer = absl::InvalidArgumentError("too large");
  link->Grant(1);
  ASSERT_TRUE(partition->Send(ElementAt(0)).ok());
  EXPECT_THAT(link->SentIndices(), ElementsAre(0));
  EXPECT_EQ(link->ErrorAt(0).message(), "too large");
}

TEST_F(IterationSenderTest, ForgetsAPartitionThatIsClosed) {
  auto link = Open(ReaderOf(1));
  auto partition = OpenPartition({ReaderOf(1)});
  link->Grant(1);
  ASSERT_TRUE(partition->Send(ElementAt(0)).ok());
  sender_->Close(*partition);
  EXPECT_EQ(partition->Send(ElementAt(1)).code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(sender_->RetireIfIdle());
  link->Break();  // nobody needs its unconfirmed elements
  EXPECT_TRUE(sender_->RetireIfIdle());
  EXPECT_EQ(budget_->used(), 0);
}

TEST_F(IterationSenderTest, TakesNoLinkOnceItIsRetired) {
  auto link = Open(ReaderOf(1));
  EXPECT_FALSE(sender_->RetireIfIdle());
  auto replaces = Open(ReaderOf(1));  // still accepted
  link->Break();
  replaces->Break();
  EXPECT_TRUE(sender_->RetireIfIdle());
  auto late = std::make_shared<FakeLink>(
      transfer::Hello{"token", ClientId(1), Incarnation(1), kIteration, {}});
  EXPECT_EQ(sender_->Accept(late->hello(), late).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace penstock::worker
