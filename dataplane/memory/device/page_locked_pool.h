// SPDX-License-Identifier: Apache-2.0
// Slots for elements that a device will copy, in memory that the device reads directly.
#pragma once

#include <memory>

#include "dataplane/memory/device/page_locking.h"
#include "dataplane/memory/pool.h"

namespace penstock {

// Returns a pool whose segments `locking` page-locks when they are made. If `locking` refuses a
// segment, its slots are lent nevertheless: the device copies from them through memory of the
// driver, and PageLocking reports why. `locking` must outlive the pool and its slots.
std::shared_ptr<Pool> MakePageLockedPool(PageLocking& locking);

// Returns the process's pool, which uses PageLocking::ForProcess(); DefaultPool() if page-locking
// is off. Call PageLocking::UseDevice() first.
Pool& PageLockedPool();

}  // namespace penstock
