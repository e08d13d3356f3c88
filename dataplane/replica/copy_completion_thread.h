// SPDX-License-Identifier: Apache-2.0
// Returns host slots as soon as the copies from them to devices are done. This must happen even if
// the trainer makes no calls, because the producer of the elements may be waiting for slots.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "dataplane/replica/device_prefetch.h"
#include "penstock/export.h"

namespace penstock::replica {

// Has a thread, which runs for as long as this object exists.
class PENSTOCK_EXPORT CopyCompletionThread {
 public:
  // ResourceExhausted if the process cannot start a thread.
  static absl::StatusOr<std::unique_ptr<CopyCompletionThread>> Start(
      std::shared_ptr<const DevicePrefetchQueues> queues);
  ~CopyCompletionThread();

 private:
  explicit CopyCompletionThread(std::shared_ptr<const DevicePrefetchQueues> queues);
  void Run();

  const std::shared_ptr<const DevicePrefetchQueues> queues_;
  Mutex mu_;
  Condition stop_now_;
  bool stop_ GUARDED_BY(mu_) = false;
  Thread thread_;
};

}  // namespace penstock::replica
