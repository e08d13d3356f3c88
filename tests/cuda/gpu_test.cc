// SPDX-License-Identifier: Apache-2.0
// Needs a real GPU: the suite for device backends, and elements from a worker through shared memory
// to the device. Without a GPU all of it is skipped, or fails if PENSTOCK_REQUIRE_GPU is set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "dataplane/memory/copied.h"
#include "dataplane/memory/device/device_copy_engine.h"
#include "dataplane/memory/device/page_locking.h"
#include "tests/dataplane/memory/device_conformance.h"
#include "tests/dataplane/transfer/ends.h"

namespace penstock {
namespace {

std::shared_ptr<DeviceBackend> Gpu() {
  if (!LinkedDeviceBackend().Count().ok()) return nullptr;
  return {&LinkedDeviceBackend(), [](DeviceBackend*) {}};
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Gpu, DeviceConformance, testing::Values(Gpu));

namespace transfer {
namespace {

constexpr int64_t kValues = 1'000'000;
constexpr int kPlaces = 4;
constexpr int kCredits = 8;

Spec ImageSpec() {
  return Spec(Dense(kUInt8, {kValues}));
}

std::vector<uint8_t> Image(Index index) {
  std::vector<uint8_t> values(kValues);
  for (int64_t i = 0; i < kValues; ++i) values[i] = static_cast<uint8_t>(i * 31 + i / 255 + index);
  return values;
}

// A worker and a client in one process, linked over shared memory, and a copy engine after the
// link.
class ShmToGpu : public testing::Test {
 protected:
  void SetUp() override {
    gpu_ = Gpu();
    if (gpu_ == nullptr && DeviceRequired()) FAIL() << DescribeDevices(LinkedDeviceBackend());
    if (gpu_ == nullptr) GTEST_SKIP() << DescribeDevices(LinkedDeviceBackend());
    DialOptions options;
    options.hello.token = "sesame";
    options.spec = ImageSpec();
    link_ = shm_.Dial(worker_.address(), std::move(options), client_).value();
    end_ = worker_.Link(0);
    ASSERT_NE(end_, nullptr);
    engine_ = DeviceCopyEngine::Create(*gpu_, {.places = kPlaces, .place_bytes = kValues}).value();
    trainer_ = gpu_->MakeStream(0).value();
  }

  // Returns the next element as the client has it. It is made in the client's memory if some is
  // free.
  Element Next(Index index) {
    Element sent;
    {
      const std::shared_ptr<Pool> pool = end_->link().pool();
      const std::vector<uint8_t> values = Image(index);
      const int64_t dims[] = {kValues};
      sent = MakeElement(pool != nullptr ? *pool : DefaultPool(),
                         {Tensor(kUInt8, dims, values.data())}, ImageSpec())
                 .value();
    }
    sent.set_identity({.partition = PartitionId(1), .placement = Placement(1), .index = index});
    EXPECT_TRUE(end_->link().Send(std::move(sent)).ok());
    EXPECT_TRUE(client_->AwaitCount(index + 1));
    return std::move(client_->TakeElements().at(0));
  }

  std::shared_ptr<DeviceBackend> gpu_;
  Transport& shm_ = **FindTransport("shm");
  Worker worker_{shm_};
  std::shared_ptr<ClientEnd> client_ = std::make_shared<ClientEnd>();
  std::unique_ptr<ReceiveLink> link_;
  std::shared_ptr<WorkerEnd> end_;
  std::unique_ptr<DeviceCopyEngine> engine_;
  std::unique_ptr<DeviceStream> trainer_;
};

// One element that the trainer's stream reads back, and the place that it is read to.
struct Reading {
  Index index;
  std::vector<uint8_t> bytes;
  std::unique_ptr<DeviceEvent> read;
};

TEST_F(ShmToGpu, ElementsAreCopiedFromPageLockedSlotsThatAreUsedAgainAndAgain) {
  constexpr Index kElements = 300;
  ASSERT_EQ(PageLocking::ForProcess().state(), "on");
  link_->Grant({kCredits});
  ASSERT_TRUE(end_->AwaitGranted(kCredits));

  std::set<const void*> slots;
  std::deque<Reading> readings;
  RegistrationCounters registered;
  for (Index index = 0; index < kElements; ++index) {
    Element element = Next(index);
    const void* body = element.tensor(0).raw();
    slots.insert(body);
    ASSERT_EQ(gpu_->KindOf(body).value(), MemoryKind::kPageLocked);

    DeviceElement on_gpu = engine_->CopyToDevice(std::move(element)).value();
    ASSERT_EQ(gpu_->KindOf(on_gpu.tensor(0).raw()).value(), MemoryKind::kDevice);
    Reading reading{index, std::vector<uint8_t>(kValues), gpu_->MakeEvent(0).value()};
    ASSERT_TRUE(on_gpu.ReadyOn(*trainer_).ok());
    ASSERT_TRUE(trainer_->CopyToHost(reading.bytes.data(), on_gpu.tensor(0).raw(), kValues).ok());
    ASSERT_TRUE(trainer_->Record(*reading.read).ok());
    ASSERT_TRUE(on_gpu.ReadBy(*trainer_).ok());
    readings.push_back(std::move(reading));
    on_gpu = DeviceElement();
    link_->Grant({1});
    ASSERT_TRUE(end_->AwaitGranted(kCredits + index + 1));

    if (readings.size() == kPlaces - 1) {  // the host waits only now
      ASSERT_TRUE(readings.front().read->Wait().ok());
      ASSERT_EQ(readings.front().bytes, Image(readings.front().index));
      readings.pop_front();
    }
    if (index == kElements / 2) {
      registered = CountRegistrations();
    }
  }
  for (Reading& reading : readings) {
    ASSERT_TRUE(reading.read->Wait().ok());
    ASSERT_EQ(reading.bytes, Image(reading.index));
  }
  EXPECT_LT(slots.size(), static_cast<size_t>(kElements) / 2);  // slots are used again
  EXPECT_EQ(CountRegistrations().made, registered.made);        // page-locked once
  EXPECT_LE(engine_->counters().events, 2 * kPlaces);           // for a copy and a reader of each
  EXPECT_EQ(engine_->counters().elements, kElements);
  EXPECT_EQ(engine_->Progress(), 0);
}

TEST_F(ShmToGpu, UnfinishedCopiesAreAwaitedAtTheEnd) {
  link_->Grant({kCredits});
  ASSERT_TRUE(end_->AwaitGranted(kCredits));
  for (Index index = 0; index < kPlaces; ++index) {
    ASSERT_TRUE(engine_->CopyToDevice(Next(index)).ok());
  }
  engine_.reset();
  EXPECT_EQ(DeviceCopyEngine::ProgressLeftOver(), 0);
}

}  // namespace
}  // namespace transfer
}  // namespace penstock
