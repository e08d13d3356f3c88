// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/shared_window.h"

#include <future>
#include <thread>
#include <utility>

#include "control/observe/metrics.h"
#include "control/protocol/trainer_token.h"
#include "dataplane/memory/copied.h"
#include "dataplane/memory/pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/status.h"
#include "tests/dataplane/worker/fake_link.h"
#include "tests/dataplane/worker/placed_elements.h"

namespace penstock::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

int64_t BytesOfOne() {
  return static_cast<int64_t>(ElementAt(0).element.block().size());
}

constexpr Incarnation kFirst{1};

// A window of four elements, and one partition that produces without end, for clients 1 and 2.
class SharedWindowTest : public ::testing::Test {
 protected:
  ~SharedWindowTest() override {
    Stop();
    window_->CloseLinks(absl::UnavailableError("the test is over"));
  }

  // Produces elements 0, 1, …, with an error at index `error`.
  void Produce(Index error = -1) {
    sink_ = window_->Open(Placed({{ClientId(1), kFirst}, {ClientId(2), kFirst}}));
    producing_ = std::thread([this, error] {
      permit_.Take();
      for (Index i = 0;; ++i) {
        transfer::Sent sent = ElementAt(i);
        if (i == error) {
          sent.element = Element();
          sent.error = absl::DataLossError("the record is broken");
        }
        if (!sink_->Send(std::move(sent)).ok()) return;
        ++produced_;
      }
    });
  }
  PartitionSinkOptions Placed(std::vector<control::Reader> readers) {
    return {.of = kPlaced, .readers = std::move(readers), .permit = &permit_};
  }
  void Stop() {
    if (!producing_.joinable()) return;
    sink_->Cancel();
    producing_.join();
    window_->Close(*sink_);
  }

  std::shared_ptr<FakeLink> Open(const std::string& trainer, uint64_t client,
                                 std::vector<transfer::Holding> holdings = {}) {
    auto link = std::make_shared<FakeLink>(transfer::Hello{control::TrainerToken("token", trainer),
                                                           ClientId(client), kFirst, kIteration,
                                                           std::move(holdings)});
    auto events = window_->Accept(link->hello(), link);
    EXPECT_TRUE(events.ok()) << events.status();
    link->events = *std::move(events);
    return link;
  }

  std::shared_ptr<SharedWindow> window_ =
      SharedWindow::Start(kIteration, "token", 4 * BytesOfOne()).value();
  Permits permits_{1};
  Permit permit_{permits_, JobId(1)};
  std::shared_ptr<PartitionSink> sink_;
  std::thread producing_;
  std::atomic<int> produced_{0};
};

TEST_F(SharedWindowTest, EveryTrainerReadsTheSameElementsInOrder) {
  Produce();
  auto a = Open("a", 1), b = Open("b", 2);
  a->Grant(3);
  EXPECT_THAT(a->AwaitSent(3), ElementsAre(0, 1, 2));
  b->Grant(3);
  EXPECT_THAT(b->AwaitSent(3), ElementsAre(0, 1, 2));
  b->Grant(1);
  EXPECT_THAT(b->AwaitSent(4), ElementsAre(0, 1, 2, 3));
  a->Grant(1);
  EXPECT_THAT(a->AwaitSent(4), ElementsAre(0, 1, 2, 3));
  Stop();
  EXPECT_EQ(produced_, 4);  // once for both readers
  EXPECT_EQ(window_->skipped("a") + window_->skipped("b"), 0);
}

TEST_F(SharedWindowTest, AStoppedTrainerHoldsUpNobodyAndSkipsDroppedElements) {
  Produce();
  auto slow = Open("slow", 1), fast = Open("fast", 2);
  slow->Grant(1);
  EXPECT_THAT(slow->AwaitSent(1), ElementsAre(0));
  fast->Grant(10);
  EXPECT_EQ(fast->AwaitSent(10).size(), 10u);
  slow->Grant(4);
  EXPECT_THAT(slow->AwaitSent(5), ElementsAre(0, 6, 7, 8, 9));
  EXPECT_EQ(window_->skipped("slow"), 5);
  EXPECT_EQ(window_->skipped("fast"), 0);
}

