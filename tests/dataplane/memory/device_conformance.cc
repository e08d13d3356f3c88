// SPDX-License-Identifier: Apache-2.0
#include "tests/dataplane/memory/device_conformance.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "absl/types/span.h"

namespace penstock {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kBytes = size_t{1} << 20;

std::vector<std::byte> Pattern(size_t bytes, int seed) {
  std::vector<std::byte> pattern(bytes);
  for (size_t i = 0; i < bytes; ++i) pattern[i] = std::byte(i * 7 + i / 251 + seed);
  return pattern;
}

// Whole pages, as in segments.
struct Pages {
  explicit Pages(size_t bytes) : memory(std::aligned_alloc(kPage, bytes)), bytes(bytes) {
    std::memset(memory, 0, bytes);
  }
  ~Pages() { std::free(memory); }
  absl::Span<std::byte> span() { return {static_cast<std::byte*>(memory), bytes}; }

  void* memory;
  size_t bytes;
};

// Memory, a stream and an event, which nearly every test needs.
struct Lane {
  explicit Lane(DeviceBackend& device, size_t bytes = kBytes)
      : memory(device.Allocate(0, bytes).value()),
        stream(device.MakeStream(0).value()),
        event(device.MakeEvent(0).value()) {}

  // Returns the contents of the device memory.
  std::vector<std::byte> Read(size_t bytes) {
    std::vector<std::byte> read(bytes);
    EXPECT_TRUE(stream->CopyToHost(read.data(), memory->address(), bytes).ok());
    EXPECT_TRUE(stream->Record(*event).ok());
    EXPECT_TRUE(event->Wait().ok());
    return read;
  }

  std::unique_ptr<DeviceMemory> memory;
  std::unique_ptr<DeviceStream> stream;
  std::unique_ptr<DeviceEvent> event;
};

}  // namespace

bool DeviceRequired() {
  return std::getenv("PENSTOCK_REQUIRE_GPU") != nullptr;
}

void DeviceConformance::SetUp() {
  backend_ = GetParam()();
  if (backend_ != nullptr) return;
  if (DeviceRequired()) FAIL() << DescribeDevices(LinkedDeviceBackend());
  GTEST_SKIP() << DescribeDevices(LinkedDeviceBackend());
}

TEST_P(DeviceConformance, DescribesEachDeviceAndNoOther) {
  const int count = device().Count().value();
  ASSERT_GE(count, 1);
  for (int i = 0; i < count; ++i) {
    const DeviceInfo info = device().Describe(i).value();
    EXPECT_FALSE(info.name.empty());
    EXPECT_GT(info.memory_bytes, 0);
  }
  for (const int other : {-1, count}) {
    EXPECT_TRUE(absl::IsNotFound(device().Describe(other).status()));
    EXPECT_TRUE(absl::IsNotFound(device().Allocate(other, 64).status()));
    EXPECT_TRUE(absl::IsNotFound(device().MakeStream(other).status()));
    EXPECT_TRUE(absl::IsNotFound(device().MakeEvent(other).status()));
  }
}

TEST_P(DeviceConformance, TellsKindsOfMemoryApart) {
  Pages pages(4 * kPage);
  const auto memory = device().Allocate(0, kPage).value();
  EXPECT_EQ(device().KindOf(memory->address()).value(), MemoryKind::kDevice);
  EXPECT_EQ(device().KindOf(pages.memory).value(), MemoryKind::kHost);
  {
    const auto locked = device().page_lock().Register(pages.span()).value();
    EXPECT_EQ(device().KindOf(pages.span().data() + 3 * kPage).value(), MemoryKind::kPageLocked);
  }
  EXPECT_EQ(device().KindOf(pages.memory).value(), MemoryKind::kHost);
}

TEST_P(DeviceConformance, CopiesThereAndBackFromAnyHostMemory) {
  Lane lane(device());
  Pages pages(kBytes);
  const auto locked = device().page_lock().Register(pages.span()).value();
  const std::vector<std::byte> loose = Pattern(kBytes, 1);
  std::memcpy(pages.memory, Pattern(kBytes, 2).data(), kBytes);

  ASSERT_TRUE(lane.stream->CopyToDevice(lane.memory->address(), loose.data(), kBytes).ok());
  EXPECT_EQ(lane.Read(kBytes), loose);
  ASSERT_TRUE(lane.stream->CopyToDevice(lane.memory->address(), pages.memory, kBytes).ok());
  EXPECT_EQ(lane.Read(kBytes), Pattern(kBytes, 2));
}

TEST_P(DeviceConformance, CopiesOddPiecesAndNothing) {
  Lane lane(device());
  const std::vector<std::byte> all = Pattern(kBytes, 3);
  ASSERT_TRUE(lane.stream->CopyToDevice(lane.memory->address(), all.data(), kBytes).ok());
  auto* middle = static_cast<std::byte*>(lane.memory->address()) + 13;
  ASSERT_TRUE(lane.stream->CopyToDevice(middle, all.data() + 7, 1001).ok());
  ASSERT_TRUE(lane.stream->CopyToDevice(middle, all.data(), 0).ok());
  std::vector<std::byte> expected = all;
  std::memcpy(expected.data() + 13, all.data() + 7, 1001);
  EXPECT_EQ(lane.Read(kBytes), expected);
}

