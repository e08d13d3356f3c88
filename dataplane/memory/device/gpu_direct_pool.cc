// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/device/gpu_direct_pool.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/observe/event_log.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "dataplane/element/block.h"
#include "dataplane/memory/device/device_copy_engine.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// The death of a worker makes one or two receives fail. A device that accepts no writes makes all
// of them fail.
constexpr int kMostFailures = 3;

// Places take at most 1/kMostShare of a device's memory: a trainer needs the rest.
constexpr size_t kMostShare = 16;

// Keeps memory until the process ends, because a NIC may still write to it.
void KeepForGood(std::unique_ptr<DeviceCopyEngine> engine) {
  static Mutex& mu = *new Mutex;
  static std::vector<std::unique_ptr<DeviceCopyEngine>>& kept =
      *new std::vector<std::unique_ptr<DeviceCopyEngine>>;
  MutexLock lock(mu);
  kept.push_back(std::move(engine));
}

}  // namespace

// Records whether bodies go straight to a device. All places of a pool share this object.
class GpuDirectState {
 public:
  explicit GpuDirectState(int device) : device_(device) {}

  bool off() const {
    MutexLock lock(mu_);
    return off_;
  }
  std::string state() const {
    MutexLock lock(mu_);
    return state_;
  }
  void Try() { Become("being tried", false); }
  void TurnOn() { Become("on", false); }
  // Turns direct writes off permanently.
  void TurnOff(const absl::Status& why) { Become(absl::StrCat("off: ", why.message()), true); }
  void OnReceived(const absl::Status& status) {
    bool too_many = false;
    {
      MutexLock lock(mu_);
      failures_ = status.ok() ? 0 : failures_ + 1;
      too_many = failures_ == kMostFailures && !off_;
    }
    if (!too_many) return;
    TurnOff(absl::UnavailableError(absl::StrCat(
        kMostFailures, " receives into the GPU failed in a row, the last with: ", status.message(),
        "; elements are staged in host memory")));
  }

 private:
  void Become(std::string state, bool off) {
    {
      MutexLock lock(mu_);
      if (off_) return;
      state_ = state;
      off_ = off;
    }
    if (state == "being tried") return;
    StderrEventLog()->Write(
        {"gpu_direct", {{"device", absl::StrCat("GPU:", device_)}, {"state", std::move(state)}}});
  }

  const int device_;
  mutable Mutex mu_;
  bool off_ GUARDED_BY(mu_) = false;
  std::string state_ GUARDED_BY(mu_) = "not asked for";
  int failures_ GUARDED_BY(mu_) = 0;  // in a row
};

// A place's head on the host.
struct DevicePlaceSlot : Slot {
  int place = 0;
  Loan memory;                         // for the head; grows with the head
  std::shared_ptr<DevicePlaces> kept;  // while the place is lent
};

// Places of one size. Stays alive while the pool lends from it or any of its places is lent.
class DevicePlaces final : public SlotOwner, public std::enable_shared_from_this<DevicePlaces> {
 public:
  DevicePlaces(std::unique_ptr<DeviceCopyEngine> engine, std::unique_ptr<Registration> registration,
               int count, int device, size_t place_bytes, GpuDirectDriver& driver,
               std::shared_ptr<GpuDirectState> gpu_direct)
      : device_(device),
        place_bytes_(place_bytes),
        driver_(driver),
        gpu_direct_(std::move(gpu_direct)),
        engine_(std::move(engine)),
        registration_(std::move(registration)),
        slots_(static_cast<size_t>(count)) {
    for (int i = 0; i < count; ++i) {
      slots_[static_cast<size_t>(i)].place = i;
      slots_[static_cast<size_t>(i)].owner = this;
    }
  }

  size_t place_bytes() const { return place_bytes_; }
  const Registration& registration() const { return *registration_; }
  absl::Status FlushWrites() {
    absl::Status flushed = driver_.FlushWrites(device_);
    if (!flushed.ok()) {
      gpu_direct_->TurnOff(
          Annotate(flushed, "data that a NIC wrote into the GPU could not be flushed"));
    }
    return flushed;
  }
  void OnReceived(const absl::Status& status) { gpu_direct_->OnReceived(status); }

  std::optional<DevicePlace> Lend(size_t head_bytes, size_t body_bytes) {
    const std::optional<int> place = engine_->ReservePlace();
    if (!place.has_value()) return std::nullopt;
    DevicePlaceSlot& slot = slots_[static_cast<size_t>(*place)];
    if (slot.memory.bytes().size() < head_bytes) {
      absl::StatusOr<Loan> memory = DefaultPool().Lend(head_bytes);
      if (!memory.ok()) {
        engine_->FreePlace(*place);
        return std::nullopt;
      }
      MutexLock lock(mu_);
      slot.memory = *std::move(memory);
      slot.data = slot.memory.bytes().data();
    }
    slot.bytes = head_bytes;
    slot.holders = 1;
    slot.kept = shared_from_this();
    DevicePlace lent;
    lent.loan = Loan(&slot);
    lent.body = engine_->place(*place).first(body_bytes);
    lent.of_ = slot.kept;
    return lent;
  }

  DeviceElement Take(const Element& element) {
    MutexLock lock(mu_);
    for (const DevicePlaceSlot& slot : slots_) {
      if (slot.data != nullptr && slot.data == element.block().data())
        return engine_->Adopt(slot.place, element.Share());
    }
    return DeviceElement();
  }

