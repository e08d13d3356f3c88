// SPDX-License-Identifier: Apache-2.0
#include "tests/dataplane/replica/fake_gpus.h"

namespace penstock {

FakeDevice& FakeGpus() {
  static FakeDevice& gpus = *new FakeDevice(kFakeGpus);
  return gpus;
}

DeviceBackend& LinkedDeviceBackend() {
  return FakeGpus();
}

RunningGpus::RunningGpus()
    : thread_([this] {
        while (!stop_) {
          FakeGpus().Run();
          std::this_thread::yield();
        }
        FakeGpus().Run();
      }) {}

RunningGpus::~RunningGpus() {
  stop_ = true;
  thread_.join();
}

}  // namespace penstock
