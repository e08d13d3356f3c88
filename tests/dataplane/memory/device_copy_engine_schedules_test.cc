// SPDX-License-Identifier: Apache-2.0
// Random schedules of copies, readers, completions, failures and ends. A slot is never
// free, and a place on the device never written, while the device may still read it; the
// host never waits; and at the end all slots and places are back. Tests a copy engine, and a
// queue with copies ahead.
//   PENSTOCK_SCHEDULES=1000000 memory_device_copy_engine_schedules_test
// Runs with threads of their own are 200, or PENSTOCK_SCHEDULES of at most 2000.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "dataplane/memory/device/device_copy_engine.h"
#include "dataplane/memory/device/device_prefetch_queue.h"
#include "tests/dataplane/memory/watched_slots.h"

namespace penstock {
namespace {

using testing::IsEmpty;

constexpr int kSteps = 30;  // in one schedule
constexpr int kSlots = 4;
constexpr int64_t kScheduledValues = 100;

uint32_t SchedulesOr(uint32_t unless_said) {
  const char* text = std::getenv("PENSTOCK_SCHEDULES");
  return text == nullptr ? unless_said : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

class Schedule {
 public:
  explicit Schedule(FakeDevice& device, uint32_t seed)
      : device_(device), random_(seed), slots_(device, kSlots, kScheduledValues) {
    const int places = 1 + Pick(3);
    engine_ = DeviceCopyEngine::Create(device_, {.places = places,
                                                 .place_bytes = kScheduledValues,
                                                 .stop_within = absl::ZeroDuration()})
                  .value();
    for (auto& stream : streams_) stream = device_.MakeStream(0).value();
  }

  void Run() {
    for (int step = 0; step < kSteps; ++step) Step();
    End();
  }

 private:
  struct Held {
    DeviceElement element;
    uint8_t value;
  };
  struct Read {
    uint8_t expected;
    std::vector<uint8_t> bytes;
  };

  int Pick(int below) { return static_cast<int>(random_() % below); }

  void Step() {
    switch (Pick(12)) {
      case 0:
      case 1:
      case 2:
        return Copy();
      case 3:
      case 4:
        return ReadOne();
      case 5:
        return LetGoOfOne();
      case 6:
      case 7:
      case 8:
        if (const size_t ready = device_.Ready(); ready > 0) device_.Step(random_() % ready);
        return;
      case 9:
        if (engine_ != nullptr) engine_->Progress();
        return;
      case 10:
        return Break();
      default:
        if (Pick(8) == 0) engine_.reset();
    }
  }

  void Copy() {
    if (engine_ == nullptr) return;
    const auto value = static_cast<uint8_t>(random_());
    Element element = slots_.Fill(value);
    if (!element) return;  // all are lent
    if (Pick(20) == 0) device_.FailNext(FakeDevice::Call::kCopy, absl::InternalError("copy"));
    if (Pick(20) == 0) device_.FailNext(FakeDevice::Call::kRecord, absl::InternalError("record"));
    absl::StatusOr<DeviceElement> copied = engine_->CopyToDevice(std::move(element));
    device_.FailNext(FakeDevice::Call::kCopy, absl::OkStatus());  // in case no call was made
    device_.FailNext(FakeDevice::Call::kRecord, absl::OkStatus());
    if (copied.ok()) held_.push_back({*std::move(copied), value});
  }

  void ReadOne() {
    if (held_.empty()) return;
    Held& held = held_[Pick(static_cast<int>(held_.size()))];
    DeviceStream& stream = *streams_[Pick(2)];
    reads_.push_back({held.value, std::vector<uint8_t>(kScheduledValues)});
    if (!held.element.ReadyOn(stream).ok() ||
        !stream
             .CopyToHost(reads_.back().bytes.data(), held.element.tensor(0).raw(), kScheduledValues)
             .ok()) {
      reads_.pop_back();
      return;
    }
    EXPECT_TRUE(held.element.ReadBy(stream).ok());
  }

  void LetGoOfOne() {
    if (held_.empty()) return;
    std::swap(held_[Pick(static_cast<int>(held_.size()))], held_.back());
    held_.pop_back();
  }

  // The device fails, or is reset. Its work is lost then, so only slots are checked.
  void Break() {
    if (Pick(6) != 0) return;
    if (broken_) {
      device_.Recover();
    } else {
      device_.Fail(absl::InternalError("the bus is gone"));
      lost_work_ = true;
    }
    broken_ = !broken_;
  }

  void End() {
    if (Pick(2) == 0) held_.clear();
    engine_.reset();
    held_.clear();
    if (broken_) device_.Recover();
    do {
      device_.Run();
    } while (DeviceCopyEngine::ProgressLeftOver() > 0 || device_.Ready() > 0);
    EXPECT_EQ(slots_.lent(), 0);
    EXPECT_EQ(slots_.too_early(), 0);
    for (const Read& read : reads_) {
      if (lost_work_) break;
      EXPECT_THAT(read.bytes, testing::Each(read.expected));
    }
  }

  FakeDevice& device_;
  std::mt19937 random_;
  WatchedSlots slots_;
  std::unique_ptr<DeviceCopyEngine> engine_;
  std::unique_ptr<DeviceStream> streams_[2];
  std::vector<Held> held_;
  std::vector<Read> reads_;
  bool broken_ = false;
  bool lost_work_ = false;
};

TEST(DeviceCopyEngineSchedules, NoSlotIsUsedAgainBeforeItsEvent) {
  FakeDevice device;
  const uint32_t schedules = SchedulesOr(20'000);
  for (uint32_t seed = 0; seed < schedules; ++seed) {
    Schedule(device, seed).Run();
    EXPECT_EQ(device.host_waits(), 0);
    if (testing::Test::HasFailure() || !device.Misuses().empty()) {
      EXPECT_THAT(device.Misuses(), IsEmpty());
      FAIL() << "schedule " << seed;
    }
  }
}

// The actions of a pipeline and a trainer on a queue in any order, and those of a device.
class QueueSchedule {
 public:
  QueueSchedule(FakeDevice& device, uint32_t seed)
      : device_(device), random_(seed), slots_(device, kSlots + 4, kScheduledValues) {
    for (auto& stream : streams_) stream = device_.MakeStream(0).value();
    options_ = {.depth = Pick(4), .stop_within = absl::ZeroDuration()};
    queue_ = std::make_unique<DevicePrefetchQueue>(device_, options_);
  }

  void Run() {
    const int64_t allocations = device_.allocations();
    for (int step = 0; step < 2 * kSteps; ++step) Step();
    EXPECT_LE(device_.allocations(), allocations + 1);
    End();
  }

 private:
  struct Waiting {
    Element element;
    uint8_t value;
  };
  struct Held {
    DeviceElement element;
    uint8_t value;
  };
  struct Read {
    uint8_t expected;
    std::vector<uint8_t> bytes;
  };

  int Pick(int below) { return static_cast<int>(random_() % static_cast<uint32_t>(below)); }

  void Step() {
    switch (Pick(14)) {
      case 0:
      case 1:
      case 2:
        return ReadAhead();
      case 3:
      case 4:
      case 5:
        return Take();
      case 6:
        return ReadOne();
      case 7:
      case 8:
        return LetGoOfOne();
      case 9:
        return Break();
      case 10:
        if (Pick(8) == 0) queue_->Forget();
        if (Pick(8) == 0 && !waiting_.empty()) waiting_.pop_front();  // that element is never taken
        return;
      default:
        if (const size_t ready = device_.Ready(); ready > 0) device_.Step(random_() % ready);
    }
  }

  void ReadAhead() {
    const auto value = static_cast<uint8_t>(random_());
    Element element = slots_.Fill(value);
    if (!element) return;  // all are lent
    FailNext();
    if (Pick(8) > 0) queue_->Prefetch(element);  // else it comes from another place
    FailNoMore();
    waiting_.push_back({std::move(element), value});
  }

  void Take() {
    if (waiting_.empty()) return;
    FailNext();
    absl::StatusOr<std::optional<DeviceElement>> taken = queue_->TryTake(waiting_.front().element);
    FailNoMore();
    if (taken.ok() && !taken->has_value()) return;
    if (taken.ok()) {
      EXPECT_LE(held_.size(), static_cast<size_t>(options_.depth + options_.held));
      held_.push_back({**std::move(taken), waiting_.front().value});
    }
    waiting_.pop_front();
  }

  // Does nothing while the device is broken: nobody could know then how long it reads, and the
  // place would be lost for good.
  void LetGoOfOne() {
    if (held_.empty() || broken_) return;
    held_.erase(held_.begin() + Pick(static_cast<int>(held_.size())));
  }

  void ReadOne() {
    if (held_.empty()) return;
    Held& held = held_[Pick(static_cast<int>(held_.size()))];
    DeviceStream& stream = *streams_[Pick(2)];
    if (!held.element.ReadyOn(stream.native()).ok()) return;
    reads_.push_back({held.value, std::vector<uint8_t>(kScheduledValues)});
    const void* const values = held.element.tensor(0).raw();
    if (!stream.CopyToHost(reads_.back().bytes.data(), values, kScheduledValues).ok())
      reads_.pop_back();
  }

  void FailNext() {
    if (Pick(20) == 0) device_.FailNext(FakeDevice::Call::kCopy, absl::InternalError("copy"));
    if (Pick(20) == 0) device_.FailNext(FakeDevice::Call::kRecord, absl::InternalError("record"));
  }
  void FailNoMore() {
    device_.FailNext(FakeDevice::Call::kCopy, absl::OkStatus());
    device_.FailNext(FakeDevice::Call::kRecord, absl::OkStatus());
  }

  void Break() {
    if (Pick(6) != 0) return;
    if (broken_) {
      device_.Recover();
    } else {
      device_.Fail(absl::InternalError("the bus is gone"));
      lost_work_ = true;
    }
    broken_ = !broken_;
  }

  void End() {
    if (!broken_ && Pick(2) == 0) held_.clear();
    if (Pick(2) == 0) waiting_.clear();
    queue_.reset();
    if (broken_) device_.Recover();
    held_.clear();
    waiting_.clear();
    do {
      device_.Run();
    } while (DeviceCopyEngine::ProgressLeftOver() > 0 || device_.Ready() > 0);
    EXPECT_EQ(slots_.lent(), 0);
    EXPECT_EQ(slots_.too_early(), 0);
    for (const Read& read : reads_) {
      if (lost_work_) break;
      EXPECT_THAT(read.bytes, testing::Each(read.expected));
    }
  }

  FakeDevice& device_;
  std::mt19937 random_;
  WatchedSlots slots_;
  DevicePrefetchQueueOptions options_;
  std::unique_ptr<DeviceStream> streams_[2];
  std::unique_ptr<DevicePrefetchQueue> queue_;
  std::deque<Waiting> waiting_;
  std::vector<Held> held_;
  std::vector<Read> reads_;
  bool broken_ = false;
  bool lost_work_ = false;
};

TEST(DevicePrefetchQueueSchedules, NoSlotIsUsedAgainBeforeItsEvent) {
  FakeDevice device;
  const uint32_t schedules = SchedulesOr(20'000);
  for (uint32_t seed = 0; seed < schedules; ++seed) {
    QueueSchedule(device, seed).Run();
    EXPECT_EQ(device.host_waits(), 0);
    if (testing::Test::HasFailure() || !device.Misuses().empty()) {
      EXPECT_THAT(device.Misuses(), IsEmpty());
      FAIL() << "schedule " << seed;
    }
  }
}

// A pipeline, a trainer and a device, each on a thread of its own.
void RunThreads(FakeDevice& device, uint32_t seed) {
  constexpr int kElements = 12;
  WatchedSlots slots(device, kSlots, kScheduledValues);
  const std::unique_ptr<DeviceStream> stream = device.MakeStream(0).value();
  DevicePrefetchQueue queue(
      device, {.depth = static_cast<int>(seed % 3), .stop_within = absl::ZeroDuration()});
  std::mutex mu;
  std::deque<Element> waiting;  // guarded by mu
  std::atomic<bool> over = false;

  std::thread pipeline([&] {
    for (int i = 0; i < kElements;) {
      Element element = slots.Fill(static_cast<uint8_t>(i));
      if (!element) {
        std::this_thread::yield();
        continue;
      }
      queue.Prefetch(element);
      std::lock_guard lock(mu);
      waiting.push_back(std::move(element));
      ++i;
    }
  });
  std::thread works([&] {
    std::mt19937 random(seed);
    while (!over || device.Ready() > 0) {
      if (const size_t ready = device.Ready(); ready > 0)
        device.Step(random() % ready);
      else if (queue.Progress() == 0)
        std::this_thread::yield();
    }
  });
  std::vector<std::vector<uint8_t>> reads(kElements, std::vector<uint8_t>(kScheduledValues));
  for (int i = 0; i < kElements; ++i) {
    Element next;
    while (!next) {
      std::lock_guard lock(mu);
      if (waiting.empty()) continue;
      next = std::move(waiting.front());
      waiting.pop_front();
    }
    std::optional<DeviceElement> taken;
    while (!taken.has_value()) taken = queue.TryTake(next).value();
    next = Element();
    ASSERT_TRUE(taken->ReadyOn(stream->native()).ok());
    ASSERT_TRUE(stream->CopyToHost(reads[i].data(), taken->tensor(0).raw(), kScheduledValues).ok());
  }
  pipeline.join();
  over = true;
  works.join();
  device.Run();
  for (int i = 0; i < kElements; ++i) EXPECT_THAT(reads[i], testing::Each(static_cast<uint8_t>(i)));
  EXPECT_EQ(queue.stats().elements, kElements);
  EXPECT_EQ(slots.too_early(), 0);
}

TEST(DevicePrefetchQueueSchedules, WithThreadsOfTheirOwn) {
  FakeDevice device;
  const uint32_t schedules = std::min<uint32_t>(SchedulesOr(200), 2000);
  for (uint32_t seed = 0; seed < schedules; ++seed) {
    RunThreads(device, seed);
    DeviceCopyEngine::ProgressLeftOver();
    ASSERT_FALSE(testing::Test::HasFailure()) << "schedule " << seed;
  }
  EXPECT_THAT(device.Misuses(), IsEmpty());
  EXPECT_EQ(device.host_waits(), 0);
}

}  // namespace
}  // namespace penstock
