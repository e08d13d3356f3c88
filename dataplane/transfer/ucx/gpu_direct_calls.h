// SPDX-License-Identifier: Apache-2.0
// The calls of gpu_direct.h, on UCX and a GPU's driver.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "dataplane/memory/device.h"
#include "dataplane/memory/gpu_direct_driver.h"
#include "dataplane/transfer/ucx/fabric.h"
#include "dataplane/transfer/ucx/gpu_direct.h"

namespace penstock::transfer::ucx {

class UcxGpuDirect final : public GpuDirectCalls {
 public:
  // All outlive it. Receives are of messages that were offered to `worker`, on its thread,
  // and their `done` is called inside its Progress(), or its destruction. nullptr: only to decide.
  // `now` is the time that rates are measured with.
  UcxGpuDirect(Fabric& fabric, Worker* worker, DeviceBackend& backend, GpuDirectDriver& driver,
               std::function<absl::Time()> now = absl::Now);
  ~UcxGpuDirect() override;

  bool UcxKnowsCuda() override { return fabric_.knows_cuda(); }
  absl::StatusOr<GpuDirectFacts> AskDriver(int device) override { return driver_.Ask(device); }
  absl::StatusOr<MemoryKind> KindOf(const void* address) override {
    return backend_.KindOf(address);
  }
  absl::StatusOr<Handle> RegisterAsCuda(absl::Span<std::byte> slots) override {
    return fabric_.Register(slots, MemoryType::kCuda);
  }
  absl::StatusOr<bool> SaysCuda(Handle handle) override;
  void Deregister(Handle handle) override { fabric_.Unregister(handle); }
  // Between two worker objects of this process: over the NIC and back, as its lanes are.
  // Takes some tens of milliseconds; DeadlineExceeded if nothing came in 10 s: then
  // the slots may be written to later, as long as this process lives.
  absl::StatusOr<GpuDirectTrial> Try(int device, absl::Span<std::byte> slots, Handle handle,
                                     bool flush) override;
  absl::Status Receive(Offered offered, absl::Span<std::byte> body, Handle handle,
                       std::function<void(absl::Status)> done) override;
  absl::Status FlushWrites(int device) override { return driver_.FlushWrites(device); }

 private:
  struct Receiving;

  Fabric& fabric_;
  Worker* const worker_;
  DeviceBackend& backend_;
  GpuDirectDriver& driver_;
  const std::function<absl::Time()> now_;
  std::vector<std::unique_ptr<Receiving>> receivings_;
  std::vector<Receiving*> idle_;  // of them
};

}  // namespace penstock::transfer::ucx
