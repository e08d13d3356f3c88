// SPDX-License-Identifier: Apache-2.0
// Queues of several devices in simulated time: the speed of each, and that none waits for another.
#include "dataplane/memory/device/device_prefetch_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/memory/pool.h"
#include "tests/dataplane/memory/fake_device.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kQueuedBytes = 1000;  // in an element

Element ElementOf(uint8_t value, int64_t bytes = kQueuedBytes) {
  const std::vector<uint8_t> values(static_cast<size_t>(bytes), value);
  const int64_t dims[] = {bytes};
  return MakeElement(DefaultPool(), {Tensor(kUInt8, dims, values.data())},
                     Spec(Dense(kUInt8, {kUnknownDim})))
      .value();
}

// Does the devices' work in the order of a clock; `duration` gives the time of each copy.
class Clock {
 public:
  using Duration = std::function<double(const FakeDevice::ReadyWork&)>;
  Clock(FakeDevice& device, Duration duration) : device_(device), duration_(std::move(duration)) {}

  double now() const { return now_; }
  // Advances to the next end of a copy; returns false if there is none.
  bool Advance() {
    Begin();
    if (ends_.empty()) return false;
    auto next = ends_.begin();
    for (auto it = ends_.begin(); it != ends_.end(); ++it)
      if (it->second < next->second) next = it;
    now_ = next->second;
    device_.StepStream(next->first);
    ends_.erase(next);
    Begin();
    return true;
  }

 private:
  // Starts all work that is ready: places are reached at once, copies begin.
  void Begin() {
    for (bool again = true; again;) {
      again = false;
      for (const FakeDevice::ReadyWork& work : device_.ListReady()) {
        if (work.bytes == 0) {
          device_.StepStream(work.stream);
          again = true;
          break;
        }
        if (!ends_.contains(work.stream)) ends_[work.stream] = now_ + duration_(work);
      }
    }
  }

  FakeDevice& device_;
  const Duration duration_;
  std::map<int64_t, double> ends_;  // of copies under way, by stream
  double now_ = 0;
};

// A loop of steps on one device: take, compute, release.
class Trainer {
 public:
  Trainer(FakeDevice& fake, int device, int depth)
      : depth_(depth),
        queue_(fake, {.device = device, .depth = depth, .stop_within = absl::ZeroDuration()}),
        stream_(fake.MakeStream(device).value()),
        computed_(fake.MakeEvent(device).value()),
        scratch_(kQueuedBytes) {}

  // Does all that is possible now without a wait.
  void Poll() {
    while (computed_->Done().value()) {
      if (batch_) {
        EXPECT_EQ(scratch_.front(), static_cast<uint8_t>(steps_));
        EXPECT_EQ(scratch_.back(), static_cast<uint8_t>(steps_));
        ++steps_;
        batch_ = DeviceElement();
      }
      while (static_cast<int>(read_ahead_.size()) < depth_ + 1) {
        read_ahead_.push_back(ElementOf(static_cast<uint8_t>(made_++)));
        if (depth_ > 0) queue_.Prefetch(read_ahead_.back());
      }
      absl::StatusOr<std::optional<DeviceElement>> taken = queue_.TryTake(read_ahead_.front());
      ASSERT_TRUE(taken.ok()) << taken.status();
      if (!taken->has_value()) return;
      read_ahead_.pop_front();
      batch_ = **std::move(taken);
      ASSERT_TRUE(batch_.ReadyOn(stream_->native()).ok());
      // A computation is a copy, so that its input can be checked.
      ASSERT_TRUE(stream_->CopyToHost(scratch_.data(), batch_.tensor(0).raw(), kQueuedBytes).ok());
      ASSERT_TRUE(stream_->Record(*computed_).ok());
    }
  }

  int64_t steps() const { return steps_; }
  DeviceCopyStats stats() const { return queue_.stats(); }

 private:
  const int depth_;
  DevicePrefetchQueue queue_;
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<DeviceEvent> computed_;
  std::vector<uint8_t> scratch_;
  std::deque<Element> read_ahead_;
  DeviceElement batch_;
  int64_t made_ = 0;
  int64_t steps_ = 0;
};

struct Outcome {
  std::vector<int64_t> steps;
  std::vector<DeviceCopyStats> stats;
};

// Returns the steps of each device in a time of 1000. A copy takes 1 and a step 1; both take
// `slowness` times as long on device 0.
Outcome Train(int devices, int depth, double slowness) {
  FakeDevice fake(devices);
  Clock clock(fake,
              [&](const FakeDevice::ReadyWork& work) { return work.device == 0 ? slowness : 1.0; });
  Outcome outcome;
  {
    std::vector<std::unique_ptr<Trainer>> trainers;
    for (int i = 0; i < devices; ++i) trainers.push_back(std::make_unique<Trainer>(fake, i, depth));
    std::vector<int64_t> events;
    do {
      for (const auto& trainer : trainers) trainer->Poll();
      if (events.empty() && clock.now() > 500)
        for (const auto& trainer : trainers) events.push_back(trainer->stats().events);
    } while (clock.Advance() && clock.now() < 1000);
    for (size_t i = 0; i < trainers.size(); ++i) {
      const DeviceCopyStats stats = trainers[i]->stats();
      EXPECT_EQ(stats.events, events[i]);  // a steady state makes no events
      EXPECT_EQ(stats.grown, 0);
      outcome.steps.push_back(trainers[i]->steps());
      outcome.stats.push_back(stats);
    }
    EXPECT_EQ(fake.host_waits(), 0);
    EXPECT_EQ(fake.allocations(), devices);  // one for the places of each device
    fake.Run();
  }
  DeviceCopyEngine::ProgressLeftOver();
  EXPECT_THAT(fake.Misuses(), IsEmpty());
  return outcome;
}

