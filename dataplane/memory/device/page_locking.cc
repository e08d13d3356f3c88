// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/device/page_locking.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/observe/metrics.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/numa.h"
#include "dataplane/memory/shared_segment.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr char kVariable[] = "PENSTOCK_PAGE_LOCK";

// An invalid value is reported as an event, because it must not end a training run.
PageLockMode ModeOfEnvironment(EventLog& events) {
  const char* text = std::getenv(kVariable);
  if (text == nullptr || *text == '\0') return PageLockMode::kAuto;
  const absl::StatusOr<PageLockMode> mode = ParsePageLockMode(text);
  if (!mode.ok()) {
    events.Write({"page_lock_refused",
                  {{"reason", absl::StrCat(kVariable, ": ", std::string(mode.status().message()),
                                           "; auto is used instead")}}});
  }
  return mode.value_or(PageLockMode::kAuto);
}

}  // namespace

absl::StatusOr<PageLockMode> ParsePageLockMode(std::string_view text) {
  if (text == "auto") return PageLockMode::kAuto;
  if (text == "on") return PageLockMode::kOn;
  if (text == "off") return PageLockMode::kOff;
  return absl::InvalidArgumentError(
      absl::StrCat("'", std::string(text), "' is not one of auto, on, off"));
}

PageLocking& PageLocking::ForProcess() {
  struct Made {
    const ForkGuard in_creator;
    PageLocking locking;
  };
  static std::atomic<Made*> made = nullptr;
  Made* now = made.load();
  if (now != nullptr && now->in_creator) return now->locking;
  const std::shared_ptr<EventLog> events = StderrEventLog();
  auto* const mine = new Made{{}, {ModeOfEnvironment(*events), LinkedDeviceBackend(), events}};
  if (made.compare_exchange_strong(now, mine)) return mine->locking;  // used until the process ends
  delete mine;
  return now->locking;
}

PageLocking::PageLocking(PageLockMode mode, DeviceBackend& backend,
                         std::shared_ptr<EventLog> events)
    : mode_(mode), backend_(backend), events_(std::move(events)) {
  if (mode_ == PageLockMode::kOff) off_ = absl::NotFoundError("it was set to off");
}

void PageLocking::UseDevice(int device) {
  MutexLock lock(mu_);
  ComeNear(device);
  if (off_.has_value()) return;
  // This makes the device's context current for page-locking. Without it, Begin() would create a
  // context on a different device.
  const absl::Status used = backend_.MakeEvent(device).status();
  if (used.ok() || !backend_.Count().ok()) Begin();
}

void PageLocking::Decide() {
  if (off_.has_value()) return;
  const std::optional<int> in_use = backend_.InUse();
  if (in_use.has_value()) ComeNear(*in_use);
  if (mode_ == PageLockMode::kOn || in_use.has_value()) Begin();
}

void PageLocking::ComeNear(int device) {
  if (near_.contains(device)) return;
  const absl::StatusOr<DeviceInfo> info = backend_.Describe(device);
  if (!info.ok()) return;
  UseMemoryNode(NodeOfPci(info->pci_address));
  near_.insert(device);
}

void PageLocking::Begin() {
  off_ = Try();
  if (!off_->ok() && (mode_ == PageLockMode::kOn || !absl::IsNotFound(*off_))) Refused(*off_, 0);
  for (PageLock* const lock : waiting_) {
    if (off_->ok()) lock->registration_ = Register(lock->memory_);
  }
  waiting_.clear();
}

absl::Status PageLocking::Try() {
  RETURN_IF_ERROR(backend_.Count().status());
  ASSIGN_OR_RETURN(const SharedSegment page, SharedSegment::Create(kPageBytes));
  return backend_.page_lock().Register(page.memory()).status();
}

std::unique_ptr<Registration> PageLocking::Lock(absl::Span<std::byte> memory) {
  return on() ? Register(memory) : nullptr;
}

std::unique_ptr<PageLock> PageLocking::LockOnceInUse(absl::Span<std::byte> memory) {
  std::unique_ptr<PageLock> page_lock(new PageLock(*this, memory));
  MutexLock lock(mu_);
  Decide();
  if (!off_.has_value()) {
    waiting_.insert(page_lock.get());
  } else if (off_->ok()) {
    page_lock->registration_ = Register(memory);
  }
  return page_lock;
}

std::unique_ptr<Registration> PageLocking::Register(absl::Span<std::byte> memory) {
  absl::StatusOr<std::unique_ptr<Registration>> locked = backend_.page_lock().Register(memory);
  if (!locked.ok()) {
    Refused(locked.status(), memory.size());
    return nullptr;
  }
  static Counter& locks = ProcessMetrics().GetCounter("penstock_page_locks_total",
                                                      "Segments page-locked for a device.");
  locks.Add();
  return *std::move(locked);
}

void PageLocking::Refused(const absl::Status& why, size_t bytes) {
  static Counter& refused = ProcessMetrics().GetCounter(
      "penstock_page_locks_refused_total",
      "Segments that could not be page-locked and are copied more slowly.");
  refused.Add();
  if (refusal_logged_.exchange(true)) return;
  events_->Write({"page_lock_refused",
                  {{"bytes", absl::StrCat(bytes)}, {"reason", std::string(why.message())}}});
}

bool PageLocking::on() {
  MutexLock lock(mu_);
  Decide();
  return off_.has_value() && off_->ok();
}

std::string PageLocking::state() {
  MutexLock lock(mu_);
  Decide();
  if (!off_.has_value()) return "off: this process uses no device yet";
  return off_->ok() ? "on" : absl::StrCat("off: ", std::string(off_->message()));
}

PageLock::~PageLock() {
  // In a forked child the lock may be held forever, and the page-locked memory is the parent's.
  if (!in_creator_) return;
  MutexLock lock(locking_.mu_);
  locking_.waiting_.erase(this);
}

}  // namespace penstock
