// SPDX-License-Identifier: Apache-2.0
// A node that announces elements, when they are read ahead, to the prefetch queues of a pipeline's
// replicas.
#pragma once

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "dataplane/memory/device/device_prefetch_queue.h"
#include "penstock/dataset.h"

namespace penstock::replica {

// One queue for each local replica; nullptr for replicas whose values stay in host memory.
using DevicePrefetchQueues = std::vector<std::unique_ptr<DevicePrefetchQueue>>;

// The time between two attempts to get a free place in a queue.
inline constexpr absl::Duration kPlacePolls = absl::Microseconds(50);

// Lets NICs write the bodies of elements that are read into queue.gpu_direct_pool() directly to the
// queue's device. Elements in that pool whose bodies no NIC writes are in page-locked memory.
void EnableGpuDirect(DevicePrefetchQueue& queue);

// Adds a node that returns the elements of `dataset`. The node announces element number n to the
// queues of the `sharing` replicas from number (`first` + n mod `count`) × `sharing` on. An error
// counts as an element. Put a Prefetch after the node; the thread of this Prefetch then begins the
// copies. The node announces nothing once the queues are destroyed.
Dataset AddDevicePrefetch(const Dataset& dataset,
                          const std::shared_ptr<const DevicePrefetchQueues>& queues, int first,
                          int count, int sharing);

}  // namespace penstock::replica