  void TakeBack(Slot* slot) noexcept override {
    auto& its = static_cast<DevicePlaceSlot&>(*slot);
    const std::shared_ptr<DevicePlaces> kept = std::move(its.kept);
    engine_->FreePlace(its.place);
  }

 private:
  const int device_;
  const size_t place_bytes_;
  GpuDirectDriver& driver_;
  const std::shared_ptr<GpuDirectState> gpu_direct_;
  const std::unique_ptr<DeviceCopyEngine> engine_;
  const std::unique_ptr<Registration> registration_;  // of the engine's places
  Mutex mu_;                                          // guards the addresses of the slots' heads
  std::vector<DevicePlaceSlot> slots_;
};

const Registration& DevicePlace::registration() const {
  return of_->registration();
}

absl::Status DevicePlace::FlushWrites() {
  return of_->FlushWrites();
}

void DevicePlace::OnReceived(const absl::Status& status) {
  of_->OnReceived(status);
}

GpuDirectPool::GpuDirectPool(DeviceBackend& backend, GpuDirectDriver& driver,
                             const GpuDirectPoolOptions& options)
    : backend_(backend),
      driver_(driver),
      options_(options),
      host_(options.host == nullptr ? DefaultPool() : *options.host),
      gpu_direct_(std::make_shared<GpuDirectState>(options.device)) {}

GpuDirectPool::~GpuDirectPool() {
  if (opener_.joinable()) opener_.join();
}

std::optional<DevicePlace> GpuDirectPool::LendPlace(size_t head_bytes, size_t body_bytes,
                                                    const Open& open) {
  if (gpu_direct_->off()) return std::nullopt;
  std::shared_ptr<DevicePlaces> places;
  {
    MutexLock lock(mu_);
    if (places_ != nullptr && places_->place_bytes() >= body_bytes) {
      places = places_;
    } else if (!opening_) {
      if (opener_.joinable()) opener_.join();  // it has finished
      const size_t wanted =
          AlignUp(std::max(body_bytes, opened_bytes_ + opened_bytes_ / 4), kPlaceGranularity);
      if (opened_bytes_ > 0) ++grown_;
      opened_bytes_ = wanted;
      gpu_direct_->Try();
      absl::StatusOr<Thread> opener =
          StartThread("places on the GPU", [this, wanted, open] { OpenPlaces(wanted, open); });
      opening_ = opener.ok();
      if (!opener.ok()) {
        gpu_direct_->TurnOff(opener.status());
      } else {
        opener_ = *std::move(opener);
      }
    }
  }
  if (places == nullptr) return std::nullopt;
  return places->Lend(head_bytes, body_bytes);
}

absl::StatusOr<int> GpuDirectPool::CountPlaces(size_t place_bytes) const {
  ASSIGN_OR_RETURN(const DeviceInfo info, backend_.Describe(options_.device));
  const size_t most = static_cast<size_t>(info.memory_bytes) / kMostShare / place_bytes;
  if (most == 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a body of ", place_bytes, " bytes takes more than a sixteenth of the memory ",
                     "of GPU:", options_.device));
  }
  return static_cast<int>(std::min(most, static_cast<size_t>(options_.places)));
}

void GpuDirectPool::OpenPlaces(size_t place_bytes, const Open& open) {
  using Opened = absl::StatusOr<std::unique_ptr<Registration>>;
  const absl::StatusOr<int> count = CountPlaces(place_bytes);
  absl::StatusOr<std::unique_ptr<DeviceCopyEngine>> engine =
      count.ok()
          ? DeviceCopyEngine::Create(
                backend_, {.device = options_.device, .places = *count, .place_bytes = place_bytes})
          : absl::StatusOr<std::unique_ptr<DeviceCopyEngine>>(count.status());
  Opened opened = engine.ok() ? open(backend_, driver_, options_.device, (*engine)->places())
                              : Opened(Annotate(engine.status(), "while taking places of ",
                                                place_bytes, " bytes on GPU:", options_.device));
  std::shared_ptr<DevicePlaces> places;
  if (opened.ok()) {
    places = std::make_shared<DevicePlaces>(*std::move(engine), *std::move(opened), *count,
                                            options_.device, place_bytes, driver_, gpu_direct_);
  } else {
    gpu_direct_->TurnOff(opened.status());
    if (engine.ok() && absl::IsDeadlineExceeded(opened.status())) KeepForGood(*std::move(engine));
  }
  {
    MutexLock lock(mu_);
    opening_ = false;
    if (places == nullptr) return;
    std::erase_if(outgrown_, [](const auto& one) { return one.expired(); });
    if (places_ != nullptr) outgrown_.push_back(places_);
    places_.swap(places);
  }
  gpu_direct_->TurnOn();  // now that LendPlace() can lend them
}

DeviceElement GpuDirectPool::Take(const Element& element) {
  std::vector<std::shared_ptr<DevicePlaces>> all;
  {
    MutexLock lock(mu_);
    if (places_ == nullptr) return DeviceElement();
    all.push_back(places_);
    for (const std::weak_ptr<DevicePlaces>& one : outgrown_) {
      if (std::shared_ptr<DevicePlaces> before = one.lock()) all.push_back(std::move(before));
    }
  }
  for (const std::shared_ptr<DevicePlaces>& places : all) {
    if (DeviceElement taken = places->Take(element)) return taken;
  }
  return DeviceElement();
}

std::string GpuDirectPool::state() const {
  return gpu_direct_->state();
}

int64_t GpuDirectPool::grown() const {
  MutexLock lock(mu_);
  return grown_;
}

}  // namespace penstock
