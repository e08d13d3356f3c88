// SPDX-License-Identifier: Apache-2.0
// Gives host slots back as their copies to devices end, whatever the trainer does: who
// made the elements may wait for just these slots.
#pragma once

#include <condition_variable>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "control/sync/mutex.h"
#include "dataplane/replica/device_prefetch.h"

namespace penstock::replica {

// A thread of its own while it lives.
class CopyCompletionThread {
 public:
  // ResourceExhausted where the process gets no thread.
  static absl::StatusOr<std::unique_ptr<CopyCompletionThread>> Start(
      std::shared_ptr<const DevicePrefetchQueues> queues);
  ~CopyCompletionThread();

 private:
  explicit CopyCompletionThread(std::shared_ptr<const DevicePrefetchQueues> queues);
  void Run();

  const std::shared_ptr<const DevicePrefetchQueues> queues_;
  Mutex mu_;
  std::condition_variable stop_now_;
  bool stop_ GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace penstock::replica
