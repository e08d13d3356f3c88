// SPDX-License-Identifier: Apache-2.0
// Elements on their way to a device. The body of an element is copied from the slot
// it lies in by the device itself, on a stream of ours; the slot goes back when the
// event behind the copy is done, and the place on the device when the events on its
// readers' streams are. The host waits for neither.
//
//   ASSIGN_OR_RETURN(DeviceElement batch, engine->CopyToDevice(*std::move(element)));
//   RETURN_IF_ERROR(batch.ReadyOn(stream));   // what `stream` does next sees the batch
//   Launch(stream, batch.tensor(0).raw());
//   RETURN_IF_ERROR(batch.ReadBy(stream));    // and behind this it is done with it
//   batch = DeviceElement();
//
// The copy is only without the processor's help if the slot is page-locked
// (page_locking.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "dataplane/memory/device.h"
#include "penstock/device_element.h"
#include "penstock/element.h"

namespace penstock {

// Of places that grow: what a NIC and the driver register memory in.
inline constexpr size_t kPlaceGranularity = 64 << 10;  // bytes

struct DeviceCopyEngineOptions {
  int device = 0;
  int places = 4;          // elements on the device at a time
  size_t place_bytes = 0;  // bodies of at most that; > 0
  // How long an end waits for copies under way. What is not done then stays lent
  // until it is, invisibly.
  absl::Duration stop_within = absl::Seconds(2);
};

struct DeviceCopyEngineCounters {
  int64_t elements = 0;   // copies begun
  int64_t bytes = 0;      // of their bodies
  int64_t events = 0;     // made; a steady state adds none
  int slots_held = 0;     // on the host, until their copies are done
  int places_in_use = 0;  // on the device
  int places_held = 0;    // of these, by elements that were not let go of
};

// Any thread.
class DeviceCopyEngine {
 public:
  // Takes places × place_bytes of the device's memory. Slow.
  static absl::StatusOr<std::unique_ptr<DeviceCopyEngine>> Create(
      DeviceBackend& backend, const DeviceCopyEngineOptions& options);
  // Waits for copies under way, for at most stop_within.
  ~DeviceCopyEngine();

  // Begins to copy, and keeps the element's slot until that is done: also when the
  // answer is an error, if the copy may have begun. ResourceExhausted if all places
  // are in use, InvalidArgument if the body is larger than a place, and what the
  // device says when it has failed.
  absl::StatusOr<DeviceElement> CopyToDevice(Element element);

  // A place that something else writes to, by no stream of the device; nullopt: none is free.
  // It stays until FreePlace(), and behind that until readers of what Adopt() gave are done.
  std::optional<int> ReservePlace();
  absl::Span<std::byte> place(int place) const;  // on the device
  absl::Span<std::byte> places() const;          // all of them, one behind the other
  // What was written to a reserved place, whose head is `head`'s. REQUIRES: the device sees it.
  DeviceElement Adopt(int place, Element head);
  void FreePlace(int place);

  // Gives back the slots and places that the device is done with. CopyToDevice()
  // does so too; call it also while nothing new comes. Returns how many slots are
  // still held.
  int Progress();
  // The same for engines that have ended with copies under way.
  static int ProgressLeftOver();

  DeviceCopyEngineCounters counters() const;
  // OK, or what the device said when it was last asked: then nothing may come back any more.
  absl::Status device_status() const;

 private:
  explicit DeviceCopyEngine(std::shared_ptr<DeviceCopyState> state) : state_(std::move(state)) {}
  const std::shared_ptr<DeviceCopyState> state_;
};

}  // namespace penstock
