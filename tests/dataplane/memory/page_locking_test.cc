// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/device/page_locking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "dataplane/memory/shared_segment.h"
#include "tests/dataplane/memory/fake_device.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr size_t kSegmentBytes = 16 * kPageBytes;

class PageLockingTest : public testing::Test {
 protected:
  FakeDevice device_;
  FakeDevice none_{0};
  std::shared_ptr<CapturedEvents> events_ = CapturedEvents::Make();
  SharedSegment segment_ = SharedSegment::Create(kSegmentBytes).value();
};

TEST_F(PageLockingTest, ADeviceGetsSegmentsPageLockedForAsLongAsTheyAreRegistered) {
  PageLocking locking(PageLockMode::kAuto, device_, events_);
  EXPECT_EQ(locking.state(), "on");
  auto locked = locking.Lock(segment_.memory());
  ASSERT_NE(locked, nullptr);
  EXPECT_EQ(device_.page_locked_bytes(), static_cast<int64_t>(kSegmentBytes));
  locked.reset();
  EXPECT_EQ(device_.page_locked_bytes(), 0);
  EXPECT_THAT(events_->All(), IsEmpty());
}

TEST_F(PageLockingTest, WithoutADeviceAutoIsSilentlyOff) {
  PageLocking locking(PageLockMode::kAuto, none_, events_);
  locking.UseDevice(0);
  EXPECT_EQ(locking.Lock(segment_.memory()), nullptr);
  EXPECT_THAT(locking.state(), StartsWith("off: no GPU"));
  EXPECT_THAT(events_->All(), IsEmpty());
}

TEST_F(PageLockingTest, WithoutADeviceOnSaysOnceWhyItCannotBe) {
  PageLocking locking(PageLockMode::kOn, none_, events_);
  EXPECT_EQ(locking.Lock(segment_.memory()), nullptr);
  EXPECT_EQ(locking.Lock(segment_.memory()), nullptr);
  ASSERT_THAT(events_->All(), SizeIs(1));
  EXPECT_EQ(events_->All()[0].name, "page_lock_refused");
  EXPECT_THAT(events_->All()[0].field("reason"), HasSubstr("no GPU"));
}

TEST_F(PageLockingTest, OffLocksNothingThoughThereIsADevice) {
  PageLocking locking(PageLockMode::kOff, device_, events_);
  EXPECT_EQ(locking.Lock(segment_.memory()), nullptr);
  EXPECT_EQ(device_.page_locked_bytes(), 0);
  EXPECT_THAT(locking.state(), StartsWith("off: "));
  EXPECT_THAT(events_->All(), IsEmpty());
}

TEST_F(PageLockingTest, AFailedFirstTryIsReportedUnderAutoToo) {
  device_.FailNext(FakeDevice::Call::kPageLock, absl::ResourceExhaustedError("no memory to lock"));
  PageLocking locking(PageLockMode::kAuto, device_, events_);
  EXPECT_EQ(locking.Lock(segment_.memory()), nullptr);
  ASSERT_THAT(events_->All(), SizeIs(1));
  EXPECT_THAT(events_->All()[0].field("reason"), HasSubstr("no memory to lock"));
}

TEST_F(PageLockingTest, ARefusedSegmentIsReportedOnceAndOthersAreTried) {
  PageLocking locking(PageLockMode::kAuto, device_, events_);
  ASSERT_TRUE(locking.on());
  for (int i = 0; i < 2; ++i) {
    device_.FailNext(FakeDevice::Call::kPageLock, absl::ResourceExhaustedError("too much"));
    EXPECT_EQ(locking.Lock(segment_.memory()), nullptr);
  }
  ASSERT_THAT(events_->All(), SizeIs(1));
  EXPECT_THAT(events_->All()[0].field("reason"), HasSubstr("too much"));
  EXPECT_NE(locking.Lock(segment_.memory()), nullptr);
}

TEST_F(PageLockingTest, MemoryWaitsUntilADeviceIsNamed) {
  device_.SayUnused();
  PageLocking locking(PageLockMode::kAuto, device_, events_);
  const int64_t made = CountRegistrations().made;
  auto waiting = locking.LockOnceInUse(segment_.memory());
  locking.LockOnceInUse(SharedSegment::Create(kPageBytes)->memory()).reset();  // destroyed at once
  EXPECT_EQ(locking.Lock(segment_.memory()), nullptr);
  EXPECT_EQ(locking.state(), "off: this process uses no device yet");
  EXPECT_FALSE(device_.InUse());
  EXPECT_EQ(CountRegistrations().made, made);

  locking.UseDevice(0);
  EXPECT_EQ(locking.state(), "on");
  EXPECT_EQ(device_.page_locked_bytes(), static_cast<int64_t>(kSegmentBytes));
  waiting.reset();
  EXPECT_EQ(device_.page_locked_bytes(), 0);
  EXPECT_THAT(device_.Misuses(), IsEmpty());
  EXPECT_THAT(events_->All(), IsEmpty());
}

TEST_F(PageLockingTest, MemoryWaitsUntilOthersUseADevice) {
  device_.SayUnused();
  PageLocking locking(PageLockMode::kAuto, device_, events_);
  const auto first = locking.LockOnceInUse(segment_.memory());
  const std::unique_ptr<DeviceStream> of_others = device_.MakeStream(0).value();
  const SharedSegment other = SharedSegment::Create(kSegmentBytes).value();
  const auto second = locking.LockOnceInUse(other.memory());
  EXPECT_EQ(device_.page_locked_bytes(), static_cast<int64_t>(2 * kSegmentBytes));
  EXPECT_THAT(device_.Misuses(), IsEmpty());
}

TEST_F(PageLockingTest, OnDoesNotWait) {
  device_.SayUnused();
  PageLocking locking(PageLockMode::kOn, device_, events_);
  const auto locked = locking.LockOnceInUse(segment_.memory());
  EXPECT_EQ(device_.page_locked_bytes(), static_cast<int64_t>(kSegmentBytes));
}

TEST_F(PageLockingTest, WaitingMemoryIsDroppedWithoutADevice) {
  PageLocking locking(PageLockMode::kAuto, none_, events_);
  auto waiting = locking.LockOnceInUse(segment_.memory());
  locking.UseDevice(0);
  EXPECT_THAT(locking.state(), StartsWith("off: no GPU"));
  waiting.reset();
  EXPECT_THAT(events_->All(), IsEmpty());
}

TEST(PageLockMode, IsOneOfThreeWords) {
  EXPECT_EQ(ParsePageLockMode("auto").value(), PageLockMode::kAuto);
  EXPECT_EQ(ParsePageLockMode("on").value(), PageLockMode::kOn);
  EXPECT_EQ(ParsePageLockMode("off").value(), PageLockMode::kOff);
  for (const char* wrong : {"", "On", "yes", "1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParsePageLockMode(wrong).status())) << wrong;
  }
}

}  // namespace
}  // namespace penstock
