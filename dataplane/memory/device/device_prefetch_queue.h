// SPDX-License-Identifier: Apache-2.0
// The elements of one replica on their way to its device. Elements that the pipeline has read ahead
// are copied while they wait in host memory, up to `depth` elements ahead of the last delivered
// element. Events release slots and places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/device/device.h"
#include "dataplane/memory/device/device_copy_engine.h"
#include "dataplane/memory/device/gpu_direct_pool.h"
#include "penstock/device_element.h"
#include "penstock/element.h"

namespace penstock {

struct DevicePrefetchQueueOptions {
  int device = 0;
  int depth = 1;  // elements copied ahead of the delivered ones; 0: none
  // The maximum number of delivered elements that still exist or that the device still reads.
  int held = 2;
  absl::Duration stop_within = absl::Seconds(2);  // same as DeviceCopyEngineOptions::stop_within
};

// Any thread may call its methods.
class DevicePrefetchQueue {
 public:
  // Allocates memory on the device when the first element arrives.
  DevicePrefetchQueue(DeviceBackend& backend, const DevicePrefetchQueueOptions& options)
      : backend_(backend), options_(options) {}
  const DevicePrefetchQueueOptions& options() const { return options_; }

  // Elements in places of `gpu_direct_pool` are already on the device and are not copied. Call this
  // before the first such element.
  void UseGpuDirect(std::unique_ptr<GpuDirectPool> gpu_direct_pool) {
    gpu_direct_pool_ = std::move(gpu_direct_pool);
  }
  GpuDirectPool* gpu_direct_pool() const { return gpu_direct_pool_.get(); }  // or nullptr

  // Announces that `element` will be taken after the elements announced earlier. Keeps a handle to
  // the element until then.
  void Prefetch(const Element& element);

  // Returns the values of `element`, whose copy began at Prefetch() or begins now. Drops elements
  // that were announced earlier but not taken. nullopt if no place on the device is free yet: try
  // again. ResourceExhausted if no place can become free, because all are held.
  absl::StatusOr<std::optional<DeviceElement>> TryTake(const Element& element);

  // Drops all elements that Prefetch() announced.
  void Forget();

  // Releases the host slots whose copies are done, and returns the number of copies still in
  // progress. The owner must call it regularly: nothing else returns these slots.
  int Progress();

  DeviceCopyStats stats() const;

 private:
  struct Waiting {
    Element element;
    DeviceElement on_device;  // empty: the copy has not begun
    bool refused = false;     // the device refused; tried again in TryTake()
  };

  int places() const { return options_.depth + options_.held; }
  // Same as GpuDirectPool::Take(), and also counts the element.
  DeviceElement TakeDirect(const Element& element) REQUIRES(mu_);
  absl::Status MakeRoom(const Element& element) REQUIRES(mu_);
  absl::StatusOr<DeviceElement> StartCopy(const Element& element) REQUIRES(mu_);
  void StartCopies() REQUIRES(mu_);

  DeviceBackend& backend_;
  const DevicePrefetchQueueOptions options_;
  std::unique_ptr<GpuDirectPool> gpu_direct_pool_;  // constant once elements arrive

  mutable Mutex mu_;
  std::unique_ptr<DeviceCopyEngine> engine_ GUARDED_BY(mu_);
  size_t place_bytes_ GUARDED_BY(mu_) = 0;
  // Engines with smaller places, which are kept until their copies are done.
  std::vector<std::unique_ptr<DeviceCopyEngine>> outgrown_ GUARDED_BY(mu_);
  std::deque<Waiting> waiting_ GUARDED_BY(mu_);  // in the order in which they will be taken
  DeviceCopyStats stats_ GUARDED_BY(mu_);
};

}  // namespace penstock
