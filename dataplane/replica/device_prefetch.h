// SPDX-License-Identifier: Apache-2.0
// A node that passes elements read ahead to the prefetch queues of a pipeline's replicas.
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

// Lets NICs write bodies to the queue's device directly, for elements that are read into
// queue.gpu_direct_pool(). Other elements that are read into that pool are in page-locked memory.
void EnableGpuDirect(DevicePrefetchQueue& queue);

// Returns the elements of `dataset`, and announces element number n to the queues of the `sharing`
// replicas that begin at (`first` + n mod `count`) × `sharing`. An error counts as an element. Put
// the node before a Prefetch, whose thread then begins the copies. The node does nothing once the
// queues are destroyed.
Dataset AddDevicePrefetch(const Dataset& dataset,
                          const std::shared_ptr<const DevicePrefetchQueues>& queues, int first,
                          int count, int sharing);

}  // namespace penstock::replica
