// SPDX-License-Identifier: Apache-2.0
// Copies elements to a device. The device itself copies an element's body from its slot, on a
// stream of the engine. The slot is returned when the event after the copy is done. The place on
// the device is freed when the events on its readers' streams are done. The host waits for none of
// these events.
//
//   ASSIGN_OR_RETURN(DeviceElement batch, engine->CopyToDevice(*std::move(element)));
//   RETURN_IF_ERROR(batch.ReadyOn(stream));   // work queued on `stream` after this sees the batch
//   Launch(stream, batch.tensor(0).raw());
//   RETURN_IF_ERROR(batch.ReadBy(stream));    // all work that reads the batch has been queued
//   batch = DeviceElement();
//
// The copy needs no help from the CPU only if the slot is page-locked (page_locking.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "dataplane/memory/device/device.h"
#include "include/status_macros.h"
#include "penstock/device_element.h"
#include "penstock/element.h"

namespace penstock {

// Place sizes grow in steps of this size, the unit in which a NIC and the driver register memory.
inline constexpr size_t kPlaceGranularity = 64 << 10;  // bytes

struct DeviceCopyEngineOptions {
  int device = 0;
  int places = 4;          // elements on the device at a time
  size_t place_bytes = 0;  // places hold bodies of at most this size; > 0
  // How long the destructor waits for copies in progress. A copy that is not done by then keeps its
  // slot until it is done (ProgressLeftOver()).
  absl::Duration stop_within = absl::Seconds(2);
};

struct DeviceCopyEngineCounters {
  int64_t elements = 0;   // copies begun
  int64_t bytes = 0;      // bytes of their bodies
  int64_t events = 0;     // events made; a steady state adds none
  int slots_held = 0;     // on the host, for copies in progress
  int places_in_use = 0;  // on the device
  int places_held = 0;    // of these, held by a DeviceElement
};

// Any thread may call its methods.
class DeviceCopyEngine {
 public:
  // Allocates places × place_bytes of the device's memory. Slow.
  static absl::StatusOr<std::unique_ptr<DeviceCopyEngine>> Create(
      DeviceBackend& backend, const DeviceCopyEngineOptions& options);
  // Waits for copies in progress, for at most stop_within.
  ~DeviceCopyEngine();

  // Begins to copy the element, and keeps its slot until the copy is done. If an error is returned
  // although the copy may have begun, the slot is kept as well. ResourceExhausted if all places are
  // in use; InvalidArgument if the body is larger than a place; the device's error if it has
  // failed.
  absl::StatusOr<DeviceElement> CopyToDevice(Element element);

  // Reserves a place for a writer other than the device's streams; nullopt if no place is free. The
  // place stays reserved until FreePlace(), and in use until the readers of elements from Adopt()
  // are done.
  std::optional<int> ReservePlace();
  absl::Span<std::byte> place(int place) const;  // on the device
  absl::Span<std::byte> places() const;          // all places, contiguous
  // Returns an element with the values that were written to a reserved place, and the head `head`.
  // REQUIRES: the device sees the values.
  DeviceElement Adopt(int place, Element head);
  void FreePlace(int place);

  // Returns the slots and frees the places that the device has finished with. CopyToDevice() does
  // this too, so this method is needed only while no new elements arrive. Returns the number of
  // slots still held.
  int Progress();
  // Does the same for engines that were destroyed with copies in progress.
  static int ProgressLeftOver();

  DeviceCopyEngineCounters counters() const;
  // Returns the status of the last event that was queried. After an error, slots and places may
  // never be released.
  absl::Status device_status() const;

 private:
  explicit DeviceCopyEngine(std::shared_ptr<DeviceCopyState> state) : state_(std::move(state)) {}
  const std::shared_ptr<DeviceCopyState> state_;
};

}  // namespace penstock
