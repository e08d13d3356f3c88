// SPDX-License-Identifier: Apache-2.0
// The client's shared segments, page-locked for a device that copies out of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "dataplane/element/block.h"
#include "dataplane/memory/device/device_copy_engine.h"
#include "dataplane/memory/device/page_locking.h"
#include "dataplane/transfer/shm/receive_slots.h"
#include "tests/dataplane/memory/fake_device.h"

namespace penstock::transfer::shm {
namespace {

using testing::Each;
using testing::IsEmpty;

constexpr int64_t kValues = 100'000;

class ShmPageLock : public testing::Test {
 protected:
  ~ShmPageLock() override { EXPECT_THAT(device_.Misuses(), IsEmpty()); }

  static std::shared_ptr<Channel> MakeChannel() {
    return std::make_shared<Channel>(SharedSegment::Create(sizeof(ControlMemory)).value(),
                                     Channel::Side::kClient);
  }
  std::shared_ptr<ReceiveSlots> MakeSlots() {
    return std::make_shared<ReceiveSlots>(MakeChannel(), locking_);
  }

  // Returns what the client's link makes of slot 0 in a new segment, in which every value is
  // `value`.
  static Element Receive(ReceiveSlots& slots, uint8_t value) {
    ReceiveSlots::Arrived arrived = slots.Arrive({.slot = 0, .generation = 0}).value();
    const Spec spec = Dense(kUInt8, {kValues});
    const BlockLayout layout = BlockLayout::OfStatic(spec);
    std::byte* block = arrived.body - layout.head_bytes();
    BlockWriter writer(layout, absl::MakeSpan(block, layout.bytes()), spec);
    std::memset(writer.data(0).data(), value, kValues);
    return Element(std::move(arrived.loan), block, spec);
  }

  FakeDevice device_;
  PageLocking locking_{PageLockMode::kOn, device_, SilentEventLog()};
};

TEST_F(ShmPageLock, ASegmentIsPageLockedOnceAndForAsLongAsItLives) {
  const auto slots = MakeSlots();
  ASSERT_TRUE(locking_.on());
  const int64_t made = CountRegistrations().made;
  const ReceiveSlots::NewSegment segment = slots->Add(kValues, 4).value();
  EXPECT_EQ(CountRegistrations().made, made + 1);
  EXPECT_EQ(device_.page_locked_bytes(), static_cast<int64_t>(segment.layout.bytes()));
  {
    const Element element = Receive(*slots, 1);
    EXPECT_EQ(device_.KindOf(element.tensor(0).raw()).value(), MemoryKind::kPageLocked);
  }
  EXPECT_EQ(CountRegistrations().made, made + 1);
  ASSERT_TRUE(slots->Retire(segment.number).ok());
  EXPECT_EQ(device_.page_locked_bytes(), 0);
}

TEST_F(ShmPageLock, ASegmentThatCannotBePageLockedServesAllTheSame) {
  const auto slots = MakeSlots();
  ASSERT_TRUE(locking_.on());
  device_.FailNext(FakeDevice::Call::kPageLock, absl::ResourceExhaustedError("no more"));
  ASSERT_TRUE(slots->Add(kValues, 4).ok());
  EXPECT_EQ(device_.page_locked_bytes(), 0);
  const Element element = Receive(*slots, 2);
  EXPECT_THAT(element.tensor(0).data<uint8_t>(), Each(2));
}

TEST_F(ShmPageLock, ASlotIsTheWorkersAgainWhenTheDeviceHasReadIt) {
  const auto slots = MakeSlots();
  const uint32_t number = slots->Add(kValues, 1).value().number;
  auto engine = DeviceCopyEngine::Create(device_, {.place_bytes = kValues}).value();
  const DeviceElement element = engine->CopyToDevice(Receive(*slots, 3)).value();
  engine->Progress();
  // The segment cannot be retired, because its only slot is still in use.
  EXPECT_TRUE(absl::IsDataLoss(slots->Retire(number)));
  device_.Run();
  engine->Progress();
  EXPECT_TRUE(slots->Retire(number).ok());
  EXPECT_EQ(*static_cast<const uint8_t*>(element.tensor(0).raw()), 3);
}

TEST_F(ShmPageLock, ALinkThatEndsLeavesItsMemoryToTheCopiesUnderWay) {
  auto slots = MakeSlots();
  ASSERT_TRUE(slots->Add(kValues, 2).ok());
  auto engine = DeviceCopyEngine::Create(device_, {.place_bytes = kValues}).value();
  const DeviceElement element = engine->CopyToDevice(Receive(*slots, 4)).value();
  slots->Close();
  slots.reset();
  EXPECT_GT(device_.page_locked_bytes(), 0);
  device_.Run();
  engine->Progress();
  EXPECT_EQ(device_.page_locked_bytes(), 0);
  EXPECT_EQ(*static_cast<const uint8_t*>(element.tensor(0).raw()), 4);
}

}  // namespace
}  // namespace penstock::transfer::shm
