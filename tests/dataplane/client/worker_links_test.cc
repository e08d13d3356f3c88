// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session/worker_links.h"

#include <string>
#include <vector>

#include "control/sync/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(10);

class NoReaderEvents final : public ReaderEvents {
 public:
  void OnLinkOpen(WorkerId) override {}
  void OnElements(WorkerId, absl::Span<Element>) override {}
  void OnElementError(WorkerId, const Identity&, const absl::Status&) override {}
  void OnRecalled(WorkerId, int64_t) override {}
  void OnLinkClosed(WorkerId, const absl::Status&) override {}
};

// Two workers that cannot be dialled.
class WorkerLinksTest : public testing::Test {
 protected:
  WorkerLinksTest() {
    options_.distribute.timeout = kTimeout;
    const absl::StatusOr<std::vector<WorkerId>> altered =
        membership_.Apply({.version = 1,
                           .partitions = {{PartitionId(1), Placement(1), WorkerId(1)},
                                          {PartitionId(2), Placement(1), WorkerId(2)}},
                           .workers = {{.worker = WorkerId(1), .address = "w:1"},
                                       {.worker = WorkerId(2), .address = "w:2"}}});
    EXPECT_TRUE(altered.ok()) << altered.status();
    links_.OnMembership(membership_, *altered, TargetWorkers::kAny, events_);
  }
  void DialAfter(absl::Duration time) {
    absl::Time wake = absl::InfiniteFuture();
    const auto dial = links_.NextToDial(control::Welcome(), begin_ + time, wake);
    ASSERT_TRUE(dial.has_value());
    links_.OnDialled(dial->reader->worker().worker, absl::UnavailableError("refused"));
  }
  // Returns the error of Next() if it waits after this time; empty if it waits on.
  std::string ErrorAfter(absl::Duration time) {
    absl::Time wake = absl::InfiniteFuture();
    if (!links_.CheckReach(begin_ + time, "d:1", wake)) {
      wake_ = wake - begin_;
      return "";
    }
    return std::string(links_.TakeError().message());
  }

  const absl::Time begin_ = BootTime();
  SessionOptions options_;
  CreditManager credits_{8, 0};
  NoReaderEvents events_;
  control::MembershipView membership_;
  WorkerLinks links_{options_, credits_};
  absl::Duration wake_;  // when the reach must be checked again
};

TEST_F(WorkerLinksTest, WorkersOutOfReachAreAnErrorAfterEachWholeTimeout) {
  DialAfter(absl::ZeroDuration());
  DialAfter(absl::Seconds(1));
  EXPECT_EQ(ErrorAfter(kTimeout - absl::Milliseconds(1)), "");
  EXPECT_EQ(wake_, kTimeout);
  EXPECT_THAT(ErrorAfter(kTimeout), HasSubstr("worker w:1 was out of reach for 10s: refused"));
  EXPECT_EQ(ErrorAfter(kTimeout + absl::Seconds(1)), "") << "of the other worker";
  EXPECT_EQ(ErrorAfter(2 * kTimeout - absl::Milliseconds(1)), "");
  EXPECT_EQ(wake_, 2 * kTimeout);
  EXPECT_THAT(ErrorAfter(2 * kTimeout), HasSubstr("was out of reach for 10s: refused"));
}

}  // namespace
}  // namespace penstock::client
