// SPDX-License-Identifier: Apache-2.0
// A node that hands to the prefetch queues of a pipeline's replicas what was read ahead.
#pragma once

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "dataplane/memory/device_prefetch_queue.h"
#include "penstock/dataset.h"

namespace penstock::replica {

// By local replica; nullptr for those whose values stay in host memory.
using DevicePrefetchQueues = std::vector<std::unique_ptr<DevicePrefetchQueue>>;

// Between two looks for a free place of a queue.
inline constexpr absl::Duration kPlacePolls = absl::Microseconds(50);

// Bodies that a NIC can write to the queue's device come there by themselves, of elements that are
// read into queue.gpu_direct_pool(); what else is read into it lies in page-locked memory.
void EnableGpuDirect(DevicePrefetchQueue& queue);

// Gives what `dataset` gives; its element number n is told to the queues of the `sharing`
// replicas from (`first` + n mod `count`) × `sharing` on. An error takes a place as well. It is
// built to stand before a Prefetch, whose thread then begins the copies. Once the queues are gone
// it does nothing.
Dataset AddDevicePrefetch(const Dataset& dataset,
                          const std::shared_ptr<const DevicePrefetchQueues>& queues, int first,
                          int count, int sharing);

}  // namespace penstock::replica
