// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::transfer {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// A protocol that exists; reachable where the address says so.
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
  auto choice = Negotiate("auto", {}, {{"slow", "near", ""}, {"swift", "near", ""}}, "w1");
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_EQ(choice->offer.protocol, "swift");
  EXPECT_EQ(choice->transport->name(), "swift");
}

TEST_F(NegotiationTest, AutoSaysWhyItDidNotTakeABetterOne) {
  auto choice = Negotiate("", {}, {{"slow", "near", ""}, {"swift", "far", ""}}, "w1");
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_EQ(choice->offer.protocol, "slow");
  EXPECT_THAT(choice->reason, HasSubstr("swift is not possible (too far for swift)"));
}

TEST_F(NegotiationTest, ANamedProtocolIsNotReplaced) {
  auto choice = Negotiate("swift", {}, {{"slow", "near", ""}, {"swift", "far", ""}}, "w1");
  EXPECT_EQ(
      choice.status(),
      absl::NotFoundError("Protocol 'swift' is not available for worker 'w1': too far for swift"));
}

TEST_F(NegotiationTest, ANamedProtocolThatTheWorkerDoesNotOfferNamesWhatItDoes) {
  auto choice = Negotiate("swift", {}, {{"slow", "near", ""}}, "w1");
  EXPECT_EQ(choice.status(),
            absl::NotFoundError(
                "Protocol 'swift' is not available for worker 'w1': the worker offers slow"));
}

TEST_F(NegotiationTest, AFallbackIsTakenAndTheReasonKept) {
  auto choice = Negotiate("swift", {"slow"}, {{"slow", "near", ""}, {"swift", "far", ""}}, "w1");
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_EQ(choice->offer.protocol, "slow");
  EXPECT_THAT(choice->reason, HasSubstr("too far for swift"));
}

TEST_F(NegotiationTest, NothingInCommonNamesEveryReason) {
  auto choice = Negotiate("auto", {}, {{"slow", "far", ""}, {"swift", "far", ""}}, "w1");
  EXPECT_EQ(choice.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(choice.status().message()),
              testing::AllOf(HasSubstr("'w1'"), HasSubstr("too far for swift"),
                             HasSubstr("too far for slow")));
}

TEST_F(NegotiationTest, AnUnknownProtocolListsTheKnownOnes) {
  auto choice = Negotiate("pigeon", {}, {{"slow", "near", ""}}, "w1");
  EXPECT_EQ(choice.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(choice.status().message()),
              testing::AllOf(HasSubstr("'pigeon'"), HasSubstr("local"), HasSubstr("swift")));
}

TEST_F(NegotiationTest, ANameIsTakenOnce) {
  EXPECT_EQ(RegisterTransport(std::make_unique<PaperTransport>("slow", 1)).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(TransportNames(), Contains("slow"));
}

}  // namespace
}  // namespace penstock::transfer
