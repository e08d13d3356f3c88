// SPDX-License-Identifier: Apache-2.0
// Whether this process page-locks the segments that receive elements, so that a
// device copies from them by itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/observe/event_log.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/device.h"
#include "dataplane/memory/fork_guard.h"
#include "dataplane/memory/registrar.h"

namespace penstock {

enum class PageLockMode {
  kAuto,  // as soon as this process uses a device; that there is none is nothing to speak of
  kOn,    // from the first segment on; if it cannot be, an event says why
  kOff,
};
// "auto", "on" or "off"; InvalidArgument lists them.
absl::StatusOr<PageLockMode> ParsePageLockMode(std::string_view text);

class PageLock;

// To page-lock takes a context on some GPU, of some hundred MB, which also makes CUDA useless to
// children that are forked later. So under kAuto nothing begins until the process uses a device,
// through us or through others. Any thread.
class PageLocking {
 public:
  // What PENSTOCK_PAGE_LOCK says (auto, if it says nothing), on the device that is
  // linked in. A forked child has one of its own, since its parent's may be locked for ever.
  static PageLocking& ForProcess();

  PageLocking(PageLockMode mode, DeviceBackend& backend, std::shared_ptr<EventLog> events);

  // This process is about to use that device: new memory lies on its NUMA node (numa.h). Page-locks
  // one page, so that what starts slowly does so here, then all memory that waits for a device.
  void UseDevice(int device);

  // Page-locks `memory`, once per segment and off the data path. Where it is off, or
  // if that memory cannot be, nullptr: all works without, only slower. Why is an event
  // ("page_lock_refused") the first time, and counted always: the metrics
  // penstock_page_locks_total and penstock_page_locks_refused_total.
  std::unique_ptr<Registration> Lock(absl::Span<std::byte> memory);
  // The same for memory that is made before it is known whether a device will read it. What waits
  // is page-locked by UseDevice(), or by the next call of another method once others use a device.
  std::unique_ptr<PageLock> LockOnceInUse(absl::Span<std::byte> memory);

  // Both begin as Lock() does, if others use a device by now.
  bool on();
  std::string state();  // "on", or "off: " and the reason

 private:
  friend class PageLock;
  // Begins if it has not, and may.
  void Decide() REQUIRES(mu_);
  void ComeNear(int device) REQUIRES(mu_);
  void Begin() REQUIRES(mu_);
  absl::Status Try();
  std::unique_ptr<Registration> Register(absl::Span<std::byte> memory);
  void Refused(const absl::Status& why, size_t bytes);

  const PageLockMode mode_;
  DeviceBackend& backend_;
  const std::shared_ptr<EventLog> events_;
  std::atomic<bool> refusal_logged_ = false;

  Mutex mu_;
  // Why nothing is page-locked; OK if it is; nullopt until a device is used.
  std::optional<absl::Status> off_ GUARDED_BY(mu_);
  std::set<int> near_ GUARDED_BY(mu_);  // devices whose node memory lies on, if they have one
  std::set<PageLock*> waiting_ GUARDED_BY(mu_);
};

// That a piece of memory is page-locked, or will be; undone when destroyed, which must be while the
// memory is still mapped and no device reads it. Its PageLocking outlives it.
class PageLock {
 public:
  ~PageLock();
  PageLock(const PageLock&) = delete;
  PageLock& operator=(const PageLock&) = delete;

 private:
  friend class PageLocking;
  PageLock(PageLocking& locking, absl::Span<std::byte> memory)
      : locking_(locking), memory_(memory) {}

  const ForkGuard in_creator_;
  PageLocking& locking_;
  const absl::Span<std::byte> memory_;
  std::unique_ptr<Registration> registration_;  // guarded by locking_.mu_
};

}  // namespace penstock
