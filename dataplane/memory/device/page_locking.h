// SPDX-License-Identifier: Apache-2.0
// Page-locks the segments that receive elements, so that a device copies from them directly.
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
#include "dataplane/memory/device/device.h"
#include "dataplane/memory/fork_guard.h"
#include "dataplane/memory/registrar.h"

namespace penstock {

enum class PageLockMode {
  kAuto,  // begins once this process uses a device; a missing device is not reported
  kOn,    // begins with the first segment; an event reports a failure with the reason
  kOff,
};
// Parses "auto", "on" or "off"; InvalidArgument lists them.
absl::StatusOr<PageLockMode> ParsePageLockMode(std::string_view text);

class PageLock;

// Page-locking needs a context on some GPU. A context takes hundreds of MB, and makes CUDA unusable
// in children that are forked later. Therefore, under kAuto nothing begins until the process uses a
// device, through Penstock or through other code. Any thread.
class PageLocking {
 public:
  // Returns the process's instance, in the mode of PENSTOCK_PAGE_LOCK (auto if it is not set), on
  // the linked backend. A forked child has its own, because its parent's lock may be held forever.
  static PageLocking& ForProcess();

  PageLocking(PageLockMode mode, DeviceBackend& backend, std::shared_ptr<EventLog> events);

  // Declares that this process is about to use `device`: new memory is placed on its NUMA node
  // (numa.h). First page-locks one page, so that CUDA's slow start happens here, and then all the
  // memory that waits for a device.
  void UseDevice(int device);

  // Page-locks `memory`. Call it once per segment, and never on a data path. Returns nullptr if
  // page-locking is off or `memory` cannot be locked; everything then works, but more slowly. The
  // first refusal is logged as the event "page_lock_refused". The metrics penstock_page_locks_total
  // and penstock_page_locks_refused_total count all attempts.
  std::unique_ptr<Registration> Lock(absl::Span<std::byte> memory);
  // Same as Lock(), for memory that is made before it is known whether a device will read it.
  // UseDevice() page-locks the waiting memory. Once other code uses a device, the next call of any
  // other method does the same.
  std::unique_ptr<PageLock> LockOnceInUse(absl::Span<std::byte> memory);

  // Like Lock(), on() and state() begin to page-lock if other code uses a device by now.
  bool on();
  std::string state();  // "on", or "off: " and the reason

 private:
  friend class PageLock;
  // Begins to page-lock if this is allowed and has not begun.
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
  // OK if memory is page-locked; an error with the reason if it is not; nullopt until a device is
  // used.
  std::optional<absl::Status> off_ GUARDED_BY(mu_);
  std::set<int> near_ GUARDED_BY(mu_);  // devices whose NUMA node, if known, was passed on
  std::set<PageLock*> waiting_ GUARDED_BY(mu_);
};

// The page-lock of a piece of memory, now or once a device is used. The destructor unlocks the
// memory, and must run while the memory is still mapped and no device reads it. The PageLocking
// object must outlive this object.
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
