// SPDX-License-Identifier: Apache-2.0
// A session as one of several consumers of a coordinated read.
#include <future>

#include "control/observe/metrics.h"
#include "dataplane/client/delivery/lost_consumers.h"
#include "dataplane/client/session/session.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/dataplane/client/session_fixture.h"

namespace penstock::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

control::ConsumersLost Lost(int64_t consumer, bool dead) {
  return {{{consumer, absl::Seconds(100), dead, "its connection to the dispatcher ended",
            /*ended=*/true}}};
}
std::string AsOf(absl::Duration ago) {
  return absl::FormatTime("%Y-%m-%d %H:%M", absl::Now() - ago, absl::LocalTimeZone());
}

TEST_F(SessionTest, AConsumerThatIsSuspectedIsNamedAndTheCallWaitsForIt) {
  consumers_ = 8;
  Begin({}, absl::Hours(1), /*timeout=*/absl::Milliseconds(200));
  const std::string before = AsOf(absl::Seconds(100));
  dispatcher_.Say(Lost(3, /*dead=*/false));
  const absl::Status waited = session_->Next().status();
  EXPECT_EQ(waited.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(
      std::string(waited.message()),
      ::testing::AllOf(
          HasSubstr("round 0 could not be given out for 200ms: consumer 3 has not been heard from "
                    "since "),
          ::testing::AnyOf(HasSubstr(before), HasSubstr(AsOf(absl::Seconds(100)))),
          HasSubstr("(its connection to the dispatcher ended)")));
  EXPECT_EQ(events_->WaitFor("consumer_suspected", absl::Minutes(1)).field("consumer"), "3");
  dispatcher_.Say(control::ConsumersLost());
  EXPECT_EQ(events_->WaitFor("consumer_back", absl::Minutes(1)).field("consumer"), "3");
}

// The length of the timeout does not matter.
TEST_F(SessionTest, AConsumerThatIsDeclaredDeadEndsTheWaitAtOnce) {
  consumers_ = 8;
  Begin({}, absl::Hours(1), /*timeout=*/absl::Hours(1));
  dispatcher_.Say(Lost(3, /*dead=*/false));
  dispatcher_.Say(Lost(3, /*dead=*/true));
  const absl::Status dead = session_->Next().status();
  EXPECT_EQ(dead.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(
      std::string(dead.message()),
      ::testing::AllOf(
          HasSubstr("round 0 cannot be given out: consumer 3 is dead: not heard from since "),
          HasSubstr("states of one step")));
  EXPECT_EQ(events_->WaitFor("consumer_dead", absl::Minutes(1)).field("job"), "j");
  EXPECT_THAT(ProcessMetrics().Render(), HasSubstr("penstock_client_lost_consumers{job=\"j\"} 1"));
}

// Trainers that were all away come back one after another.
TEST_F(SessionTest, AConsumerThatWasDeadBeforeIsWaitedFor) {
  consumers_ = 8;
  Begin({}, absl::Hours(1), /*timeout=*/absl::Milliseconds(200));
  dispatcher_.Say(Lost(3, /*dead=*/true));
  EXPECT_THAT(
      std::string(session_->Next().status().message()),
      ::testing::StartsWith("round 0 could not be given out for 200ms: consumer 3 is dead: not"));
}

// An evaluation between two steps would see it like this.
TEST_F(SessionTest, ADeathThatIsOverBeforeTheNextCallIsNotReturned) {
  consumers_ = 8;
  Begin({}, absl::Hours(1), /*timeout=*/absl::Milliseconds(200));
  dispatcher_.Say(Lost(3, /*dead=*/false));
  dispatcher_.Say(Lost(3, /*dead=*/true));
  dispatcher_.Say(control::ConsumersLost());
  EXPECT_EQ(events_->WaitFor("consumer_back", absl::Minutes(1)).field("consumer"), "3");
  dispatcher_.Say(Lost(4, /*dead=*/false));
  EXPECT_THAT(
      std::string(session_->Next().status().message()),
      ::testing::StartsWith("round 0 could not be given out for 200ms: consumer 4 has not"));
}

// The trainer's own thread may be inside a collective.
TEST_F(SessionTest, AWatchHearsEachChangeSinceTheSessionBegan) {
  using State = LostConsumer::State;
  consumers_ = 8;
  LostConsumerWatch watch;
  std::vector<State> called;
  std::promise<void> back;
  const auto on_lost = OnLostConsumer::Start([&](const LostConsumer& lost) {
    if (lost.consumer == 4) called.push_back(lost.state);
    if (lost.consumer == 4 && lost.state == State::kBack) back.set_value();
  });
  ASSERT_TRUE(on_lost.ok());
  Begin();
  dispatcher_.Say(Lost(3, /*dead=*/false));  // before the session: it may be on its way back
  dispatcher_.Say(control::ConsumersLost{{{4, absl::Seconds(2), false, "silent for 1.75s"}}});
  dispatcher_.Say(Lost(4, /*dead=*/false));
  dispatcher_.Say(Lost(4, /*dead=*/false));  // no change
  dispatcher_.Say(Lost(4, /*dead=*/true));
  dispatcher_.Say(control::ConsumersLost());

  std::vector<std::pair<int64_t, State>> changes;
  for (int i = 0; i < 5; ++i) {
    const std::optional<LostConsumer> change = watch.Next(absl::Now() + absl::Minutes(1));
    ASSERT_TRUE(change.has_value());
    EXPECT_EQ(change->job, "j");
    changes.emplace_back(change->consumer, change->state);
  }
  using Change = std::pair<int64_t, State>;
  EXPECT_THAT(changes, ElementsAre(Change(4, State::kSilent), Change(3, State::kBack),
                                   Change(4, State::kEnded), Change(4, State::kDead),
                                   Change(4, State::kBack)));
  back.get_future().wait();
  EXPECT_THAT(called, ElementsAre(State::kSilent, State::kEnded, State::kDead, State::kBack));
  watch.Stop();
  EXPECT_EQ(watch.Next(), std::nullopt);
}

// Without the dispatcher the client cannot hear that it is back.
TEST_F(SessionTest, ThatAConsumerEndedIsInDoubtWhileTheStreamIsBroken) {
  using State = LostConsumer::State;
  consumers_ = 8;
  LostConsumerWatch watch;
  Begin();
  dispatcher_.Say(control::ConsumersLost());
  dispatcher_.Say(Lost(4, /*dead=*/false));
  const auto next = [&watch] { return watch.Next(absl::Now() + absl::Minutes(1)).value().state; };
  EXPECT_EQ(next(), State::kEnded);
  dispatcher_.Break();
  EXPECT_EQ(next(), State::kSilent);
  dispatcher_.Say(Lost(4, /*dead=*/false));
  EXPECT_EQ(next(), State::kEnded);
}

TEST_F(SessionTest, AConsumerIsNotSuspectedToItself) {
  consumers_ = 8;
  Begin();
  dispatcher_.Say(Lost(0, /*dead=*/false));
  dispatcher_.Say(Lost(2, /*dead=*/false));
  EXPECT_EQ(events_->WaitFor("consumer_suspected", absl::Minutes(1)).field("consumer"), "2");
}

class RoundsSessionTest : public SessionTest {
 protected:
  RoundsSessionTest() {
    consumers_ = 2;
    heartbeat_interval_ = absl::Hours(1);  // a heartbeat reports whatever there is
  }
  // Sends this consumer's elements of rows `begin` to `end`; each belongs to one round.
  void SendElements(transfer::SendLink& link, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) ASSERT_TRUE(Send(link, row * 2).ok());
  }
  static control::Agreed AgreedOn(int64_t begin, int64_t end) {
    control::Agreed agreed{.first = begin};
    for (int64_t row = begin; row < end; ++row)
      agreed.rounds.push_back({.row = protocol::PartitionRow{kPartition, row}});
    return agreed;
  }
  void Take(int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) ASSERT_EQ(NextValue(), row * 2);
  }
  // Sends eight rows, which fill the window, and expects a report of each.
  void SendOneByOne(transfer::SendLink& link) {
    SendElements(link, 0, 1);
    size_t report = 0;  // the welcome's reports come first
    while (ReceivedOf(report).empty()) ++report;
    for (int64_t row = 1; row < 8; ++row) {
      SendElements(link, row, row + 1);
      EXPECT_EQ(ReceivedOf(++report), IndexSet::Of(row, row + 1));
    }
  }
  // Takes one of eight rows that were received and agreed on. Returns the number of the next
  // report.
  size_t TakeOneOfEight(transfer::SendLink& link) {
    SendOneByOne(link);
    const size_t next = dispatcher_.Count<control::Report>();
    dispatcher_.Say(AgreedOn(0, 8));
    Take(0, 1);
    return next;
  }
  IndexSet ReceivedOf(size_t report) {
    const auto partitions = dispatcher_.Heard<control::Report>(report).partitions;
    return partitions.empty() ? IndexSet() : partitions[0].received;
  }
  int64_t DeliveredIn(size_t report) {
    return dispatcher_.Heard<control::Report>(report).rounds->delivered;
  }
};

