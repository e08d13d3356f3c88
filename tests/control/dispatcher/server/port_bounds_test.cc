// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/server/port_bounds.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/observe/count_refused.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

// A stream or call that records how it was ended.
struct User final : PortUser {
  void Refuse(const absl::Status& why) override { refused = why; }
  void Cancel() override { cancelled = true; }
  absl::Time UnreadSince() const override { return unread_since; }

  absl::Status refused;
  bool cancelled = false;
  absl::Time unread_since = absl::InfiniteFuture();
};

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

TEST(PortBounds, RefusesTheOldestOfTooManyStrangers) {
  PortBounds bounds({.unidentified = 2});
  const int64_t before = RefusedSoFar("dispatcher", "too_many");
  User first, second, third, fourth;
  for (User* user : {&first, &second}) EXPECT_TRUE(bounds.AddStream(*user, kStart).ok());
  bounds.Identified(first);  // no longer a stranger
  EXPECT_TRUE(bounds.AddStream(third, kStart).ok());
  EXPECT_TRUE(second.refused.ok());
  EXPECT_TRUE(bounds.AddStream(fourth, kStart).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(second.refused)) << second.refused;
  EXPECT_THAT(second.refused.message(), HasSubstr("more than 2 peers"));
  EXPECT_TRUE(first.refused.ok());
  EXPECT_TRUE(third.refused.ok());
  EXPECT_EQ(RefusedSoFar("dispatcher", "too_many"), before + 1);
}

TEST(PortBounds, RefusesANewStreamAboveTheLimitOfAll) {
  PortBounds bounds({.streams = 2});
  User first, second, third, fourth;
  for (User* user : {&first, &second}) EXPECT_TRUE(bounds.AddStream(*user, kStart).ok());
  const absl::Status full = bounds.AddStream(third, kStart);
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(full.message(), HasSubstr("2 streams"));
  bounds.Remove(third);
  bounds.Remove(first);
  EXPECT_TRUE(bounds.AddStream(fourth, kStart).ok());
}

TEST(PortBounds, AHelloHasADeadline) {
  PortBounds bounds({.hello_timeout = absl::Seconds(10)});
  const int64_t before = RefusedSoFar("dispatcher", "too_late");
  User silent, heard;
  for (User* user : {&silent, &heard}) EXPECT_TRUE(bounds.AddStream(*user, kStart).ok());
  bounds.Identified(heard);
  bounds.Sweep(kStart + absl::Seconds(9));
  EXPECT_TRUE(silent.refused.ok());
  bounds.Sweep(kStart + absl::Seconds(10));
  bounds.Sweep(kStart + absl::Seconds(20));
  EXPECT_TRUE(absl::IsDeadlineExceeded(silent.refused)) << silent.refused;
  EXPECT_TRUE(heard.refused.ok());
  EXPECT_EQ(RefusedSoFar("dispatcher", "too_late"), before + 1);
}

TEST(PortBounds, APeerThatDoesNotReadIsCutOff) {
  PortBounds bounds({.read_timeout = absl::Seconds(60)});
  User stream, call;
  EXPECT_TRUE(bounds.AddStream(stream, kStart).ok());
  bounds.Identified(stream);
  bounds.AddCall(call, kStart);
  stream.unread_since = call.unread_since = kStart;
  bounds.Sweep(kStart + absl::Seconds(59));
  EXPECT_FALSE(stream.cancelled || call.cancelled);
  bounds.Sweep(kStart + absl::Seconds(61));
  EXPECT_TRUE(stream.cancelled && call.cancelled);
}

TEST(PortBounds, CancelsTheOldestOfTooManyCalls) {
  PortBounds bounds({.calls = 2});
  User first, second, third;
  for (User* user : {&first, &second, &third}) bounds.AddCall(*user, kStart);
  EXPECT_TRUE(first.cancelled);
  EXPECT_FALSE(second.cancelled || third.cancelled);
}

