// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/device/device_prefetch_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "dataplane/element/block.h"
#include "dataplane/memory/device/page_locking.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

size_t BodyBytes(const Element& element) {
  return PrefixOf(element.block().data()).body_bytes;
}

}  // namespace

// Makes sure that `element` fits in a place. When elements grow, allocates larger places; elements
// already on the device stay where they are.
absl::Status DevicePrefetchQueue::MakeRoom(const Element& element) {
  const size_t bytes = std::max<size_t>(BodyBytes(element), 1);
  if (bytes <= place_bytes_) return absl::OkStatus();
  const size_t grown = AlignUp(std::max(bytes, place_bytes_ + place_bytes_ / 4), kPlaceGranularity);
  absl::StatusOr<std::unique_ptr<DeviceCopyEngine>> engine =
      DeviceCopyEngine::Create(backend_, {.device = options_.device,
                                          .places = places(),
                                          .place_bytes = grown,
                                          .stop_within = options_.stop_within});
  RETURN_IF_ERROR(Annotate(engine.status(), "while taking ", places(), " places of ", grown,
                           " bytes on GPU:", options_.device));
  if (engine_ != nullptr) {
    stats_.events += engine_->counters().events;
    ++stats_.grown;
    outgrown_.push_back(std::move(engine_));
  }
  engine_ = *std::move(engine);
  place_bytes_ = grown;
  return absl::OkStatus();
}

DeviceElement DevicePrefetchQueue::TakeDirect(const Element& element) {
  DeviceElement on_device =
      gpu_direct_pool_ == nullptr ? DeviceElement() : gpu_direct_pool_->Take(element);
  if (on_device) ++stats_.direct;
  return on_device;
}

absl::StatusOr<DeviceElement> DevicePrefetchQueue::StartCopy(const Element& element) {
  ASSIGN_OR_RETURN(DeviceElement on_device, engine_->CopyToDevice(element.Share()));
  ++stats_.elements;
  stats_.bytes += static_cast<int64_t>(BodyBytes(element));
  const std::byte* const body =
      element.block().data() + PrefixOf(element.block().data()).head_bytes;
  if (BodyBytes(element) > 0 &&
      backend_.KindOf(body).value_or(MemoryKind::kHost) == MemoryKind::kHost)
    ++stats_.not_page_locked;
  return on_device;
}

void DevicePrefetchQueue::StartCopies() {
  const size_t most = std::min(waiting_.size(), static_cast<size_t>(options_.depth));
  for (size_t i = 0; i < most; ++i) {
    Waiting& next = waiting_[i];
    if (next.on_device || next.refused) continue;
    next.on_device = TakeDirect(next.element);
    if (next.on_device) continue;
    const absl::Status room = MakeRoom(next.element);
    if (room.ok() && engine_->counters().places_in_use == places()) return;
    absl::StatusOr<DeviceElement> on_device = room.ok() ? StartCopy(next.element) : room;
    next.refused = !on_device.ok();
    if (on_device.ok()) next.on_device = *std::move(on_device);
  }
}

void DevicePrefetchQueue::Prefetch(const Element& element) {
  if (options_.depth == 0) return;
  MutexLock lock(mu_);
  waiting_.push_back({element.Share(), DeviceElement()});
  StartCopies();
}

absl::StatusOr<std::optional<DeviceElement>> DevicePrefetchQueue::TryTake(const Element& element) {
  MutexLock lock(mu_);
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& waiting) {
    return waiting.element.block().data() == element.block().data();
  });
  const bool known = found != waiting_.end();
  DeviceElement taken;
  if (known) {
    waiting_.erase(waiting_.begin(), found);
    taken = std::move(waiting_.front().on_device);
  }
  if (taken) {
    ++stats_.ahead;
  } else if (taken = TakeDirect(element); !taken) {
    RETURN_IF_ERROR(MakeRoom(element));
    const DeviceCopyEngineCounters counters = engine_->counters();
    if (counters.places_held == places()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("all ", places(), " places on GPU:", options_.device,
                       " hold values that have not been released; hold at most ", options_.held - 1,
                       " step(s) when you ask for the next one"));
    }
    if (counters.places_in_use == places()) {
      RETURN_IF_ERROR(engine_->device_status());
      ++stats_.waits;
      return std::nullopt;
    }
    ASSIGN_OR_RETURN(taken, StartCopy(element));
  }
  if (known) waiting_.pop_front();
  StartCopies();
  return taken;
}

void DevicePrefetchQueue::Forget() {
  MutexLock lock(mu_);
  waiting_.clear();
}

int DevicePrefetchQueue::Progress() {
  MutexLock lock(mu_);
  int held = engine_ == nullptr ? 0 : engine_->Progress();
  std::erase_if(outgrown_, [&held](const auto& engine) {
    const int its = engine->Progress();
    held += its;
    return its == 0;
  });
  return held;
}

DeviceCopyStats DevicePrefetchQueue::stats() const {
  MutexLock lock(mu_);
  DeviceCopyStats stats = stats_;
  stats.device = options_.device;
  stats.places = places();
  stats.place_bytes = static_cast<int64_t>(place_bytes_);
  if (engine_ != nullptr) stats.events += engine_->counters().events;
  stats.gpu_direct = gpu_direct_pool_ == nullptr ? "not asked for" : gpu_direct_pool_->state();
  stats.page_locking = PageLocking::ForProcess().state();
  return stats;
}

}  // namespace penstock
