// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/device_reader.h"

#include <optional>
#include <utility>

#include "control/sync/thread.h"
#include "dataplane/memory/device/device.h"
#include "dataplane/memory/device/gpu_direct_pool.h"
#include "dataplane/memory/device/page_locking.h"
#include "dataplane/replica/input_plan.h"
#include "include/status_macros.h"

namespace penstock::replica {
namespace {

// The number of elements read ahead. The number is a constant because states depend on it.
constexpr int kAhead = 2;

std::shared_ptr<const DevicePrefetchQueues> QueueOf(int device) {
  PageLocking::ForProcess().UseDevice(device);
  auto queues = std::make_shared<DevicePrefetchQueues>();
  queues->push_back(std::make_unique<DevicePrefetchQueue>(
      LinkedDeviceBackend(), DevicePrefetchQueueOptions{.device = device, .depth = kAhead}));
  EnableGpuDirect(*queues->front());
  return queues;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceReader>> DeviceReader::Make(int device) {
  RETURN_IF_ERROR(LinkedDeviceBackend().Describe(device).status());
  std::shared_ptr<const DevicePrefetchQueues> queues = QueueOf(device);
  ASSIGN_OR_RETURN(std::unique_ptr<CopyCompletionThread> progress,
                   CopyCompletionThread::Start(queues));
  return std::unique_ptr<DeviceReader>(new DeviceReader(std::move(queues), std::move(progress)));
}

DeviceReader::DeviceReader(std::shared_ptr<const DevicePrefetchQueues> queues,
                           std::unique_ptr<CopyCompletionThread> progress)
    : queues_(std::move(queues)), progress_(std::move(progress)) {}

Pool& DeviceReader::pool() const {
  return *queues_->front()->gpu_direct_pool();
}

Dataset DeviceReader::Reading(const Dataset& dataset) const {
  return Buffered(AddDevicePrefetch(dataset, queues_, /*first=*/0, /*count=*/1, /*sharing=*/1),
                  kAhead);
}

absl::StatusOr<DeviceElement> DeviceReader::CopyToDevice(const Element& element) const {
  while (!stopped_) {
    ASSIGN_OR_RETURN(std::optional<DeviceElement> on_device, queues_->front()->TryTake(element));
    if (on_device.has_value()) return *std::move(on_device);
    Sleep(kPlacePolls);
  }
  return absl::CancelledError("the iterator was stopped");
}

void DeviceReader::Forget() const {
  queues_->front()->Forget();
}

}  // namespace penstock::replica
