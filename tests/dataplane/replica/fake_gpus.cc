// SPDX-License-Identifier: Apache-2.0
#include "tests/dataplane/replica/fake_gpus.h"

namespace penstock {
namespace {

class NoGpuDirect final : public GpuDirectDriver {
 public:
  absl::StatusOr<GpuDirectFacts> Ask(int) override { return GpuDirectFacts(); }
  absl::Status FlushWrites(int) override { return absl::UnimplementedError("nothing is written"); }
};

std::atomic<GpuDirectDriver*> the_driver = nullptr;

}  // namespace

FakeDevice& FakeGpus() {
  static FakeDevice& gpus = *new FakeDevice(kFakeGpus);
  return gpus;
}

DeviceBackend& LinkedDeviceBackend() {
  return FakeGpus();
}

GpuDirectDriver& LinkedGpuDirectDriver() {
  static NoGpuDirect& none = *new NoGpuDirect;
  GpuDirectDriver* const driver = the_driver;
  return driver != nullptr ? *driver : none;
}

void UseGpuDirectDriver(GpuDirectDriver* driver) {
  the_driver = driver;
}

RunningGpus::RunningGpus() : thread_([this] { FakeGpus().RunUntil(stop_); }) {}

RunningGpus::~RunningGpus() {
  stop_ = true;
  FakeGpus().Wake();
  thread_.join();
}

}  // namespace penstock
