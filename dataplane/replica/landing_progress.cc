// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/landing_progress.h"

#include <chrono>
#include <utility>

#include "control/sync/mutex.h"

namespace penstock::replica {
namespace {

// Between two looks at the devices: while copies are under way, and while none is.
constexpr std::chrono::microseconds kBusy{200};
constexpr std::chrono::microseconds kIdle{2000};

}  // namespace

LandingProgress::LandingProgress(std::shared_ptr<const DeviceQueues> queues)
    : queues_(std::move(queues)), thread_([this] { Run(); }) {}

LandingProgress::~LandingProgress() {
  {
    MutexLock lock(mu_);
    stop_ = true;
  }
  stop_now_.notify_all();
  thread_.join();
}

void LandingProgress::Run() {
  while (true) {
    int held = 0;
    for (const std::unique_ptr<DeviceQueue>& queue : *queues_)
      if (queue != nullptr) held += queue->Progress();
    MutexLock lock(mu_);
    if (stop_now_.wait_for(lock, held > 0 ? kBusy : kIdle,
                           [this]() REQUIRES(mu_) { return stop_; }))
      return;
  }
}

}  // namespace penstock::replica
