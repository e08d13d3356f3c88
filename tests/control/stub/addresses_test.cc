// SPDX-License-Identifier: Apache-2.0
#include "control/stub/addresses.h"

#include "control/stub/retry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const absl::Status kRefused = absl::UnavailableError("connection refused");

Life LifeInTerm(uint64_t term, uint64_t journal = 7) {
  return {.journal = journal, .id = 100 + term, .term = Term(term)};
}

TEST(Addresses, ARoundTriesAllBeforeItPauses) {
  Addresses addresses({"a:1", "b:1", "c:1"});
  EXPECT_EQ(addresses.text(), "a:1,b:1,c:1");
  AddressRound round(addresses);
  EXPECT_EQ(round.address(), "a:1");
  EXPECT_FALSE(round.Failed(kRefused));
  EXPECT_EQ(round.address(), "b:1");
  EXPECT_FALSE(round.Failed(absl::DeadlineExceededError("silent")));
  EXPECT_EQ(round.Reasons(), "a:1: connection refused; b:1: silent");
  EXPECT_EQ(round.address(), "c:1");
  EXPECT_TRUE(round.Failed(kRefused));
  EXPECT_EQ(round.address(), "a:1");
}

TEST(Addresses, TheOneThatAnsweredLastIsFirstForAllCallers) {
  Addresses addresses({"a:1", "b:1", "c:1"});
  AddressRound round(addresses);
  round.Failed(kRefused);
  round.Answered();
  EXPECT_EQ(addresses.first(), 1u);
  AddressRound other(addresses);
  EXPECT_EQ(other.address(), "b:1");
  EXPECT_FALSE(other.Failed(kRefused));
  EXPECT_EQ(other.address(), "c:1");
  EXPECT_FALSE(other.Failed(kRefused));
  EXPECT_EQ(other.address(), "a:1");
  other.Answered();
  EXPECT_EQ(round.address(), "b:1") << "a round keeps its own place";
  EXPECT_FALSE(round.Failed(kRefused)) << "and tries all addresses once more";
}

TEST(Addresses, WhoeverIsThereButCannotAnswerYetIsNotLeft) {
  Addresses addresses({"a:1", "b:1"});
  AddressRound round(addresses);
  EXPECT_TRUE(round.Failed(absl::AbortedError("the job waits for its first worker")));
  EXPECT_EQ(round.address(), "a:1");
  EXPECT_TRUE(round.Failed(absl::UnavailableError(
      "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:5050: Peer name a "
      "is not in peer certificate")));
  EXPECT_EQ(round.address(), "a:1");
}

TEST(Addresses, OneAddressIsAlwaysTheNext) {
  Addresses addresses({"a:1"});
  AddressRound round(addresses);
  EXPECT_TRUE(round.Failed(kRefused));
  EXPECT_EQ(round.address(), "a:1");
  EXPECT_EQ(round.Reasons(), "connection refused");
}

TEST(Addresses, AReplacedDispatcherIsNotAccepted) {
  Addresses addresses({"a:1", "b:1"});
  EXPECT_TRUE(addresses.Accept(Life()).ok()) << "nothing was heard";
  EXPECT_TRUE(addresses.Accept(LifeInTerm(4)).ok());
  EXPECT_TRUE(addresses.Accept(LifeInTerm(5)).ok());
  EXPECT_TRUE(addresses.Accept(LifeInTerm(5)).ok());
  const absl::Status replaced = addresses.Accept(LifeInTerm(4));
  EXPECT_TRUE(absl::IsUnavailable(replaced)) << replaced;
  EXPECT_THAT(std::string(replaced.message()), AllOf(HasSubstr("in term 4"), HasSubstr("term 5")));
  EXPECT_TRUE(addresses.Accept(LifeInTerm(1, 8)).ok()) << "terms of another journal say nothing";
}

TEST(Addresses, WithOneAddressTheDispatcherItselfSaysThatItIsOlder) {
  Addresses addresses({"a:1"});
  EXPECT_TRUE(addresses.Accept(LifeInTerm(5)).ok());
  EXPECT_TRUE(addresses.Accept(LifeInTerm(4)).ok());
}

// --- Calls --------------------------------------------------------------------------

TEST(Retry, FindsTheLeaderWithoutAPause) {
  Addresses addresses({"a:1", "b:1", "c:1"});
  std::vector<std::string> tried;
  const auto at_c = [&](const std::string& address, absl::Duration, const std::stop_token&) {
    tried.push_back(address);
    return address == "c:1" ? absl::OkStatus() : kRefused;
  };
  EXPECT_TRUE(Retry(addresses, {}, {}, at_c).ok());
  EXPECT_THAT(tried, ElementsAre("a:1", "b:1", "c:1"));
  tried.clear();
  EXPECT_TRUE(Retry(addresses, {}, {}, at_c).ok());
  EXPECT_THAT(tried, ElementsAre("c:1"));
}

TEST(Retry, AnErrorListsEachAddressWithItsReason) {
  Addresses addresses({"a:1", "b:1"});
  int tries = 0;
  const absl::Status status =
      Retry(addresses, {.timeout = absl::Milliseconds(300)}, {},
            [&](const std::string& address, absl::Duration, const std::stop_token&) {
              ++tries;
              return absl::UnavailableError(address == "a:1" ? "refused" : "no such host");
            });
  ASSERT_GE(tries, 2);
  EXPECT_EQ(status, absl::UnavailableError("no dispatcher answers at a:1,b:1 within 300ms: a:1: "
                                           "refused; b:1: no such host"));
}

TEST(Retry, TheReasonBeforeTheDeadlineIsKept) {
  Addresses addresses({"a:1", "b:1"});
  bool refused = false;
  const auto once = [&](const std::string& address, absl::Duration, const std::stop_token&) {
    if (address == "b:1" || std::exchange(refused, true))
      return absl::DeadlineExceededError("Deadline Exceeded");
    return absl::UnavailableError("refused");
  };
  EXPECT_EQ(Retry(addresses, {.timeout = absl::Milliseconds(100)}, {}, once),
            absl::UnavailableError("no dispatcher answers at a:1,b:1 within 100ms: a:1: refused; "
                                   "b:1: Deadline Exceeded"));
}

}  // namespace
}  // namespace penstock::control
