// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/device/device_copy_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include "tests/dataplane/element/sample.h"
#include "tests/dataplane/memory/watched_slots.h"

namespace penstock {
namespace {

using testing::Each;
using testing::IsEmpty;

constexpr int64_t kValues = 1000;

class DeviceCopyEngineTest : public testing::Test {
 protected:
  ~DeviceCopyEngineTest() override {
    EXPECT_THAT(device_.Misuses(), IsEmpty());
    EXPECT_EQ(slots_.too_early(), 0);
  }

  static DeviceCopyEngineOptions Options(int places = 2) {
    return {.places = places, .place_bytes = kValues, .stop_within = absl::ZeroDuration()};
  }
  DeviceElement Copy(uint8_t value) { return engine_->CopyToDevice(slots_.Fill(value)).value(); }

  // Returns the contents of `element`, read on a stream of its own.
  std::vector<uint8_t> Read(DeviceElement& element) {
    const auto stream = device_.MakeStream(0).value();
    const auto event = device_.MakeEvent(0).value();
    std::vector<uint8_t> read(kValues);
    EXPECT_TRUE(element.ReadyOn(*stream).ok());
    EXPECT_TRUE(stream->CopyToHost(read.data(), element.tensor(0).raw(), kValues).ok());
    EXPECT_TRUE(element.ReadBy(*stream).ok());
    EXPECT_TRUE(stream->Record(*event).ok());
    EXPECT_TRUE(event->Wait().ok());
    return read;
  }

