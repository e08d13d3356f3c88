// SPDX-License-Identifier: Apache-2.0
// Slots for elements that a device will copy: made in memory that it reads by itself.
#pragma once

#include <memory>

#include "dataplane/memory/page_locking.h"
#include "dataplane/memory/pool.h"

namespace penstock {

// A pool whose segments `locking` page-locks when they are made. One that it refuses is
// lent all the same: the device copies it through memory of the driver's. PageLocking
// says why. `locking` outlives the pool and its slots.
std::shared_ptr<Pool> MakePageLockedPool(PageLocking& locking);

// The process's, on PageLocking::ForProcess(); DefaultPool() where that is off. Name the device
// first (PageLocking::UseDevice()).
Pool& PageLockedPool();

}  // namespace penstock
