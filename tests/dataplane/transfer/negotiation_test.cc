// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "dataplane/transfer/transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::transfer {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// A protocol that exists, and is reachable if the address says so.
class PaperTransport : public Transport {
 public:
  PaperTransport(std::string name, int rank) : name_(std::move(name)), rank_(rank) {}
  std::string_view name() const override { return name_; }
  int rank() const override { return rank_; }
  absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenOptions&,
                                                   Listener::Accept) override {
    return absl::NotFoundError("paper");
  }
  absl::Status Check(std::string_view address, std::string_view) override {
    if (address == "near") return absl::OkStatus();
    return absl::NotFoundError("too far for " + name_);
  }
  absl::StatusOr<std::unique_ptr<ReceiveLink>> Dial(std::string_view, DialOptions,
                                                    std::shared_ptr<ReceiveEvents>) override {
    return absl::NotFoundError("paper");
  }

 private:
  const std::string name_;
  const int rank_;
};

class NegotiationTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_TRUE(RegisterTransport(std::make_unique<PaperTransport>("swift", 1)).ok());
    ASSERT_TRUE(RegisterTransport(std::make_unique<PaperTransport>("slow", 99)).ok());
  }
};

TEST_F(NegotiationTest, AutoTakesTheBestThatBothCanDo) {
  auto selection = Negotiate({"auto"}, {{"slow", "near", ""}, {"swift", "near", ""}}, "w1");
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_EQ(selection->offer.protocol, "swift");
  EXPECT_EQ(selection->transport->name(), "swift");
}

TEST_F(NegotiationTest, AutoSaysWhyItDidNotTakeABetterOne) {
  auto selection = Negotiate({""}, {{"slow", "near", ""}, {"swift", "far", ""}}, "w1");
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_EQ(selection->offer.protocol, "slow");
  EXPECT_THAT(selection->reason, HasSubstr("swift cannot be used (too far for swift)"));
}

TEST_F(NegotiationTest, ANamedProtocolIsNotReplaced) {
  auto selection = Negotiate({"swift"}, {{"slow", "near", ""}, {"swift", "far", ""}}, "w1");
  EXPECT_EQ(selection.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(selection.status().message()),
              testing::StartsWith(
                  "Protocol 'swift' is not available for worker 'w1': too far for swift; "));
}

TEST_F(NegotiationTest, AProtocolThatIsNotOfferedListsBothSides) {
  auto selection = Negotiate({"swift"}, {{"slow", "near", ""}}, "w1");
  EXPECT_EQ(selection.status(),
            absl::NotFoundError(absl::StrCat(
                "Protocol 'swift' is not available for worker 'w1': the worker does not offer it; "
                "the worker offers slow; this process has ",
                absl::StrJoin(TransportNames(), ", "))));
  EXPECT_THAT(std::string(selection.status().message()), HasSubstr("swift, slow"));
  selection = Negotiate({"auto"}, {}, "w1");
  EXPECT_THAT(std::string(selection.status().message()),
              HasSubstr("the worker offers nothing; this process has "));
}

TEST_F(NegotiationTest, AFallbackIsTakenWithTheReason) {
  auto selection =
      Negotiate({"swift", {"slow"}}, {{"slow", "near", ""}, {"swift", "far", ""}}, "w1");
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_EQ(selection->offer.protocol, "slow");
  EXPECT_THAT(selection->reason, HasSubstr("too far for swift"));
}

TEST_F(NegotiationTest, TheReasonNamesTheSourceOfTheChoice) {
  const std::vector<TransportOffer> offers = {{"slow", "near", ""}, {"swift", "far", ""}};
  auto selection = Negotiate({"slow", {}, "PENSTOCK_DATA_TRANSFER_PROTOCOL"}, offers, "w1");
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_EQ(selection->reason, "slow: PENSTOCK_DATA_TRANSFER_PROTOCOL");
  EXPECT_EQ(selection->instead_of, "");
  selection = Negotiate({"swift", {"slow"}, "penstock.toml:3"}, offers, "w1");
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_EQ(selection->reason, "slow: swift (penstock.toml:3) cannot be used (too far for swift)");
  EXPECT_EQ(selection->instead_of, "swift");
}

TEST_F(NegotiationTest, AutoTakesTheProtocolOfTheWorkersConfig) {
  auto selection = Negotiate({"auto"}, {{"swift", "near", ""}, {"slow", "near", "", 1}}, "w1");
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_EQ(selection->reason, "slow: the worker's data_transfer_protocol");
  selection = Negotiate({"auto"}, {{"swift", "near", "", 3}, {"slow", "near", "", 2}}, "w1");
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_EQ(selection->reason, "slow: the worker's fallback");
}

TEST_F(NegotiationTest, AutoSkipsAnUnusableProtocolOfTheWorkersConfig) {
  auto selection = Negotiate({"auto"}, {{"swift", "near", ""}, {"slow", "far", "", 1}}, "w1");
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_THAT(selection->reason,
              testing::StartsWith("swift: slow cannot be used (too far for slow)"));
  EXPECT_EQ(selection->instead_of, "slow");
}

TEST_F(NegotiationTest, AProtocolThatIsNotInTheBuildIsNotReplacedEither) {
  const std::vector<TransportOffer> offers = {{"slow", "near", ""}};
  auto selection = Negotiate({"pigeon", {"slow"}}, offers, "w1");
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_THAT(selection->reason, HasSubstr("'pigeon' is not in this build"));
  EXPECT_EQ(selection->instead_of, "pigeon");
}

TEST_F(NegotiationTest, NothingInCommonNamesEveryReason) {
  auto selection = Negotiate({"auto"}, {{"slow", "far", ""}, {"swift", "far", ""}}, "w1");
  EXPECT_EQ(selection.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(selection.status().message()),
              testing::AllOf(HasSubstr("'w1'"), HasSubstr("too far for swift"),
                             HasSubstr("too far for slow")));
}

TEST_F(NegotiationTest, AnUnknownProtocolListsTheKnownOnes) {
  auto selection = Negotiate({"pigeon"}, {{"slow", "near", ""}}, "w1");
  EXPECT_EQ(selection.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(
      std::string(selection.status().message()),
      testing::AllOf(HasSubstr("Protocol 'pigeon' is not available for worker 'w1'"),
                     HasSubstr("not in this build"), HasSubstr("local"), HasSubstr("swift")));
}

TEST_F(NegotiationTest, ANameIsRegisteredOnce) {
  EXPECT_EQ(RegisterTransport(std::make_unique<PaperTransport>("slow", 1)).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(TransportNames(), Contains("slow"));
}

}  // namespace
}  // namespace penstock::transfer
