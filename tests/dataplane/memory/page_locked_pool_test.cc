// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/device/page_locked_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/dataplane/memory/fake_device.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class PageLockedPoolTest : public testing::Test {
 protected:
  MemoryKind KindOf(Loan& loan) { return device_.KindOf(loan.bytes().data()).value(); }

  FakeDevice device_;
  std::shared_ptr<CapturedEvents> events_ = CapturedEvents::Make();
  PageLocking locking_{PageLockMode::kAuto, device_, events_};
};

TEST_F(PageLockedPoolTest, SlotsAreWhereADeviceReadsByItself) {
  {
    const std::shared_ptr<Pool> pool = MakePageLockedPool(locking_);
    for (const size_t bytes : {size_t{100}, size_t{100} << 10, size_t{300} << 20}) {
      Loan loan = pool->Lend(bytes).value();
      EXPECT_EQ(KindOf(loan), MemoryKind::kPageLocked) << bytes;
    }
    EXPECT_EQ(pool->counters().registrations, 3);
    for (int i = 0; i < 50; ++i) pool->Lend(100 << 10).value();  // used again
    EXPECT_EQ(pool->counters().registrations, 3);
  }
  EXPECT_EQ(device_.page_locked_bytes(), 0);
  EXPECT_THAT(device_.Misuses(), IsEmpty());
  EXPECT_THAT(events_->All(), IsEmpty());
}

TEST_F(PageLockedPoolTest, ARefusedSegmentIsLentUnlockedWithTheReason) {
  ASSERT_TRUE(locking_.on());
  const std::shared_ptr<Pool> pool = MakePageLockedPool(locking_);
  device_.FailNext(FakeDevice::Call::kPageLock, absl::ResourceExhaustedError("no more to lock"));
  Loan refused = pool->Lend(1 << 20).value();
  EXPECT_EQ(KindOf(refused), MemoryKind::kHost);
  refused.bytes()[0] = std::byte{1};
  Loan other = pool->Lend(2 << 20).value();  // in another segment
  EXPECT_EQ(KindOf(other), MemoryKind::kPageLocked);
  EXPECT_EQ(pool->counters().registrations, 1);
  ASSERT_THAT(events_->All(), SizeIs(1));
  EXPECT_THAT(events_->All()[0].field("reason"), HasSubstr("no more to lock"));
}

}  // namespace
}  // namespace penstock
