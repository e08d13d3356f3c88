// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/device_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "dataplane/element/block.h"
#include "dataplane/memory/page_locking.h"
#include "penstock/status.h"

namespace penstock {
namespace {

size_t BodyBytes(const Element& element) {
  return PrefixOf(element.block().data()).body_bytes;
}

}  // namespace

// Places that `element` fits. When elements grow, larger ones are taken; those on the
// device stay where they are.
absl::Status DeviceQueue::MakeRoom(const Element& element) {
  const size_t bytes = std::max<size_t>(BodyBytes(element), 1);
  if (bytes <= place_bytes_) return absl::OkStatus();
  const size_t grown = AlignUp(std::max(bytes, place_bytes_ + place_bytes_ / 4), kPlaceGranularity);
  absl::StatusOr<std::unique_ptr<DeviceLander>> lander =
      DeviceLander::Create(backend_, {.device = options_.device,
                                      .places = places(),
                                      .place_bytes = grown,
                                      .stop_within = options_.stop_within});
  RETURN_IF_ERROR(Annotate(lander.status(), "while taking ", places(), " places of ", grown,
                           " bytes on GPU:", options_.device));
  if (lander_ != nullptr) {
    stats_.events += lander_->counters().events;
    ++stats_.grown;
    outgrown_.push_back(std::move(lander_));
  }
  lander_ = *std::move(lander);
  place_bytes_ = grown;
  return absl::OkStatus();
}

DeviceElement DeviceQueue::TakeLanded(const Element& element) {
  DeviceElement landed = landing_ == nullptr ? DeviceElement() : landing_->Take(element);
  if (landed) ++stats_.direct;
  return landed;
}

absl::StatusOr<DeviceElement> DeviceQueue::Land(const Element& element) {
  ASSIGN_OR_RETURN(DeviceElement landed, lander_->CopyToDevice(element.Share()));
  ++stats_.elements;
  stats_.bytes += static_cast<int64_t>(BodyBytes(element));
  const std::byte* const body =
      element.block().data() + PrefixOf(element.block().data()).head_bytes;
  if (BodyBytes(element) > 0 &&
      backend_.KindOf(body).value_or(MemoryKind::kHost) == MemoryKind::kHost)
    ++stats_.not_page_locked;
  return landed;
}

void DeviceQueue::LandAhead() {
  const size_t most = std::min(waiting_.size(), static_cast<size_t>(options_.depth));
  for (size_t i = 0; i < most; ++i) {
    Waiting& next = waiting_[i];
    if (next.landed || next.refused) continue;
    next.landed = TakeLanded(next.element);
    if (next.landed) continue;
    const absl::Status room = MakeRoom(next.element);
    if (room.ok() && lander_->counters().places_in_use == places()) return;
    absl::StatusOr<DeviceElement> landed = room.ok() ? Land(next.element) : room;
    next.refused = !landed.ok();
    if (landed.ok()) next.landed = *std::move(landed);
  }
}

void DeviceQueue::Ahead(const Element& element) {
  if (options_.depth == 0) return;
  MutexLock lock(mu_);
  waiting_.push_back({element.Share(), DeviceElement()});
  LandAhead();
}

absl::StatusOr<std::optional<DeviceElement>> DeviceQueue::TryTake(const Element& element) {
  MutexLock lock(mu_);
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& waiting) {
    return waiting.element.block().data() == element.block().data();
  });
  const bool known = found != waiting_.end();
  DeviceElement taken;
  if (known) {
    waiting_.erase(waiting_.begin(), found);
    taken = std::move(waiting_.front().landed);
  }
  if (taken) {
    ++stats_.ahead;
  } else if (taken = TakeLanded(element); !taken) {
    RETURN_IF_ERROR(MakeRoom(element));
    const DeviceLanderCounters counters = lander_->counters();
    if (counters.places_held == places()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("all ", places(), " places on GPU:", options_.device,
                       " hold values that were not let go of; hold at most ", options_.held - 1,
                       " step(s) when the next is asked for"));
    }
    if (counters.places_in_use == places()) {
      RETURN_IF_ERROR(lander_->device_status());
      ++stats_.waits;
      return std::nullopt;
    }
    ASSIGN_OR_RETURN(taken, Land(element));
  }
  if (known) waiting_.pop_front();
  LandAhead();
  return taken;
}

void DeviceQueue::Forget() {
  MutexLock lock(mu_);
  waiting_.clear();
}

int DeviceQueue::Progress() {
  MutexLock lock(mu_);
  int held = lander_ == nullptr ? 0 : lander_->Progress();
  std::erase_if(outgrown_, [&held](const auto& lander) {
    const int its = lander->Progress();
    held += its;
    return its == 0;
  });
  return held;
}

DeviceLandingStats DeviceQueue::stats() const {
  MutexLock lock(mu_);
  DeviceLandingStats stats = stats_;
  stats.device = options_.device;
  stats.places = places();
  stats.place_bytes = static_cast<int64_t>(place_bytes_);
  if (lander_ != nullptr) stats.events += lander_->counters().events;
  stats.gpu_direct = landing_ == nullptr ? "not asked for" : landing_->state();
  stats.page_locking = PageLocking::ForProcess().state();
  return stats;
}

}  // namespace penstock