TEST_F(RoundsSessionTest, ReportsForTheNextStepAreSentAtOnce) {
  Begin();
  SendOneByOne(Link()->link());
}

TEST_F(RoundsSessionTest, ReportsThatNobodyAwaitsAreCombined) {
  Begin();
  auto link = Link();
  SendOneByOne(link->link());
  const size_t next = dispatcher_.Count<control::Report>();
  const absl::Time begin = BootTime();
  dispatcher_.Say(AgreedOn(0, 8));
  Take(0, 4);  // half the window of 8: the dispatcher gets its receive budget
  size_t last = next;
  while (DeliveredIn(last) < 4) ++last;
  SendElements(link->link(), 8, 12);
  Take(4, 7);  // one more is agreed on
  IndexSet received;
  for (++last; DeliveredIn(last) < 7; ++last) received.Add(ReceivedOf(last));
  received.Add(ReceivedOf(last));
  EXPECT_EQ(received, IndexSet::Of(8, 12));
  // If this thread was suspended, more reports are sent by time.
  const int64_t by_time = (BootTime() - begin) / absl::Milliseconds(50);
  EXPECT_LE(last + 1 - next, 2 + static_cast<size_t>(by_time));
}

// Others may have fewer places than this consumer; a worker sends no more until they have room.
TEST_F(RoundsSessionTest, AWaitingConsumerReportsDeliveriesSoon) {
  Begin();
  auto link = Link();
  SendOneByOne(link->link());
  const size_t next = dispatcher_.Count<control::Report>();
  dispatcher_.Say(AgreedOn(0, 2));
  Take(0, 2);
  auto waits = std::async(std::launch::async, [this] { return NextValue(); });
  EXPECT_EQ(DeliveredIn(next), 2);
  dispatcher_.Say(AgreedOn(2, 3));
  EXPECT_EQ(waits.get(), 4);
}

