// SPDX-License-Identifier: Apache-2.0
// Copies the elements of one reader to a device, and begins to copy the next ones while the reader
// uses one. A distributed iterator does the same for its replicas; this class is for an iterator
// without a group.
#pragma once

#include <atomic>
#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/memory/pool.h"
#include "dataplane/replica/copy_completion_thread.h"
#include "dataplane/replica/device_prefetch.h"
#include "penstock/dataset.h"
#include "penstock/device_element.h"

#pragma GCC visibility push(default)
namespace penstock::replica {

// Must outlive the iterator over Reading(). Any thread may call its methods. An element that
// another thread takes out of order is copied again.
class DeviceReader {
 public:
  // NotFound if the process has no such device, ResourceExhausted if it cannot start a thread.
  static absl::StatusOr<std::unique_ptr<DeviceReader>> Make(int device);

  // Returns the dataset to iterate over in place of `dataset`. It has the same elements, but reads
  // two elements ahead and begins to copy them. States belong to the returned dataset.
  Dataset Reading(const Dataset& dataset) const;
  // Returns the pool to read into. Its memory is page-locked, so that the device copies from it
  // directly, or its elements are already on the device.
  Pool& pool() const;

  // Returns an element of Reading() on the device; its slot is returned when the copy is done.
  // Waits for a free place. ResourceExhausted if elements that still exist hold all places; the
  // reader may keep one element when it requests the next. Cancelled after Stop().
  absl::StatusOr<DeviceElement> CopyToDevice(const Element& element) const;
  // Call it when the iterator moves to another position.
  void Forget() const;
  void Stop() { stopped_ = true; }

 private:
  DeviceReader(std::shared_ptr<const DevicePrefetchQueues> queues,
               std::unique_ptr<CopyCompletionThread> progress);

  const std::shared_ptr<const DevicePrefetchQueues> queues_;  // one queue
  const std::unique_ptr<CopyCompletionThread> progress_;
  std::atomic<bool> stopped_ = false;  // CopyToDevice() polls: no stop token is needed
};

}  // namespace penstock::replica
#pragma GCC visibility pop
