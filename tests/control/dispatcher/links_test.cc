// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/monitoring/links.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/observe/metrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr Links::Key kSession{IterationId(6), ClientId(3)};
constexpr WorkerId kWorker(7);

LinkCounts Counts(int64_t elements, int64_t bytes, const std::string& protocol = "tcp") {
  return {.worker = kWorker,
          .protocol = protocol,
          .reason = protocol + ": as asked for",
          .open = true,
          .elements = elements,
          .bytes = bytes};
}

int64_t Total(const std::string& name, const std::string& protocol) {
  return ProcessMetrics().GetCounter(name, "", {{"protocol", protocol}}).value();
}

LinkCounts CountsOf(uint64_t worker, int64_t elements) {
  LinkCounts counts = Counts(elements, 0);
  counts.worker = WorkerId(worker);
  return counts;
}

class LinksTest : public testing::Test {
 protected:
  LinksTest() { Begin(); }
  void Begin(uint64_t incarnation = 1) {
    links_.Begin(kSession, Incarnation(incarnation), ++stream_);
  }
  void HearAfter(absl::Duration time, std::vector<LinkCounts> counts) {
    now_ += time;
    EXPECT_TRUE(Hear({.links = std::move(counts)}, stream_));
  }
  bool HearChangesAfter(absl::Duration time, std::vector<LinkCounts> counts,
                        std::vector<WorkerId> gone = {}) {
    now_ += time;
    return Hear(
        {.links = std::move(counts), .only_changed_links = true, .gone_links = std::move(gone)},
        stream_);
  }
  bool Hear(ClientHeartbeat heartbeat, uint64_t stream) {
    return links_.Heard(kSession, stream, heartbeat, now_);
  }
  // The elements of each link, and how many came in a second.
  std::map<uint64_t, std::pair<int64_t, double>> All() {
    std::map<uint64_t, std::pair<int64_t, double>> all;
    for (const LinkStatus& link : links_.Of(kSession))
      all[link.counts.worker.value()] = {link.counts.elements, link.elements_per_s};
    return all;
  }
  LinkStatus TheLink() {
    std::vector<LinkStatus> links = links_.Of(kSession);
    EXPECT_EQ(links.size(), 1u);
    return links.empty() ? LinkStatus() : links[0];
  }

  absl::Time now_ = absl::UnixEpoch();
  Links links_;
  uint64_t stream_ = 0;
};

TEST_F(LinksTest, ShowTheLastWordOfASession) {
  HearAfter(absl::Seconds(1), {Counts(10, 1000)});
  EXPECT_EQ(TheLink().client, ClientId(3));
  EXPECT_EQ(TheLink().iteration, IterationId(6));
  EXPECT_EQ(TheLink().counts, Counts(10, 1000));
  EXPECT_THAT(links_.Of({IterationId(6), ClientId(4)}), IsEmpty());
  links_.Forget(kSession);
  EXPECT_THAT(links_.Of(kSession), IsEmpty());
}

TEST_F(LinksTest, AreOnePerWorker) {
  HearAfter(absl::Seconds(1), {Counts(10, 1000), Counts(20, 2000)});
  EXPECT_EQ(TheLink().counts, Counts(10, 1000));
}

// Metrics are kept for ever.
TEST_F(LinksTest, InventedProtocolsShareALabel) {
  const int64_t before = Total("penstock_link_elements_total", "other");
  for (int i = 0; i < 1000; ++i) HearAfter(absl::Seconds(1), {Counts(i, i, absl::StrCat("p", i))});
  EXPECT_GT(Total("penstock_link_elements_total", "other"), before);
  EXPECT_EQ(Total("penstock_link_elements_total", "p999"), 0);
  HearAfter(absl::Seconds(1), {Counts(2000, 0, std::string(5000, 'p'))});
  EXPECT_EQ(TheLink().counts.protocol.size(), 64u);
}

TEST_F(LinksTest, WorkersAreFoundAgainInAnyOrder) {
  HearAfter(absl::Seconds(1), {CountsOf(9, 30), CountsOf(7, 10), CountsOf(8, 20)});
  HearAfter(absl::Seconds(1),
            {CountsOf(8, 120), CountsOf(6, 5), CountsOf(9, 230), CountsOf(7, 10)});
  EXPECT_THAT(All(), ElementsAre(Pair(6, Pair(5, 5)), Pair(7, Pair(10, 0)), Pair(8, Pair(120, 100)),
                                 Pair(9, Pair(230, 200))));
}

TEST_F(LinksTest, AWholeReportForgetsLinksThatItDoesNotName) {
  HearAfter(absl::Seconds(1), {CountsOf(7, 10), CountsOf(8, 20)});
  HearAfter(absl::Seconds(1), {CountsOf(8, 20)});
  EXPECT_THAT(All(), ElementsAre(Pair(8, Pair(20, 0))));
}

