// SPDX-License-Identifier: Apache-2.0
// Implements the calls of gpu_direct.h with UCX and a GPU's driver.
#pragma once

#include <functional>
#include <utility>

#include "absl/time/time.h"
#include "control/sync/clock.h"
#include "dataplane/memory/device/device.h"
#include "dataplane/memory/device/gpu_direct_driver.h"
#include "dataplane/transfer/ucx/fabric.h"
#include "dataplane/transfer/ucx/gpu_direct.h"

namespace penstock::transfer::ucx {

class UcxGpuDirect final : public GpuDirectCalls {
 public:
  // All arguments must outlive this object. `now` is the clock for measuring rates.
  UcxGpuDirect(Fabric& fabric, DeviceBackend& backend, GpuDirectDriver& driver, ServedGpu& served,
               std::function<absl::Time()> now = BootTime)
      : fabric_(fabric),
        backend_(backend),
        driver_(driver),
        served_(served),
        now_(std::move(now)) {}

  bool UcxKnowsCuda() override { return fabric_.knows_cuda(); }
  absl::Status ServesGpu(int device) override { return served_.Serve(device, fabric_.release()); }
  absl::StatusOr<GpuDirectFacts> AskDriver(int device) override { return driver_.Ask(device); }
  absl::StatusOr<MemoryKind> KindOf(const void* address) override {
    return backend_.KindOf(address);
  }
  absl::StatusOr<Handle> RegisterAsCuda(absl::Span<std::byte> slots) override {
    return fabric_.Register(slots, MemoryType::kCuda);
  }
  absl::StatusOr<bool> SaysCuda(Handle handle) override;
  void Deregister(Handle handle) override { fabric_.Unregister(handle); }
  // Sends between two worker objects of this process: over the NIC and back, on the NIC's lanes.
  // Takes tens of milliseconds; DeadlineExceeded if nothing arrives within 10 s.
  absl::StatusOr<GpuDirectTrial> Try(int device, absl::Span<std::byte> slots, Handle handle,
                                     bool flush) override;

 private:
  Fabric& fabric_;
  DeviceBackend& backend_;
  GpuDirectDriver& driver_;
  ServedGpu& served_;
  const std::function<absl::Time()> now_;
};

}  // namespace penstock::transfer::ucx
