// SPDX-License-Identifier: Apache-2.0
// Penstock's path to a GPU, from slots of a page-locked pool to the trainer's stream, over
// cuda/backend.cc on a pretended CUDA that records calls that a real GPU does not forgive.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <latch>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "control/observe/event_log.h"
#include "dataplane/memory/device/device_copy_engine.h"
#include "dataplane/memory/device/device_prefetch_queue.h"
#include "dataplane/memory/device/page_locked_pool.h"
#include "dataplane/memory/device/page_locking.h"
#include "dataplane/memory/pool.h"
#include "penstock/element.h"
#include "tests/cuda/pretended_cuda.h"

namespace penstock {
namespace {

using pretended_cuda::Step;
using pretended_cuda::TakeViolations;
using pretended_cuda::ThreadIsUntouched;
using testing::IsEmpty;

// Of three devices the program names two, but not device 0, on which CUDA makes contexts by
// default.
constexpr int kDevice = 1;
constexpr int kSecondDevice = 2;
constexpr int64_t kValues = 5000;  // in an element, one byte each
constexpr int kWarmUpSteps = 8;
constexpr int kSteps = 200;
constexpr int kTries = 1000;  // a stream that is not done after this many never is

// One process for all cases, because the backend keeps contexts until the process ends.
void BeginOnce() {
  static const bool begun = [] {
    pretended_cuda::Begin({.devices = 3, .named = {kDevice, kSecondDevice}});
    return true;
  }();
  ASSERT_TRUE(begun);
}

Element MakeFilled(Pool& pool, int value) {
  const std::vector<uint8_t> values(kValues, static_cast<uint8_t>(value));
  const int64_t dims[] = {kValues};
  return MakeElement(pool, {Tensor(kUInt8, dims, values.data())}, Spec(Dense(kUInt8, {kValues})))
      .value();
}

// Reads ahead and computes as a trainer does on one device. A computation is a copy to the host, so
// that its input can be checked, and there are up to three unfinished ones.
class Trainer {
 public:
  Trainer(PageLocking& locking, int device, int depth)
      : device_(device),
        depth_(depth),
        pool_(MakePageLockedPool(locking)),
        queue_(LinkedDeviceBackend(), {.device = device, .depth = depth}) {}

  // Makes the objects that are made once and slowly: segments of the pool, places on the device,
  // events.
  void WarmUp() {
    std::vector<Element> slots(16);  // more than a step ever holds
    for (Element& slot : slots) slot = MakeFilled(*pool_, 0);
    stream_ = LinkedDeviceBackend().MakeStream(device_).value();
    for (Lane& lane : lanes_) {
      lane.result = pool_->Lend(kValues).value();  // page-locked, as the trainer's own would be
      lane.computed = LinkedDeviceBackend().MakeEvent(device_).value();
    }
    slots.clear();
    for (int i = 0; i < kWarmUpSteps; ++i) TakeStep();
  }

  // Takes an element, computes on it, and releases it while the computation is under way.
  void TakeStep() {
    Lane& lane = lanes_[taken_ % lanes_.size()];
    Finish(lane);
    ReadAhead();
    std::optional<DeviceElement> batch;
    for (int tries = 0; !batch.has_value() && tries < kTries; ++tries) {
      absl::StatusOr<std::optional<DeviceElement>> taken = queue_.TryTake(read_ahead_.front());
      ASSERT_TRUE(taken.ok()) << taken.status();
      batch = *std::move(taken);
      if (!batch.has_value()) queue_.Progress();
    }
    ASSERT_TRUE(batch.has_value());
    read_ahead_.pop_front();
    ASSERT_TRUE(batch->ReadyOn(stream_->native()).ok());
    ASSERT_TRUE(
        stream_->CopyToHost(lane.result.bytes().data(), batch->tensor(0).raw(), kValues).ok());
    ASSERT_TRUE(stream_->Record(*lane.computed).ok());
    lane.value = taken_++;
  }

  // Finishes all steps, after which no slot is in use.
  void Settle() {
    for (Lane& lane : lanes_) Finish(lane);
    for (int tries = 0; queue_.Progress() > 0 && tries < kTries; ++tries) {
    }
    EXPECT_EQ(queue_.Progress(), 0);
  }

  DeviceCopyStats stats() const { return queue_.stats(); }
  PoolCounters pool_counters() const { return pool_->counters(); }

 private:
  // A step that may be under way.
  struct Lane {
    Loan result;
    std::unique_ptr<DeviceEvent> computed;
    std::optional<int> value;  // expected in all bytes of the result
  };

  void Finish(Lane& lane) {
    if (!lane.value.has_value()) return;
    for (int tries = 0; !lane.computed->Done().value() && tries < kTries; ++tries) {
    }
    ASSERT_TRUE(lane.computed->Done().value());
    const auto expected = std::byte(*std::exchange(lane.value, std::nullopt));
    EXPECT_EQ(lane.result.bytes()[0], expected);
    EXPECT_EQ(lane.result.bytes()[kValues - 1], expected);
  }
  void ReadAhead() {
    while (static_cast<int>(read_ahead_.size()) <= depth_) {
      read_ahead_.push_back(MakeFilled(*pool_, made_++));
      queue_.Prefetch(read_ahead_.back());
    }
  }

