// SPDX-License-Identifier: Apache-2.0
// Places on a GPU into which UCX receives: their opening by a link, and their registration.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "dataplane/memory/device/device.h"
#include "dataplane/memory/device/gpu_direct_pool.h"
#include "dataplane/memory/registrar.h"
#include "dataplane/transfer/ucx/fabric.h"
#include "dataplane/transfer/ucx/memory.h"

namespace penstock::transfer::ucx {

// The registration of places with UCX as CUDA memory.
class GpuPlaces final : public Registration {
 public:
  GpuPlaces(absl::Span<std::byte> places, Fabric& fabric, Handle handle, bool flush,
            DeviceBackend& backend, int device)
      : Registration(places),
        fabric_(fabric),
        handle_(handle),
        flush_(flush),
        backend_(backend),
        device_(device) {}
  ~GpuPlaces() override { fabric_.Unregister(handle_); }

  Handle handle() const { return handle_; }
  bool flush() const { return flush_; }  // whether to flush after each receive
  // Calls `receive` with the device's context current, which UCX up to 1.17 needs.
  absl::Status WithContext(absl::FunctionRef<absl::Status()> receive) const {
    return backend_.WithContext(device_, receive);
  }

 private:
  Fabric& fabric_;
  const Handle handle_;
  const bool flush_;
  DeviceBackend& backend_;
  const int device_;
};

// Returns a function that makes the checks of gpu_direct.h; the function's error is the verdict.
// `resources` must outlive all places.
GpuDirectPool::Open OpenGpuPlaces(const Resources& resources);

// REQUIRES: the place was opened by OpenGpuPlaces().
inline const GpuPlaces& GpuPlacesOf(const DevicePlace& place) {
  return static_cast<const GpuPlaces&>(place.registration());
}

}  // namespace penstock::transfer::ucx