TEST_P(DeviceConformance, RefusesACopyOfInvalidMemory) {
  Lane lane(device());
  EXPECT_FALSE(lane.stream->CopyToDevice(nullptr, Pattern(64, 0).data(), 64).ok());
  // The next call does not report that failure.
  const std::vector<std::byte> right = Pattern(64, 4);
  ASSERT_TRUE(lane.stream->CopyToDevice(lane.memory->address(), right.data(), 64).ok());
  EXPECT_EQ(lane.Read(64), right);
}

TEST_P(DeviceConformance, AnEventThatWasNeverRecordedIsDone) {
  const auto event = device().MakeEvent(0).value();
  EXPECT_TRUE(event->Done().value());
  EXPECT_TRUE(event->Wait().ok());
  const auto stream = device().MakeStream(0).value();
  EXPECT_TRUE(stream->WaitFor(*event).ok());
  ASSERT_TRUE(stream->Record(*event).ok());
  EXPECT_TRUE(event->Wait().ok());
}

TEST_P(DeviceConformance, AnEventIsRecordedAgainAndAgain) {
  Lane lane(device());
  for (int round = 0; round < 10; ++round) {
    const std::vector<std::byte> bytes = Pattern(kBytes, round);
    ASSERT_TRUE(lane.stream->CopyToDevice(lane.memory->address(), bytes.data(), kBytes).ok());
    ASSERT_TRUE(lane.stream->Record(*lane.event).ok());
    ASSERT_TRUE(lane.event->Wait().ok());
    EXPECT_TRUE(lane.event->Done().value());
    ASSERT_EQ(lane.Read(kBytes), bytes);
  }
}

TEST_P(DeviceConformance, AStreamWaitsForAnEventOfAnother) {
  Lane copies(device()), reads(device());
  Pages pages(kBytes);
  const auto locked = device().page_lock().Register(pages.span()).value();
  std::vector<std::byte> read(kBytes);
  for (int round = 0; round < 20; ++round) {
    const std::vector<std::byte> bytes = Pattern(kBytes, round);
    std::memcpy(pages.memory, bytes.data(), kBytes);
    ASSERT_TRUE(copies.stream->CopyToDevice(copies.memory->address(), pages.memory, kBytes).ok());
    ASSERT_TRUE(copies.stream->Record(*copies.event).ok());
    ASSERT_TRUE(reads.stream->WaitFor(*copies.event).ok());
    ASSERT_TRUE(reads.stream->CopyToHost(read.data(), copies.memory->address(), kBytes).ok());
    ASSERT_TRUE(reads.stream->Record(*reads.event).ok());
    ASSERT_TRUE(reads.event->Wait().ok());
    ASSERT_EQ(read, bytes) << "round " << round;
  }
}

TEST_P(DeviceConformance, WorksOnAStreamOfAnothers) {
  Lane lane(device());
  const std::vector<std::byte> bytes = Pattern(kBytes, 5);
  {
    const auto wrapped = device().WrapStream(0, lane.stream->native()).value();
    EXPECT_EQ(wrapped->native(), lane.stream->native());
    ASSERT_TRUE(wrapped->CopyToDevice(lane.memory->address(), bytes.data(), kBytes).ok());
  }
  EXPECT_EQ(lane.Read(kBytes), bytes);  // on the same stream, so after the copy
}

TEST_P(DeviceConformance, PageLocksMemoryOnceAtATime) {
  Pages pages(4 * kPage);
  auto locked = device().page_lock().Register(pages.span()).value();
  EXPECT_FALSE(device().page_lock().Register(pages.span()).ok());
  locked.reset();
  EXPECT_TRUE(device().page_lock().Register(pages.span()).ok());
}

TEST_P(DeviceConformance, CountsPageLockedBytes) {
  Pages pages(4 * kPage);
  const RegistrationCounters before = CountRegistrations();
  auto locked = device().page_lock().Register(pages.span()).value();
  EXPECT_EQ(CountRegistrations().made, before.made + 1);
  EXPECT_EQ(CountRegistrations().bytes, before.bytes + static_cast<int64_t>(pages.bytes));
  locked.reset();
  EXPECT_EQ(CountRegistrations().made, before.made + 1);
  EXPECT_EQ(CountRegistrations().bytes, before.bytes);
}

TEST_P(DeviceConformance, ADeviceThatIsFullSaysSoAndGoesOn) {
  EXPECT_TRUE(absl::IsResourceExhausted(device().Allocate(0, size_t{1} << 50).status()));
  Lane lane(device());
  const std::vector<std::byte> bytes = Pattern(64, 6);
  ASSERT_TRUE(lane.stream->CopyToDevice(lane.memory->address(), bytes.data(), 64).ok());
  EXPECT_EQ(lane.Read(64), bytes);
}

TEST_P(DeviceConformance, ServesSeveralThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Lane lane(device());
      for (int round = 0; round < 20; ++round) {
        const std::vector<std::byte> bytes = Pattern(kBytes / 4, t * 100 + round);
        ASSERT_TRUE(
            lane.stream->CopyToDevice(lane.memory->address(), bytes.data(), bytes.size()).ok());
        ASSERT_EQ(lane.Read(bytes.size()), bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace penstock
