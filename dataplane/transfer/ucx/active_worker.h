// SPDX-License-Identifier: Apache-2.0
// A UCX worker object in use, and the data that decides how long its engine's thread may sleep.
// Used on that thread only, except for Worker::Wake().
#pragma once

#include <algorithm>
#include <memory>

#include "control/sync/clock.h"
#include "dataplane/transfer/ucx/fabric.h"
#include "dataplane/transfer/ucx/memory.h"

namespace penstock::transfer::ucx {

using Clock = SteadyClock;

struct ActiveWorker {
  Resources& resources;
  std::unique_ptr<Worker> worker = nullptr;
  int under_way = 0;                                           // sends and receives
  Clock::time_point next_deadline = Clock::time_point::max();  // of anything that has one

  void LookBy(Clock::time_point deadline) { next_deadline = std::min(next_deadline, deadline); }
};

}  // namespace penstock::transfer::ucx