// The consumer may evaluate for a while, and the others wait for it.
TEST_F(RoundsSessionTest, ReceivedElementsAreReportedSoonWithoutCalls) {
  Begin();
  auto link = Link();
  const size_t next = TakeOneOfEight(link->link());
  SendElements(link->link(), 8, 9);
  IndexSet received;
  for (size_t i = next; !received.Contains(8); ++i) received.Add(ReceivedOf(i));
  EXPECT_EQ(received, IndexSet::Of(8, 9));
}

// Its worker may be replaced later, and then nobody sends it again.
TEST_F(RoundsSessionTest, AnErrorIsReportedAtOnce) {
  Begin();
  auto link = Link();
  const size_t next = TakeOneOfEight(link->link());
  ASSERT_TRUE(link->link().Send({IdentityOf(16), absl::DataLossError("torn")}).ok());
  ASSERT_TRUE(link->AwaitReceived(9));
  dispatcher_.Say(control::Fence{kPartition, Placement(2)});
  dispatcher_.Heard<control::FenceAnswer>();
  ASSERT_GT(dispatcher_.Count<control::Report>(), next);
  const control::Report report = dispatcher_.Heard<control::Report>(next);
  ASSERT_EQ(report.rounds->errors.size(), 1u);
  EXPECT_EQ(report.rounds->errors[0].message, "torn");
}

// The next round may need an element of a worker without credits. No kept element is taken first.
TEST_F(RoundsSessionTest, ElementsThatWaitForTheirRoundUseNoCredits) {
  constexpr int64_t kWindow = 1024;
  Begin();
  auto link = Link();
  ASSERT_TRUE(link->AwaitGranted(kWindow));
  SendElements(link->link(), 0, kWindow);
  EXPECT_TRUE(link->AwaitGranted(kWindow + kWindow / 2));  // the rest is less than a portion
}

TEST_F(RoundsSessionTest, TheReceiveBudgetIsWithinTheQuotaOfBytes) {
  Begin();
  auto link = Link();
  SendOneByOne(link->link());
  const size_t next = dispatcher_.Count<control::Report>();
  EXPECT_EQ(dispatcher_.Heard<control::Report>(next - 1).rounds->receive_budget, 8);
  const int64_t value = 0;
  const Element element = *MakeElement(DefaultPool(), {Tensor(kInt64, {}, &value)}, Scalar(kInt64));
  control::Membership membership = Membership();
  membership.version = 2;
  membership.max_bytes_in_flight = 3 * static_cast<int64_t>(element.block().size());
  dispatcher_.Say(std::move(membership));
  dispatcher_.Say(control::Fence{kPartition, Placement(2)});
  dispatcher_.Heard<control::FenceAnswer>();
  dispatcher_.Say(AgreedOn(0, 8));
  Take(0, 4);
  EXPECT_EQ(dispatcher_.Heard<control::Report>(next).rounds->receive_budget, 3);
}

}  // namespace
}  // namespace penstock::client
