// SPDX-License-Identifier: Apache-2.0
// The elements of one replica on their way to its device. What its pipeline has read
// ahead is copied while it still waits in host memory, so many elements ahead of what
// was taken; slots and places go back by events.
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
#include "dataplane/memory/device.h"
#include "dataplane/memory/device_copy_engine.h"
#include "dataplane/memory/gpu_direct_pool.h"
#include "penstock/device_element.h"
#include "penstock/element.h"

namespace penstock {

struct DevicePrefetchQueueOptions {
  int device = 0;
  int depth = 1;  // elements on their way ahead of those taken; 0: none
  // Elements that were taken and are not let go of, or still read by the device.
  int held = 2;
  absl::Duration stop_within = absl::Seconds(2);  // DeviceCopyEngineOptions
};

// Any thread.
class DevicePrefetchQueue {
 public:
  // Memory on the device is taken when the first element is there.
  DevicePrefetchQueue(DeviceBackend& backend, const DevicePrefetchQueueOptions& options)
      : backend_(backend), options_(options) {}
  const DevicePrefetchQueueOptions& options() const { return options_; }

  // Elements in places of `gpu_direct_pool` are on the device already, and not copied. To be
  // called before the first of them.
  void UseGpuDirect(std::unique_ptr<GpuDirectPool> gpu_direct_pool) {
    gpu_direct_pool_ = std::move(gpu_direct_pool);
  }
  GpuDirectPool* gpu_direct_pool() const { return gpu_direct_pool_.get(); }  // or nullptr

  // `element` will be taken, behind those that this was told of before. A handle on it
  // is kept until then.
  void Prefetch(const Element& element);

  // The values of `element`, on their way since Prefetch() or from now on. What Prefetch() was
  // told of before it and was not taken is forgotten. nullopt if no place on the device
  // is free yet: try again. ResourceExhausted if none will be: all are held.
  absl::StatusOr<std::optional<DeviceElement>> TryTake(const Element& element);

  // Forgets all that Prefetch() was told of.
  void Forget();

  // Gives back the host slots whose copies are done, and returns how many are still
  // under way. Somebody has to call it: slots come back only so.
  int Progress();

  DeviceLandingStats stats() const;

 private:
  struct Waiting {
    Element element;
    DeviceElement on_device;  // empty: not begun yet
    bool refused = false;     // by the device: tried again when it is taken
  };

  int places() const { return options_.depth + options_.held; }
  // As GpuDirectPool::Take().
  DeviceElement TakeDirect(const Element& element) REQUIRES(mu_);
  absl::Status MakeRoom(const Element& element) REQUIRES(mu_);
  absl::StatusOr<DeviceElement> StartCopy(const Element& element) REQUIRES(mu_);
  void StartCopies() REQUIRES(mu_);

  DeviceBackend& backend_;
  const DevicePrefetchQueueOptions options_;
  std::unique_ptr<GpuDirectPool> gpu_direct_pool_;  // constant once elements come

  mutable Mutex mu_;
  std::unique_ptr<DeviceCopyEngine> engine_ GUARDED_BY(mu_);
  size_t place_bytes_ GUARDED_BY(mu_) = 0;
  // Whose copies are under way.
  std::vector<std::unique_ptr<DeviceCopyEngine>> outgrown_ GUARDED_BY(mu_);
  std::deque<Waiting> waiting_ GUARDED_BY(mu_);  // in the order they will be taken
  DeviceLandingStats stats_ GUARDED_BY(mu_);
};

}  // namespace penstock
