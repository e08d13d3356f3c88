// SPDX-License-Identifier: Apache-2.0
// Random schedules of copies, readers, completions, failures and ends: a slot is
// never free, and a place on the device never written, while the device may still
// read it; and in the end everything is back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "dataplane/memory/device_lander.h"
#include "tests/dataplane/memory/watched_slots.h"

namespace penstock {
namespace {

using testing::IsEmpty;

constexpr int kSchedules = 100'000;
constexpr int kSteps = 30;  // of one schedule
constexpr int kSlots = 4;
constexpr int64_t kValues = 100;

class Schedule {
 public:
  explicit Schedule(FakeDevice& device, uint32_t seed)
      : device_(device), random_(seed), slots_(device, kSlots, kValues) {
    const int places = 1 + Pick(3);
    lander_ = DeviceLander::Create(
                  device_,
                  {.places = places, .place_bytes = kValues, .stop_within = absl::ZeroDuration()})
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
        if (lander_ != nullptr) lander_->Progress();
        return;
      case 10:
        return Break();
      default:
        if (Pick(8) == 0) lander_.reset();
    }
  }

  void Copy() {
    if (lander_ == nullptr) return;
    const auto value = static_cast<uint8_t>(random_());
    Element element = slots_.Fill(value);
    if (!element) return;  // all are lent
    if (Pick(20) == 0) device_.FailNext(FakeDevice::Call::kCopy, absl::InternalError("copy"));
    if (Pick(20) == 0) device_.FailNext(FakeDevice::Call::kRecord, absl::InternalError("record"));
    absl::StatusOr<DeviceElement> copied = lander_->CopyToDevice(std::move(element));
    device_.FailNext(FakeDevice::Call::kCopy, absl::OkStatus());  // if it was not asked
    device_.FailNext(FakeDevice::Call::kRecord, absl::OkStatus());
    if (copied.ok()) held_.push_back({*std::move(copied), value});
  }

  void ReadOne() {
    if (held_.empty()) return;
    Held& held = held_[Pick(static_cast<int>(held_.size()))];
    DeviceStream& stream = *streams_[Pick(2)];
    reads_.push_back({held.value, std::vector<uint8_t>(kValues)});
    if (!held.element.ReadyOn(stream).ok() ||
        !stream.CopyToHost(reads_.back().bytes.data(), held.element.tensor(0).raw(), kValues)
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

  // The device fails, or is reset. What it had is lost then, and only slots are looked at.
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
    lander_.reset();
    held_.clear();
    if (broken_) device_.Recover();
    do {
      device_.Run();
    } while (DeviceLander::ProgressLeftOver() > 0 || device_.Ready() > 0);
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
  std::unique_ptr<DeviceLander> lander_;
  std::unique_ptr<DeviceStream> streams_[2];
  std::vector<Held> held_;
  std::vector<Read> reads_;
  bool broken_ = false;
  bool lost_work_ = false;
};

TEST(DeviceLanderSchedules, NoSlotIsUsedAgainBeforeItsEvent) {
  FakeDevice device;
  for (uint32_t seed = 0; seed < kSchedules; ++seed) {
    Schedule(device, seed).Run();
    if (testing::Test::HasFailure() || !device.Misuses().empty()) {
      EXPECT_THAT(device.Misuses(), IsEmpty());
      FAIL() << "schedule " << seed;
    }
  }
}

}  // namespace
}  // namespace penstock
