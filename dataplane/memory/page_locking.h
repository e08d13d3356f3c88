// SPDX-License-Identifier: Apache-2.0
// Whether this process page-locks the segments that elements land in, so that a
// device copies from them by itself.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/observe/event_log.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/device.h"
#include "dataplane/memory/registrar.h"

namespace penstock {

enum class PageLockMode {
  kAuto,  // if there is a device; that there is none is then nothing to speak of
  kOn,    // and if it cannot be, an event says why
  kOff,
};
// "auto", "on" or "off"; InvalidArgument lists them.
absl::StatusOr<PageLockMode> ParsePageLockMode(std::string_view text);

// Any thread.
class PageLocking {
 public:
  // What PENSTOCK_PAGE_LOCK says (auto, if it says nothing), on the device that is
  // linked in. The first call may take a second, when a driver starts.
  static PageLocking& ForProcess();

  // With a device it page-locks one page at once: what starts slowly does so here.
  PageLocking(PageLockMode mode, DeviceBackend& backend, std::shared_ptr<EventLog> events);

  // Page-locks `memory`, once per segment and off the data path. Without a device, or
  // if that memory cannot be, nullptr: all works without, only slower. Why is an event
  // ("page_lock_refused") the first time, and counted always: the metrics
  // penstock_page_locks_total and penstock_page_locks_refused_total.
  std::unique_ptr<Registration> Lock(absl::Span<std::byte> memory);

  bool on() const { return off_.ok(); }
  // "on", or "off: " and the reason.
  std::string state() const;

 private:
  absl::Status Try();
  void Refused(const absl::Status& why, size_t bytes);

  const PageLockMode mode_;
  DeviceBackend& backend_;
  const std::shared_ptr<EventLog> events_;
  const absl::Status off_;  // why nothing is page-locked; OK if it is

  mutable Mutex mu_;
  bool told_ GUARDED_BY(mu_) = false;
};

}  // namespace penstock