  FakeDevice device_;
  WatchedSlots slots_{device_, 8, kValues};
  std::unique_ptr<DeviceCopyEngine> engine_ = DeviceCopyEngine::Create(device_, Options()).value();
};

TEST_F(DeviceCopyEngineTest, TheBodyIsOnTheDeviceAndTheHeadOnTheHost) {
  DeviceElement element = Copy(7);
  EXPECT_EQ(element.size(), 2u);
  EXPECT_EQ(element.tensor(0).dims(), absl::Span<const int64_t>({kValues}));
  EXPECT_EQ(device_.KindOf(element.tensor(0).raw()).value(), MemoryKind::kDevice);
  EXPECT_EQ(element.tensor(1).string(), "element");
  EXPECT_THAT(Read(element), Each(7));
}

TEST_F(DeviceCopyEngineTest, EveryKindOfLeafKeepsItsShape) {
  engine_ = DeviceCopyEngine::Create(device_,
                                     {.place_bytes = 1 << 16, .stop_within = absl::ZeroDuration()})
                .value();
  const Element host = SampleElement();
  const DeviceElement element = engine_->CopyToDevice(host.Share()).value();
  ASSERT_EQ(element.size(), host.size());
  EXPECT_EQ(element.identity(), host.identity());
  device_.Run();
  for (size_t i = 0; i < host.size(); ++i) {
    const Tensor there = element.tensor(i), here = host.tensor(i);
    EXPECT_EQ(there.dtype(), here.dtype());
    EXPECT_EQ(there.kind(), here.kind());
    EXPECT_EQ(there.dims(), here.dims());
    ASSERT_EQ(there.ragged_rank(), here.ragged_rank());
    for (int level = 0; level < here.ragged_rank(); ++level) {
      EXPECT_EQ(there.row_splits(level), here.row_splits(level));
    }
    if (here.kind() == TensorSpec::Kind::kSparse) {
      EXPECT_EQ(there.indices(), here.indices());
    }
    // The fake's memory can be compared, because it is the host's.
    if (here.present() && here.byte_count() > 0) {
      EXPECT_NE(there.raw(), here.raw());
      EXPECT_EQ(std::memcmp(there.raw(), here.raw(), here.byte_count()), 0);
    }
  }
}

TEST_F(DeviceCopyEngineTest, TheSlotGoesBackWhenTheCopyIsDoneAndNotBefore) {
  const DeviceElement element = Copy(1);
  EXPECT_EQ(engine_->Progress(), 1);
  device_.Step(0);  // the copy
  EXPECT_EQ(engine_->Progress(), 1);
  EXPECT_EQ(slots_.lent(), 1);
  device_.Step(0);  // the event after it
  EXPECT_EQ(engine_->Progress(), 0);
  EXPECT_EQ(slots_.lent(), 0);
}

TEST_F(DeviceCopyEngineTest, TheSlotStaysForTheCopyAfterTheElementIsReleased) {
  Copy(1);
  EXPECT_EQ(engine_->Progress(), 1);
  EXPECT_EQ(engine_->counters().places_in_use, 1);
  device_.Run();
  EXPECT_EQ(engine_->Progress(), 0);
  EXPECT_EQ(engine_->counters().places_in_use, 0);
}

TEST_F(DeviceCopyEngineTest, APlaceIsFreeWhenItsReadersAreDone) {
  const auto fast = device_.MakeStream(0).value(), slow = device_.MakeStream(0).value();
  engine_ = DeviceCopyEngine::Create(device_, Options(1)).value();
  DeviceElement element = Copy(1);
  device_.Run();
  ASSERT_TRUE(element.ReadyOn(*fast).ok());
  ASSERT_TRUE(element.ReadBy(*fast).ok());
  device_.Run();
  ASSERT_TRUE(element.ReadyOn(*slow).ok());
  ASSERT_TRUE(element.ReadBy(*slow).ok());
  element = DeviceElement();
  EXPECT_TRUE(absl::IsResourceExhausted(engine_->CopyToDevice(slots_.Fill(2)).status()));
  EXPECT_EQ(slots_.lent(), 0);  // the refused element's slot too
  device_.Run();
  element = Copy(3);
  EXPECT_THAT(Read(element), Each(3));
}

TEST_F(DeviceCopyEngineTest, AReaderWaitsForTheBody) {
  DeviceElement element = Copy(9);
  const auto stream = device_.MakeStream(0).value();
  std::vector<uint8_t> read(kValues);
  ASSERT_TRUE(element.ReadyOn(*stream).ok());
  ASSERT_TRUE(stream->CopyToHost(read.data(), element.tensor(0).raw(), kValues).ok());
  ASSERT_TRUE(element.ReadBy(*stream).ok());
  EXPECT_EQ(device_.Ready(), 1u);  // only the copy: the reader comes after it
  device_.Run();
  EXPECT_THAT(read, Each(9));
}

TEST_F(DeviceCopyEngineTest, ABodyTooLargeForAPlaceIsRefusedInWords) {
  WatchedSlots large(device_, 1, 2 * kValues);
  const absl::Status status = engine_->CopyToDevice(large.Fill(1)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("place_bytes"));
  EXPECT_EQ(large.lent(), 0);
}

TEST_F(DeviceCopyEngineTest, NoPlaceOrNoBytesIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(DeviceCopyEngine::Create(device_, Options(0)).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(DeviceCopyEngine::Create(device_, {.place_bytes = 0}).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(
      DeviceCopyEngine::Create(device_, {.place_bytes = FakeDevice::kMemoryBytes}).status()));
}

TEST_F(DeviceCopyEngineTest, ACopyThatIsRefusedMayHaveBegunSoItsSlotWaits) {
  device_.FailNext(FakeDevice::Call::kCopy, absl::InternalError("of earlier work"));
  EXPECT_TRUE(absl::IsInternal(engine_->CopyToDevice(slots_.Fill(1)).status()));
  EXPECT_EQ(slots_.lent(), 1);
  device_.Run();
  EXPECT_EQ(engine_->Progress(), 0);
  EXPECT_EQ(slots_.lent(), 0);
  DeviceElement element = Copy(2);
  EXPECT_THAT(Read(element), Each(2));
}

TEST_F(DeviceCopyEngineTest, AnEventThatIsRefusedIsRecordedLater) {
  device_.FailNext(FakeDevice::Call::kRecord, absl::InternalError("not now"));
  EXPECT_TRUE(absl::IsInternal(engine_->CopyToDevice(slots_.Fill(1)).status()));
  device_.Step(0);  // the copy, which is done without an event
  EXPECT_EQ(engine_->Progress(), 1);
  device_.Run();
  EXPECT_EQ(engine_->Progress(), 0);
  EXPECT_EQ(slots_.lent(), 0);
}

TEST_F(DeviceCopyEngineTest, APlaceWhoseReaderIsUnknownIsNotUsedAgain) {
  DeviceElement element = Copy(1);
  const auto stream = device_.MakeStream(0).value();
  device_.FailNext(FakeDevice::Call::kRecord, absl::InternalError("not now"));
  EXPECT_TRUE(absl::IsInternal(element.ReadBy(*stream)));
  element = DeviceElement();
  device_.Run();
  engine_->Progress();
  EXPECT_EQ(engine_->counters().places_in_use, 1);
  EXPECT_EQ(slots_.lent(), 0);
}

TEST_F(DeviceCopyEngineTest, AFailedDeviceKeepsTheSlotsItMayReadAndTakesNoMore) {
  const DeviceElement element = Copy(1);
  device_.Fail(absl::InternalError("the bus is gone"));
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(absl::IsInternal(engine_->CopyToDevice(slots_.Fill(2)).status()));
  }
  EXPECT_EQ(engine_->Progress(), 2);  // the first of the five may have begun
  EXPECT_EQ(slots_.lent(), 2);
  device_.Recover();
  engine_->Progress();
  device_.Run();
  EXPECT_EQ(engine_->Progress(), 0);
  EXPECT_EQ(slots_.lent(), 0);
}

TEST_F(DeviceCopyEngineTest, SlotsOfUnfinishedCopiesReturnAfterTheEnd) {
  Copy(1);
  engine_.reset();
  EXPECT_EQ(slots_.lent(), 1);
  EXPECT_EQ(DeviceCopyEngine::ProgressLeftOver(), 1);
  device_.Run();
  EXPECT_EQ(DeviceCopyEngine::ProgressLeftOver(), 0);
  EXPECT_EQ(slots_.lent(), 0);
}

TEST_F(DeviceCopyEngineTest, AnElementOutlivesItsEngine) {
  DeviceElement element = Copy(5);
  engine_.reset();
  EXPECT_THAT(Read(element), Each(5));
  device_.Run();
  element = DeviceElement();
  EXPECT_EQ(slots_.lent(), 0);
  EXPECT_EQ(DeviceCopyEngine::ProgressLeftOver(), 0);
}

TEST_F(DeviceCopyEngineTest, TheEndWaitsForCopiesThatComeSoon) {
  engine_ = DeviceCopyEngine::Create(device_, {.place_bytes = kValues}).value();
  Copy(1);
  std::thread device([&] { device_.Run(); });
  engine_.reset();
  device.join();
  EXPECT_EQ(slots_.lent(), 0);
}

TEST_F(DeviceCopyEngineTest, ASteadyStateMakesNoEvents) {
  const auto stream = device_.MakeStream(0).value();
  const int64_t made = engine_->counters().events;
  for (int i = 0; i < 100; ++i) {
    DeviceElement element = Copy(static_cast<uint8_t>(i));
    ASSERT_TRUE(element.ReadyOn(*stream).ok());
    ASSERT_TRUE(element.ReadBy(*stream).ok());
    if (i % 2 == 0) device_.Run();
    element = DeviceElement();
    device_.Run();
  }
  EXPECT_EQ(engine_->counters().elements, 100);
  EXPECT_EQ(engine_->counters().events, made);
}

TEST_F(DeviceCopyEngineTest, AReaderOfEveryPlaceNeedsNoNewEvent) {
  engine_ = DeviceCopyEngine::Create(device_, Options(4)).value();
  const auto stream = device_.MakeStream(0).value();
  const int64_t made = engine_->counters().events;
  std::vector<DeviceElement> elements;
  for (uint8_t i = 0; i < 4; ++i) elements.push_back(Copy(i));
  for (DeviceElement& element : elements) ASSERT_TRUE(element.ReadBy(*stream).ok());
  EXPECT_EQ(engine_->counters().events, made);
  device_.Run();
}

// Each query costs a call into the driver. Copies of one stream are done in order, so the oldest
// event answers for all.
TEST_F(DeviceCopyEngineTest, TheDeviceIsAskedFewTimesForEachElement) {
  constexpr int kElements = 100;
  const auto engine = DeviceCopyEngine::Create(device_, Options(/*places=*/8)).value();
  const auto stream = device_.MakeStream(0).value();
  std::deque<DeviceElement> held;
  const int64_t before = device_.queries();
  for (int i = 0; i < kElements; ++i) {
    held.push_back(engine->CopyToDevice(slots_.Fill(static_cast<uint8_t>(i))).value());
    ASSERT_TRUE(held.back().ReadyOn(*stream).ok());
    ASSERT_TRUE(held.back().ReadBy(*stream).ok());
    if (held.size() == 2) held.pop_front();
    if (i % 2 == 1) device_.Run();
  }
  EXPECT_LE(device_.queries() - before, 5 * kElements);
}

// Copies reach all such memory. transfer/ucx/gpu_direct.h asks for the kind of memory that a NIC
// would write to.
TEST_F(DeviceCopyEngineTest, PlacesMayBeOfMemoryThatTheDriverTakesForAnotherKind) {
  device_.SayKind(MemoryKind::kMapped);
  engine_ = DeviceCopyEngine::Create(device_, Options()).value();
  DeviceElement element = Copy(9);
  EXPECT_THAT(Read(element), Each(9));
}

TEST_F(DeviceCopyEngineTest, ReleasingAnElementWaitsForItsReadingStream) {
  const auto stream = device_.MakeStream(0).value();
  DeviceElement element = Copy(7);
  ASSERT_TRUE(element.ReadyOn(stream->native()).ok());
  device_.Run();
  std::vector<uint8_t> read(kValues);
  ASSERT_TRUE(stream->CopyToHost(read.data(), element.tensor(0).raw(), kValues).ok());
  element = DeviceElement();
  engine_->Progress();
  EXPECT_EQ(engine_->counters().places_in_use, 1);  // the stream still reads, without a ReadBy()
  device_.Run();
  engine_->Progress();
  EXPECT_EQ(engine_->counters().places_in_use, 0);
  EXPECT_THAT(read, Each(7));
}

// A thread's default stream is a different one on the thread that releases the element.
TEST_F(DeviceCopyEngineTest, AThreadsOwnStreamIsWaitedForWhicheverThreadReleases) {
  DeviceElement element = Copy(7);
  ASSERT_TRUE(element.ReadyOn(PerThreadDefaultStream()).ok());
  device_.Run();
  std::vector<uint8_t> read(kValues);
  const auto mine = device_.WrapStream(0, PerThreadDefaultStream()).value();
  ASSERT_TRUE(mine->CopyToHost(read.data(), element.tensor(0).raw(), kValues).ok());
  std::thread([&element] { element = DeviceElement(); }).join();

  const auto step_all_but_the_copy = [this] {
    for (const FakeDevice::ReadyWork& work : device_.ListReady()) {
      if (work.to_host) continue;
      device_.StepStream(work.stream);
      return true;
    }
    return false;
  };
  while (step_all_but_the_copy()) {
  }
  EXPECT_EQ(engine_->counters().places_in_use, 1);
  device_.Run();
  EXPECT_EQ(engine_->counters().places_in_use, 0);
  EXPECT_THAT(read, Each(7));
}

}  // namespace
}  // namespace penstock