TEST_F(LinksTest, LinksThatChangesDoNotNameStayAsTheyWere) {
  HearAfter(absl::Seconds(1), {CountsOf(7, 10), CountsOf(8, 20)});
  EXPECT_TRUE(HearChangesAfter(absl::Seconds(2), {CountsOf(8, 30)}));
  EXPECT_THAT(All(), ElementsAre(Pair(7, Pair(10, 0)), Pair(8, Pair(30, 5))));
  EXPECT_TRUE(HearChangesAfter(absl::Seconds(2), {CountsOf(7, 14)}));
  EXPECT_THAT(All(), ElementsAre(Pair(7, Pair(14, 2)), Pair(8, Pair(30, 0))));
  EXPECT_TRUE(HearChangesAfter(absl::Seconds(2), {}));
  EXPECT_THAT(All(), ElementsAre(Pair(7, Pair(14, 0)), Pair(8, Pair(30, 0))));
}

TEST_F(LinksTest, GoneLinksAreForgottenAndMayBeginAgain) {
  HearAfter(absl::Seconds(1), {CountsOf(7, 10), CountsOf(8, 20)});
  EXPECT_TRUE(HearChangesAfter(absl::Seconds(1), {CountsOf(8, 3)}, {WorkerId(7), WorkerId(8)}));
  EXPECT_THAT(All(), ElementsAre(Pair(8, Pair(3, 3))));
}

TEST_F(LinksTest, AStreamBeginsWithAWholeReport) {
  EXPECT_FALSE(HearChangesAfter(absl::Seconds(1), {CountsOf(7, 10)}));
  EXPECT_THAT(All(), IsEmpty());
  HearAfter(absl::Seconds(1), {CountsOf(7, 10)});
  Begin();
  EXPECT_FALSE(HearChangesAfter(absl::Seconds(1), {CountsOf(7, 20)}));
  EXPECT_THAT(All(), ElementsAre(Pair(7, Pair(10, 0))));
  HearAfter(absl::Seconds(1), {CountsOf(7, 30)});
  EXPECT_THAT(All(), ElementsAre(Pair(7, Pair(30, 10))));
}

TEST_F(LinksTest, AnEarlierStreamChangesNothing) {
  Begin();
  HearAfter(absl::Seconds(1), {CountsOf(7, 10)});
  EXPECT_FALSE(Hear({.links = {CountsOf(7, 5)}}, stream_ - 1));
  links_.Forget(kSession);
  EXPECT_FALSE(Hear({.links = {CountsOf(7, 20)}}, stream_));
  EXPECT_THAT(All(), IsEmpty());
}

// Clients choose the numbers.
TEST_F(LinksTest, HaveABound) {
  HearAfter(absl::Seconds(1), {});
  for (uint64_t worker = 1; worker <= 20'000; ++worker)
    EXPECT_TRUE(HearChangesAfter(absl::Seconds(1), {CountsOf(worker, 1)}));
  EXPECT_EQ(links_.NumOf(kSession), 16'384u);
  EXPECT_TRUE(links_.Has(kSession, WorkerId(1)));
  EXPECT_FALSE(links_.Has(kSession, WorkerId(20'000)));
}

TEST_F(LinksTest, RatesAreSinceTheHeartbeatBefore) {
  HearAfter(absl::Seconds(1), {Counts(10, 1000)});
  EXPECT_EQ(TheLink().elements_per_s, 0);  // no earlier count to compare with
  HearAfter(absl::Seconds(2), {Counts(110, 5000)});
  EXPECT_EQ(TheLink().elements_per_s, 50);
  EXPECT_EQ(TheLink().bytes_per_s, 2000);
  HearAfter(absl::Seconds(2), {Counts(110, 5000)});
  EXPECT_EQ(TheLink().elements_per_s, 0);
}

TEST_F(LinksTest, ALinkThatIsNewSinceTheHeartbeatBeforeBeganAtNothing) {
  HearAfter(absl::Seconds(1), {});
  HearAfter(absl::Seconds(2), {Counts(10, 1000)});
  EXPECT_EQ(TheLink().elements_per_s, 5);
}

TEST_F(LinksTest, AnotherIncarnationStartsFromZero) {
  HearAfter(absl::Seconds(1), {Counts(10, 1000)});
  Begin(2);
  HearAfter(absl::Seconds(1), {Counts(4, 400)});
  EXPECT_EQ(TheLink().counts.elements, 4);
  EXPECT_EQ(TheLink().elements_per_s, 0);
}

TEST_F(LinksTest, TheMetricsSumIncreasesByProtocol) {
  HearAfter(absl::Seconds(1), {Counts(10, 1000, "swift")});
  HearAfter(absl::Seconds(1), {Counts(15, 1500, "swift")});
  HearAfter(absl::Seconds(1), {Counts(17, 1700, "slow")});  // the count fell
  HearAfter(absl::Seconds(1), {Counts(1, 100, "slow")});    // counts cannot fall
  Begin();                                                  // the same session on another stream
  HearAfter(absl::Seconds(1), {Counts(1, 100, "slow")});
  Begin(2);
  HearAfter(absl::Seconds(1), {Counts(5, 500, "slow")});
  EXPECT_EQ(Total("penstock_link_elements_total", "swift"), 15);
  EXPECT_EQ(Total("penstock_link_bytes_total", "swift"), 1500);
  EXPECT_EQ(Total("penstock_link_elements_total", "slow"), 7);
  EXPECT_EQ(Total("penstock_link_bytes_total", "slow"), 700);
}

}  // namespace
}  // namespace penstock::control