  const int device_;
  const int depth_;
  const std::shared_ptr<Pool> pool_;
  DevicePrefetchQueue queue_;
  std::unique_ptr<DeviceStream> stream_;
  std::array<Lane, 3> lanes_;
  std::deque<Element> read_ahead_;
  int made_ = 0;
  int taken_ = 0;
};

// Warms up, then takes steps in which no call may wait for the device.
void Train(PageLocking& locking, int device, int depth) {
  Trainer trainer(locking, device, depth);
  trainer.WarmUp();
  const DeviceCopyStats before = trainer.stats();
  const PoolCounters pool_before = trainer.pool_counters();
  for (int i = 0; i < kSteps && !testing::Test::HasFailure(); ++i) {
    const Step step;
    trainer.TakeStep();
    EXPECT_TRUE(ThreadIsUntouched());
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);  // our calls leave no error on the thread
  }
  const DeviceCopyStats after = trainer.stats();
  EXPECT_GE(after.elements, before.elements + kSteps - depth);
  EXPECT_EQ(after.events, before.events);
  EXPECT_EQ(after.grown, before.grown);
  EXPECT_EQ(after.not_page_locked, 0);
  EXPECT_EQ(trainer.pool_counters().registrations, pool_before.registrations);
  trainer.Settle();
}

class CudaPaths : public testing::Test {
 protected:
  CudaPaths() {
    BeginOnce();
    locking_.emplace(PageLockMode::kAuto, LinkedDeviceBackend(), events_);
  }
  ~CudaPaths() override {
    locking_.reset();
    EXPECT_THAT(TakeViolations(), IsEmpty());
    EXPECT_FALSE(pretended_cuda::HasContext(0));
    EXPECT_EQ(pretended_cuda::Pending(), 0);
    EXPECT_THAT(events_->All(), IsEmpty());
  }

  const std::shared_ptr<CapturedEvents> events_ = CapturedEvents::Make();
  std::optional<PageLocking> locking_;
};

// The parameter is the number of elements that are on their way while one is taken.
class CudaPathsAtDepth : public CudaPaths, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Depths, CudaPathsAtDepth, testing::Values(0, 1, 2, 4));

TEST_P(CudaPathsAtDepth, StepsOnTheNamedDeviceNeitherWaitNorTouchAnother) {
  locking_->UseDevice(kDevice);
  Train(*locking_, kDevice, GetParam());
}

TEST_P(CudaPathsAtDepth, StepsOnASecondDeviceCopyFromTheFirstsPageLockedMemory) {
  locking_->UseDevice(kDevice);
  Train(*locking_, kSecondDevice, GetParam());
}

TEST_P(CudaPathsAtDepth, AThreadThatCapturesMeanwhileGetsItsGraph) {
  std::latch begun(1), trained(1);
  cudaError_t ended = cudaErrorUnknown;
  std::thread other([&] {
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaSetDevice(kDevice), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    begun.count_down();
    trained.wait();
    cudaGraph_t graph = nullptr;
    ended = cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) {
      EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    }
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  });
  begun.wait();
  locking_->UseDevice(kDevice);
  Train(*locking_, kDevice, GetParam());
  trained.count_down();
  other.join();
  EXPECT_EQ(ended, cudaSuccess);
}

TEST_F(CudaPaths, AThreadKeepsItsOwnDeviceAndCaptureMode) {
  std::thread([] {
    EXPECT_EQ(cudaSetDevice(kSecondDevice), cudaSuccess);
    cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    DeviceBackend& gpus = LinkedDeviceBackend();
    const auto memory = gpus.Allocate(kDevice, kValues).value();
    const auto stream = gpus.MakeStream(kDevice).value();
    const auto event = gpus.MakeEvent(kDevice).value();
    EXPECT_TRUE(stream->Record(*event).ok());
    EXPECT_TRUE(event->Wait().ok());
    EXPECT_EQ(gpus.KindOf(memory->address()).value(), MemoryKind::kDevice);
    int current = -1;
    EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, kSecondDevice);
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    EXPECT_EQ(mode, cudaStreamCaptureModeThreadLocal);
  }).join();
}

// A copy engine is destroyed during its copies, and elements outlive it.
TEST_F(CudaPaths, AnEngineThatEndsGivesNothingBackUnderACopy) {
  locking_->UseDevice(kDevice);
  const std::shared_ptr<Pool> pool = MakePageLockedPool(*locking_);
  for (const absl::Duration stop_within : {absl::ZeroDuration(), absl::Seconds(2)}) {
    std::unique_ptr<DeviceCopyEngine> engine =
        DeviceCopyEngine::Create(LinkedDeviceBackend(), {.device = kDevice,
                                                         .places = 2,
                                                         .place_bytes = 2 * kValues,
                                                         .stop_within = stop_within})
            .value();
    DeviceElement kept = engine->CopyToDevice(MakeFilled(*pool, 7)).value();
    DeviceElement let_go = engine->CopyToDevice(MakeFilled(*pool, 7)).value();
    let_go = DeviceElement();
    engine.reset();
    kept = DeviceElement();
  }
  for (int tries = 0; DeviceCopyEngine::ProgressLeftOver() > 0 && tries < kTries; ++tries) {
  }
  EXPECT_EQ(DeviceCopyEngine::ProgressLeftOver(), 0);
}

}  // namespace
}  // namespace penstock
