// SPDX-License-Identifier: Apache-2.0
// Fake GPUs for Python's tests, which call these functions by ctypes. When preloaded, the devices
// replace those of libpenstock.
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "penstock/check.h"
#include "tests/dataplane/replica/fake_gpus.h"

namespace penstock {
namespace {

// Streams that a test made, by their handles.
struct Streams {
  std::mutex mu;
  std::map<uint64_t, std::unique_ptr<DeviceStream>> made;  // guarded by mu
};

Streams& TheStreams() {
  static Streams& streams = *new Streams;
  return streams;
}

}  // namespace
}  // namespace penstock

extern "C" {

// Makes a stream of that device and returns its handle.
uint64_t fake_stream(int device) {
  using namespace penstock;  // NOLINT
  std::unique_ptr<DeviceStream> stream = FakeGpus().MakeStream(device).value();
  const auto handle = reinterpret_cast<uint64_t>(stream->native());
  std::lock_guard lock(TheStreams().mu);
  TheStreams().made[handle] = std::move(stream);
  return handle;
}

// Queues on `stream`, a handle or 1 or 2, a copy from the device to the host.
void fake_read(int device, uint64_t stream, void* host, uint64_t from, uint64_t bytes) {
  using namespace penstock;                                   // NOLINT
  const auto* address = reinterpret_cast<const void*>(from);  // NOLINT
  auto* native = reinterpret_cast<void*>(stream);             // NOLINT
  const auto wrapped = FakeGpus().WrapStream(device, native);
  PENSTOCK_CHECK(wrapped.ok());
  PENSTOCK_CHECK((*wrapped)->CopyToHost(host, address, bytes).ok());
}

// Does all work that the devices' streams can do.
void fake_run() {
  penstock::FakeGpus().Run();
}

// Returns the number of uses that a real device would not forgive.
int fake_misuses() {
  return static_cast<int>(penstock::FakeGpus().Misuses().size());
}
}