TEST(PortBounds, UnreadAnswersHoldBoundedBytes) {
  PortBounds bounds(
      {.call_bytes = 100, .pressed_read_timeout = absl::Seconds(5), .small_answer_bytes = 50});
  User first, second, third;
  for (User* user : {&first, &second, &third}) {
    bounds.AddCall(*user, kStart);
    bounds.Request(*user, 10);
  }
  EXPECT_TRUE(bounds.Answer(first, 60, kStart).ok());
  first.unread_since = kStart;
  const absl::Status full = bounds.Answer(second, 60, kStart + absl::Seconds(1));
  EXPECT_TRUE(absl::IsUnavailable(full)) << full;  // which clients repeat
  EXPECT_THAT(full.message(), HasSubstr("the limit is 100"));
  EXPECT_FALSE(first.cancelled);
  EXPECT_TRUE(bounds.Answer(third, 50, kStart + absl::Seconds(1)).ok());  // it is small
  EXPECT_FALSE(bounds.Answer(second, 60, kStart + absl::Seconds(6)).ok());
  EXPECT_TRUE(first.cancelled);
  bounds.Remove(first);
  bounds.Remove(third);
  EXPECT_TRUE(bounds.Answer(second, 60, kStart + absl::Seconds(6)).ok());
}

TEST(PortBounds, AnObjectOfSeveralAnswersCountsOnce) {
  PortBounds bounds({.read_timeout = absl::Seconds(60),
                     .read_time_per_mib = absl::Seconds(1),
                     .call_bytes = 3 << 20,
                     .small_answer_bytes = 10});
  const SharedObject object{&bounds, 2 << 20, 1 << 20}, other{&object, 2 << 20, 0};
  User first, second, third, fourth;
  for (User* user : {&first, &second, &third, &fourth}) bounds.AddCall(*user, kStart);
  EXPECT_TRUE(bounds.Answer(first, 10, kStart, object).ok());
  EXPECT_TRUE(bounds.Answer(second, 1 << 19, kStart, object).ok());
  EXPECT_FALSE(bounds.Answer(third, 1 << 20, kStart, object).ok());  // for its own bytes
  EXPECT_TRUE(bounds.Answer(third, 10, kStart, object).ok());        // it adds little
  EXPECT_FALSE(bounds.Answer(fourth, 10, kStart, other).ok());
  bounds.Remove(first);
  bounds.Remove(third);
  EXPECT_FALSE(bounds.Answer(fourth, 10, kStart, other).ok());  // `second` keeps the object
  second.unread_since = kStart;
  bounds.Sweep(kStart + absl::Seconds(61));
  EXPECT_FALSE(second.cancelled);  // its peer must read 1.5 MiB
  bounds.Sweep(kStart + absl::Seconds(62));
  EXPECT_TRUE(second.cancelled);
  bounds.Remove(second);
  EXPECT_TRUE(bounds.Answer(fourth, 10, kStart, other).ok());
}

// Three workers that fetch large definitions must not cancel each other for ever.
TEST(PortBounds, ALargeAnswerHasTimeInProportionToItsSize) {
  constexpr size_t kMib = 1 << 20;
  PortBounds bounds({.call_bytes = 100 * kMib, .pressed_read_timeout = absl::Seconds(5)});
  User large, small, late;
  for (User* user : {&large, &small, &late}) bounds.AddCall(*user, kStart);
  EXPECT_TRUE(bounds.Answer(large, 80 * kMib, kStart).ok());
  EXPECT_TRUE(bounds.Answer(small, 1, kStart).ok());
  large.unread_since = small.unread_since = kStart;
  const absl::Status full = bounds.Answer(late, 80 * kMib, kStart + absl::Seconds(10));
  EXPECT_TRUE(absl::IsUnavailable(full)) << full;
  EXPECT_TRUE(small.cancelled);
  EXPECT_FALSE(large.cancelled);
  bounds.Sweep(kStart + absl::Seconds(139));
  EXPECT_FALSE(large.cancelled);
  bounds.Sweep(kStart + absl::Seconds(141));
  EXPECT_TRUE(large.cancelled);
}

}  // namespace
}  // namespace penstock::control