TEST_F(SharedWindowTest, ALateTrainerBeginsWhereTheWindowDoes) {
  Produce();
  auto first = Open("first", 1);
  first->Grant(7);
  first->AwaitSent(7);
  auto late = Open("late", 2);
  late->Grant(2);
  EXPECT_THAT(late->AwaitSent(2), ElementsAre(3, 4));
  EXPECT_EQ(window_->skipped("late"), 0);
}

TEST_F(SharedWindowTest, LinksOfOneTrainerShareItsPlace) {
  Produce();
  auto a = Open("same", 1), b = Open("same", 2);
  a->Grant(2);
  EXPECT_THAT(a->AwaitSent(2), ElementsAre(0, 1));
  b->Grant(2);
  EXPECT_THAT(b->AwaitSent(2), ElementsAre(2, 3));
}

TEST_F(SharedWindowTest, PreparesNothingThatNobodyAsksFor) {
  Produce();
  auto link = Open("a", 1);
  {
    Permit other(permits_, JobId(1));
    EXPECT_TRUE(other.Take());  // the producer waits and has given up its permit
  }
  EXPECT_THAT(link->SentIndices(), IsEmpty());
  EXPECT_EQ(produced_, 0);
}

TEST_F(SharedWindowTest, AnErrorGoesToTheAskingTrainerOnly) {
  Produce(/*error=*/1);
  auto a = Open("a", 1), b = Open("b", 2);
  a->Grant(1);
  a->AwaitSent(1);
  a->Grant(2);
  EXPECT_THAT(a->AwaitSent(3), ElementsAre(0, 1, 2));
  EXPECT_TRUE(absl::IsDataLoss(a->ErrorAt(1)));
  b->Grant(2);
  EXPECT_THAT(b->AwaitSent(2), ElementsAre(0, 2));
  EXPECT_TRUE(b->ErrorAt(1).ok());
}

TEST_F(SharedWindowTest, ATooLargeElementIsAnErrorThatNamesTheSetting) {
  window_->CloseLinks(absl::UnavailableError("another"));
  window_ = SharedWindow::Start(kIteration, "token", BytesOfOne() - 1).value();
  Produce();
  auto link = Open("a", 1);
  link->Grant(1);
  link->AwaitSent(1);
  EXPECT_TRUE(absl::IsInvalidArgument(link->ErrorAt(0)));
  EXPECT_THAT(std::string(link->ErrorAt(0).message()), HasSubstr("cross_trainer_cache_size_bytes"));
}

TEST_F(SharedWindowTest, DoubtfulElementsComeAgainUnlessTheClientHasThem) {
  Produce();
  auto link = Open("a", 1);
  link->Grant(4);
  link->AwaitSent(4);
  link->Acknowledge(1);
  link->Break();
  auto again = Open("a", 1, {{kPlaced.partition, kPlaced.placement, IndexSet::Of(2, 3)}});
  again->Grant(3);
  EXPECT_THAT(again->AwaitSent(3), ElementsAre(1, 3, 4));
}

TEST_F(SharedWindowTest, TheSameBlockIsSentToAll) {
  Produce();
  auto a = Open("a", 1), b = Open("b", 2);
  a->Grant(1);
  a->AwaitSent(1);
  const int64_t before = BytesCopied();
  b->Grant(1);
  b->AwaitSent(1);
  EXPECT_EQ(BytesCopied(), before);
  EXPECT_EQ(b->BlockAt(0), a->BlockAt(0));
}

TEST_F(SharedWindowTest, CountsHitsAndMisses) {
  constexpr char kQueries[] = "penstock_worker_cross_trainer_cache_queries_total";
  const Counter& hits = ProcessMetrics().GetCounter(kQueries, "", {{"hit", "true"}});
  const Counter& misses = ProcessMetrics().GetCounter(kQueries, "", {{"hit", "false"}});
  const Gauge& bytes = ProcessMetrics().GetGauge("penstock_worker_cross_trainer_cache_bytes", "");
  const int64_t hits_before = hits.value(), misses_before = misses.value();
  const int64_t bytes_before = bytes.value();
  Produce();
  auto a = Open("a", 1), b = Open("b", 2);
  for (size_t i = 1; i <= 3; ++i) {
    a->Grant(1);
    a->AwaitSent(i);
  }
  EXPECT_EQ(misses.value() - misses_before, 3);
  EXPECT_EQ(bytes.value() - bytes_before, 3 * BytesOfOne());
  b->Grant(3);
  b->AwaitSent(3);
  EXPECT_EQ(misses.value() - misses_before, 3);
  EXPECT_EQ(hits.value() - hits_before, 3);
}

