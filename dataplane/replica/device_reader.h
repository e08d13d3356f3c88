// SPDX-License-Identifier: Apache-2.0
// Elements that one reader gets on a device, with the next ones on their way while it uses one:
// what a distributed iterator does for its replicas, for an iterator without a group.
#pragma once

#include <atomic>
#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/memory/pool.h"
#include "dataplane/replica/copy_completion_thread.h"
#include "dataplane/replica/device_prefetch.h"
#include "penstock/dataset.h"
#include "penstock/device_element.h"

namespace penstock::replica {

// Outlives the iterator over Reading(). Any thread; an element that another thread takes out of
// turn is copied anew.
class DeviceReader {
 public:
  // NotFound if the process has no such device, ResourceExhausted if it gets no thread.
  static absl::StatusOr<std::unique_ptr<DeviceReader>> Make(int device);

  // What is to be iterated over in place of `dataset`: the same elements, of which two are read,
  // and their copies begun, before they are asked for. States are of this one.
  Dataset Reading(const Dataset& dataset) const;
  // Where it is to be read into: from there the device copies by itself, or it is there already.
  Pool& pool() const;

  // An element of Reading(), on the device; its slot goes back when the copy is done. Waits for a
  // free place; ResourceExhausted where all are held by elements that were not let go of, of which
  // the reader may have one when it asks for the next. Cancelled after Stop().
  absl::StatusOr<DeviceElement> CopyToDevice(const Element& element) const;
  // The iterator goes to another position.
  void Forget() const;
  void Stop() { stopped_ = true; }

 private:
  DeviceReader(std::shared_ptr<const DevicePrefetchQueues> queues,
               std::unique_ptr<CopyCompletionThread> progress);

  const std::shared_ptr<const DevicePrefetchQueues> queues_;  // one
  const std::unique_ptr<CopyCompletionThread> progress_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace penstock::replica
