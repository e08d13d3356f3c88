// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/monitoring/links.h"

#include "absl/strings/str_cat.h"
#include "control/observe/metrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

using ::testing::IsEmpty;

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

class LinksTest : public testing::Test {
 protected:
  void HearAfter(absl::Duration time, std::vector<LinkCounts> counts, uint64_t incarnation = 1) {
    now_ += time;
    links_.Heard(kSession, Incarnation(incarnation), std::move(counts), now_);
  }
  LinkStatus TheLink() {
    std::vector<LinkStatus> links = links_.Of(kSession);
    EXPECT_EQ(links.size(), 1u);
    return links.empty() ? LinkStatus() : links[0];
  }

  absl::Time now_ = absl::UnixEpoch();
  Links links_;
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
  const auto of = [](uint64_t worker, int64_t elements) {
    LinkCounts counts = Counts(elements, 0);
    counts.worker = WorkerId(worker);
    return counts;
  };
  HearAfter(absl::Seconds(1), {of(9, 30), of(7, 10), of(8, 20)});
  HearAfter(absl::Seconds(1), {of(8, 120), of(6, 5), of(9, 230), of(7, 10)});
  std::vector<std::pair<uint64_t, double>> rates;
  for (const LinkStatus& link : links_.Of(kSession)) {
    rates.emplace_back(link.counts.worker.value(), link.elements_per_s);
  }
  EXPECT_THAT(rates, testing::UnorderedElementsAre(std::pair(6, 5), std::pair(7, 0),
                                                   std::pair(8, 100), std::pair(9, 200)));
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
  HearAfter(absl::Seconds(1), {Counts(4, 400)}, 2);
  EXPECT_EQ(TheLink().counts.elements, 4);
  EXPECT_EQ(TheLink().elements_per_s, 0);
}

TEST_F(LinksTest, TheMetricsSumIncreasesByProtocol) {
  HearAfter(absl::Seconds(1), {Counts(10, 1000, "swift")});
  HearAfter(absl::Seconds(1), {Counts(15, 1500, "swift")});
  HearAfter(absl::Seconds(1), {Counts(17, 1700, "slow")});  // the count fell
  HearAfter(absl::Seconds(1), {Counts(1, 100, "slow")});    // counts cannot fall
  HearAfter(absl::Seconds(1), {Counts(5, 500, "slow")}, 2);
  EXPECT_EQ(Total("penstock_link_elements_total", "swift"), 15);
  EXPECT_EQ(Total("penstock_link_bytes_total", "swift"), 1500);
  EXPECT_EQ(Total("penstock_link_elements_total", "slow"), 7);
  EXPECT_EQ(Total("penstock_link_bytes_total", "slow"), 700);
}

}  // namespace
}  // namespace penstock::control
