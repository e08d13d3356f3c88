// SPDX-License-Identifier: Apache-2.0
// The fake passes the suite of devices, and fails as a test tells it to.
#include "tests/dataplane/memory/fake_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "tests/dataplane/memory/device_conformance.h"

namespace penstock {

INSTANTIATE_TEST_SUITE_P(Fake, DeviceConformance,
                         testing::Values([]() -> std::shared_ptr<DeviceBackend> {
                           return std::make_shared<FakeDevice>(2);
                         }));

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr size_t kLaneBytes = 64;

struct FakeLane {
  explicit FakeLane(FakeDevice& device)
      : memory(device.Allocate(0, kLaneBytes).value()),
        stream(device.MakeStream(0).value()),
        event(device.MakeEvent(0).value()) {}
  // The copy reads the host memory when it is done, not before.
  void Copy(const std::array<std::byte, kLaneBytes>& host) {
    EXPECT_TRUE(stream->CopyToDevice(memory->address(), host.data(), kLaneBytes).ok());
    EXPECT_TRUE(stream->Record(*event).ok());
  }
  std::unique_ptr<DeviceMemory> memory;
  std::unique_ptr<DeviceStream> stream;
  std::unique_ptr<DeviceEvent> event;
};

TEST(FakeDevice, WorksOnlyOnRequest) {
  FakeDevice device;
  FakeLane lane(device);
  std::array<std::byte, kLaneBytes> host{};
  lane.Copy(host);
  EXPECT_FALSE(lane.event->Done().value());
  EXPECT_TRUE(device.Touches(host.data(), 1));
  device.Step(0);
  EXPECT_FALSE(lane.event->Done().value());
  EXPECT_FALSE(device.Touches(host.data(), 1));
  device.Step(0);
  EXPECT_TRUE(lane.event->Done().value());
  EXPECT_EQ(device.Ready(), 0u);
}

TEST(FakeDevice, StreamsGoOnInAnyOrderButForWaits) {
  FakeDevice device;
  FakeLane first(device), second(device);
  std::array<std::byte, kLaneBytes> host{};
  first.Copy(host);
  ASSERT_TRUE(second.stream->WaitFor(*first.event).ok());
  second.Copy(host);
  ASSERT_EQ(device.Ready(), 1u);  // the second waits
  device.Step(0);
  device.Step(0);
  ASSERT_EQ(device.Ready(), 1u);
  device.Run();
  EXPECT_TRUE(second.event->Done().value());

  first.Copy(host);
  second.Copy(host);
  ASSERT_EQ(device.Ready(), 2u);
  device.Step(1);
  device.Step(1);
  EXPECT_TRUE(second.event->Done().value());
  EXPECT_FALSE(first.event->Done().value());
  device.Run();
}

TEST(FakeDevice, AFailureIsEveryonesUntilAReset) {
  FakeDevice device;
  FakeLane lane(device);
  std::array<std::byte, kLaneBytes> host{};
  lane.Copy(host);
  device.Fail(absl::InternalError("the bus is gone"));
  EXPECT_EQ(device.Ready(), 0u);
  EXPECT_TRUE(absl::IsInternal(lane.event->Done().status()));
  EXPECT_TRUE(absl::IsInternal(lane.event->Wait()));
  EXPECT_TRUE(absl::IsInternal(lane.stream->Record(*lane.event)));
  EXPECT_TRUE(absl::IsInternal(device.MakeEvent(0).status()));
  device.Recover();
  EXPECT_TRUE(lane.event->Done().value());
}

TEST(FakeDevice, RecordsMisuses) {
  FakeDevice device;
  std::array<std::byte, kLaneBytes> host{};
  {
    FakeLane lane(device);
    auto locked = device.page_lock().Register(absl::MakeSpan(host)).value();
    lane.Copy(host);
    EXPECT_THAT(device.Misuses(), IsEmpty());
    locked.reset();
    EXPECT_THAT(device.Misuses(), ElementsAre(HasSubstr("let loose")));
    device.Run();
    lane.Copy(host);
    lane.event.reset();
    EXPECT_THAT(device.Misuses(), ElementsAre(HasSubstr("let loose"), HasSubstr("event")));
  }
  EXPECT_THAT(device.Misuses(), testing::SizeIs(3));  // the memory
}

TEST(FakeDevice, PageLockedInPartIsRefused) {
  FakeDevice device;
  FakeLane lane(device);
  std::array<std::byte, kLaneBytes> host{};
  const auto locked =
      device.page_lock().Register(absl::MakeSpan(host).first(kLaneBytes / 2)).value();
  EXPECT_TRUE(absl::IsInvalidArgument(
      lane.stream->CopyToDevice(lane.memory->address(), host.data(), kLaneBytes)));
}

TEST(FakeDevice, FailsTheNextCallOfAKindAndOnlyThat) {
  FakeDevice device;
  FakeLane lane(device);
  device.FailNext(FakeDevice::Call::kRecord, absl::InternalError("once"));
  EXPECT_TRUE(absl::IsInternal(lane.stream->Record(*lane.event)));
  EXPECT_TRUE(lane.stream->Record(*lane.event).ok());
  device.Run();
}

}  // namespace
}  // namespace penstock
