// SPDX-License-Identifier: Apache-2.0
// Copies the elements of one reader to a device, and begins to copy the next elements while the
// reader uses one. A distributed iterator does this for its replicas; DeviceReader is for an
// iterator without a group of replicas.
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

// Must outlive the iterator over Reading(). Any thread may call the methods. An element that a
// thread takes out of order is copied again.
class DeviceReader {
 public:
  // NotFound if the process has no such device, ResourceExhausted if it cannot start a thread.
  static absl::StatusOr<std::unique_ptr<DeviceReader>> Make(int device);

  // Returns the dataset to iterate over in place of `dataset`. The returned dataset has the
  // elements of `dataset`, but reads two elements ahead and begins to copy them. An iterator's
  // states are valid only for the returned dataset.
  Dataset Reading(const Dataset& dataset) const;
  // Returns the pool to read into. The pool's memory is page-locked, so that the device copies
  // directly from there, or the pool's elements are on the device already.
  Pool& pool() const;

  // Returns a copy of an element of Reading() on the device. The element's slot is returned when
  // the copy is done. Waits for a free place. ResourceExhausted if elements that still exist hold
  // all places; the reader may keep one element when it requests the next one. Cancelled after
  // Stop().
  absl::StatusOr<DeviceElement> CopyToDevice(const Element& element) const;
  // Forgets the elements read ahead. Call this when the iterator moves to another position.
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