TEST(DevicePrefetchQueueDepths, CopiesRunBesideStepsFromDepthOneOn) {
  for (const int depth : {0, 1, 2, 4}) {
    const Outcome outcome = Train(1, depth, 1);
    const int64_t expected = depth == 0 ? 500 : 1000;  // copy and step in sequence, or in parallel
    EXPECT_NEAR(static_cast<double>(outcome.steps[0]), static_cast<double>(expected), 5) << depth;
    EXPECT_EQ(outcome.stats[0].places, depth + 2);
    EXPECT_EQ(outcome.stats[0].ahead > 0, depth > 0);
  }
}

TEST(DevicePrefetchQueueDepths, ADeviceTenTimesSlowerHoldsNoOtherUp) {
  for (const int depth : {0, 1, 2, 4}) {
    const Outcome alike = Train(4, depth, 1);
    const Outcome uneven = Train(4, depth, 10);
    EXPECT_NEAR(static_cast<double>(uneven.steps[0]), static_cast<double>(alike.steps[0]) / 10, 2);
    for (size_t i = 1; i < 4; ++i)
      EXPECT_GE(static_cast<double>(uneven.steps[i]), 0.95 * static_cast<double>(alike.steps[i]));
  }
}

class DevicePrefetchQueueTest : public testing::Test {
 protected:
  ~DevicePrefetchQueueTest() override {
    fake_.Run();
    queue_.reset();
    DeviceCopyEngine::ProgressLeftOver();
    EXPECT_THAT(fake_.Misuses(), IsEmpty());
  }
  DeviceElement Take(const Element& element) {
    absl::StatusOr<std::optional<DeviceElement>> taken = queue_->TryTake(element);
    EXPECT_TRUE(taken.ok()) << taken.status();
    return **std::move(taken);
  }
  uint8_t FirstOf(const DeviceElement& element) {
    fake_.Run();
    return *static_cast<const uint8_t*>(
        element.tensor(0).raw());  // the fake's memory is the host's
  }

  FakeDevice fake_;
  std::unique_ptr<DevicePrefetchQueue> queue_ = std::make_unique<DevicePrefetchQueue>(
      fake_, DevicePrefetchQueueOptions{.depth = 2, .stop_within = absl::ZeroDuration()});
};

TEST_F(DevicePrefetchQueueTest, SkippedElementsAreForgottenAndNeverMistaken) {
  // Of three elements that were read ahead only the last is taken. Then one that was not read ahead
  // is taken.
  for (uint8_t value : {1, 2}) queue_->Prefetch(ElementOf(value));
  const Element third = ElementOf(3);
  queue_->Prefetch(third);
  EXPECT_EQ(FirstOf(Take(third)), 3);
  EXPECT_EQ(FirstOf(Take(ElementOf(4))), 4);
  EXPECT_EQ(queue_->stats().elements, 4);  // two were copied for nothing
  queue_->Prefetch(third);
  queue_->Forget();
  EXPECT_EQ(FirstOf(Take(ElementOf(5))), 5);
}

TEST_F(DevicePrefetchQueueTest, GrowsWithItsElements) {
  const DeviceElement small = Take(ElementOf(1));
  const DeviceElement large = Take(ElementOf(2, 1 << 20));
  EXPECT_EQ(FirstOf(small), 1);
  EXPECT_EQ(FirstOf(large), 2);
  EXPECT_EQ(queue_->stats().grown, 1);
  EXPECT_GE(queue_->stats().place_bytes, 1 << 20);
}

TEST_F(DevicePrefetchQueueTest, HoldingAllPlacesIsAnErrorAndWaitingForTheDeviceIsNot) {
  std::vector<DeviceElement> held;
  for (uint8_t value = 0; value < 4; ++value) held.push_back(Take(ElementOf(value)));
  const absl::Status refused = queue_->TryTake(ElementOf(9)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("have not been released"));
  held.pop_back();
  absl::StatusOr<std::optional<DeviceElement>> busy = queue_->TryTake(ElementOf(9));
  ASSERT_TRUE(busy.ok()) << busy.status();
  EXPECT_FALSE(busy->has_value());  // its copy is still under way
  fake_.Run();
  EXPECT_EQ(FirstOf(Take(ElementOf(9))), 9);
}

TEST_F(DevicePrefetchQueueTest, AFailedDeviceIsAnErrorAndNoWait) {
  std::vector<DeviceElement> held;
  for (uint8_t value = 0; value < 4; ++value) held.push_back(Take(ElementOf(value)));
  held.clear();
  fake_.Fail(absl::InternalError("the bus is gone"));
  EXPECT_THAT(std::string(queue_->TryTake(ElementOf(9)).status().message()),
              HasSubstr("the bus is gone"));
  fake_.Recover();
  EXPECT_EQ(FirstOf(Take(ElementOf(9))), 9);
}

TEST_F(DevicePrefetchQueueTest, AFailedPrefetchIsRetriedByTake) {
  fake_.FailNext(FakeDevice::Call::kAllocate, absl::ResourceExhaustedError("no memory left"));
  const Element element = ElementOf(1);
  queue_->Prefetch(element);
  EXPECT_EQ(FirstOf(Take(element)), 1);
  fake_.FailNext(FakeDevice::Call::kAllocate, absl::ResourceExhaustedError("no memory left"));
  const absl::Status refused = queue_->TryTake(ElementOf(2, 1 << 20)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("GPU:0"));
}

}  // namespace
}  // namespace penstock