TEST_F(SharedWindowTest, ADatasetMustNotEnd) {
  sink_ = window_->Open({.of = kPlaced, .permit = &permit_});
  const absl::Status end = sink_->End(12);
  EXPECT_TRUE(absl::IsInvalidArgument(end));
  EXPECT_THAT(std::string(end.message()), HasSubstr("ended after 12 elements"));
  window_->Close(*sink_);
}

TEST_F(SharedWindowTest, AcceptsLinksWithTheTokenAndATrainer) {
  const auto accept = [&](const std::string& token) {
    auto link = std::make_shared<FakeLink>(
        transfer::Hello{token, ClientId(1), Incarnation(1), kIteration, {}});
    return window_->Accept(link->hello(), link).status();
  };
  EXPECT_TRUE(absl::IsPermissionDenied(accept("guessed:a")));
  EXPECT_TRUE(absl::IsPermissionDenied(accept("tokens")));
  EXPECT_TRUE(absl::IsInvalidArgument(accept("token")));
  EXPECT_TRUE(absl::IsInvalidArgument(accept("token:")));
}

TEST_F(SharedWindowTest, ALinkWaitsUntilItsClientIsAReader) {
  Produce();
  auto link = Open("a", 3);
  link->Grant(1);
  auto known = Open("b", 1);
  known->Grant(1);
  known->AwaitSent(1);
  EXPECT_THAT(link->SentIndices(), IsEmpty());
  sink_->AddReader({ClientId(4), kFirst});
  known->Grant(1);
  known->AwaitSent(2);
  EXPECT_THAT(link->SentIndices(), IsEmpty());
  sink_->AddReader({ClientId(3), kFirst});
  EXPECT_THAT(link->AwaitSent(1), ElementsAre(0));
  sink_->AddReader({ClientId(3), Incarnation(2)});
  EXPECT_TRUE(absl::IsPermissionDenied(link->AwaitClosed())) << "its next process reads";
}

TEST_F(SharedWindowTest, ARemovedReaderGetsNothingMore) {
  Produce();
  auto removed = Open("a", 1), stays = Open("b", 2);
  removed->Grant(1);
  EXPECT_THAT(removed->AwaitSent(1), ElementsAre(0));
  sink_->RemoveReader(ClientId(1));
  EXPECT_TRUE(absl::IsPermissionDenied(removed->AwaitClosed()));
  removed->Break();
  auto again = Open("a", 1);
  again->Grant(3);
  stays->Grant(3);
  EXPECT_THAT(stays->AwaitSent(3), ElementsAre(0, 1, 2));
  EXPECT_THAT(again->SentIndices(), IsEmpty());
}

TEST_F(SharedWindowTest, ANewPlacementHasTheReadersOfItsOrder) {
  Produce();
  auto removed = Open("a", 1), stays = Open("b", 2), early = Open("c", 3);
  removed->Grant(1);
  removed->AwaitSent(1);
  Stop();
  sink_ = window_->Open(Placed({{ClientId(2), kFirst}}));
  EXPECT_TRUE(absl::IsPermissionDenied(removed->AwaitClosed()));
  stays->Grant(1);
  EXPECT_THAT(stays->AwaitSent(1), ElementsAre(0));
  EXPECT_TRUE(stays->closed_with().ok());
  EXPECT_TRUE(early->closed_with().ok()) << "the order may be older than its reader";
  window_->Close(*sink_);
}

TEST_F(SharedWindowTest, IsForgottenWithoutPartitionsAndLinks) {
  Produce();
  EXPECT_FALSE(window_->RetireIfIdle());
  Stop();
  auto link = Open("a", 1);
  EXPECT_FALSE(window_->RetireIfIdle());
  link->Break();
  EXPECT_TRUE(window_->RetireIfIdle());
  auto late = std::make_shared<FakeLink>(
      transfer::Hello{"token:a", ClientId(1), Incarnation(1), kIteration, {}});
  EXPECT_TRUE(absl::IsUnavailable(window_->Accept(late->hello(), late).status()));
}

}  // namespace
}  // namespace penstock::worker
