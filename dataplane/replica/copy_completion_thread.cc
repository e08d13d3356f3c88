// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/copy_completion_thread.h"

#include <chrono>
#include <utility>

#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"

namespace penstock::replica {
namespace {

// The time between two polls of the devices: kBusy while copies are in progress, else kIdle.
constexpr absl::Duration kBusy = absl::Microseconds(200);
constexpr absl::Duration kIdle = absl::Milliseconds(2);

}  // namespace

absl::StatusOr<std::unique_ptr<CopyCompletionThread>> CopyCompletionThread::Start(
    std::shared_ptr<const DevicePrefetchQueues> queues) {
  std::unique_ptr<CopyCompletionThread> progress(new CopyCompletionThread(std::move(queues)));
  ASSIGN_OR_RETURN(progress->thread_,
                   StartThread("copies to devices", [p = progress.get()] { p->Run(); }));
  return progress;
}

CopyCompletionThread::CopyCompletionThread(std::shared_ptr<const DevicePrefetchQueues> queues)
    : queues_(std::move(queues)) {}

CopyCompletionThread::~CopyCompletionThread() {
  {
    MutexLock lock(mu_);
    stop_ = true;
  }
  stop_now_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void CopyCompletionThread::Run() {
  while (true) {
    int held = 0;
    for (const std::unique_ptr<DevicePrefetchQueue>& queue : *queues_)
      if (queue != nullptr) held += queue->Progress();
    MutexLock lock(mu_);
    if (stop_now_.WaitFor(lock, held > 0 ? kBusy : kIdle, [this]() REQUIRES(mu_) { return stop_; }))
      return;
  }
}

}  // namespace penstock::replica
