// SPDX-License-Identifier: Apache-2.0
// An element whose values are on a device: what a replica on a GPU gets of a
// DistributedIterator (penstock/distributed_dataset.h). No CUDA header is needed here;
// a CUDA stream (cudaStream_t) is given as the pointer that it is.
//
//   RETURN_IF_ERROR(batch.ReadyOn(stream));          // what `stream` does next sees the values
//   Launch<<<…, stream>>>(batch["image"].raw(), …);
//                                                    // letting go gives the place back, behind
//                                                    that
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "penstock/element.h"
#include "penstock/spec.h"
#include "penstock/tensor.h"

namespace penstock {

class DeviceLanes;   // dataplane/memory/device_lander.cc
class DeviceStream;  // dataplane/memory/device.h

// The values are, or will be, on a device; shapes, strings and row splits are on the
// host. The host waits for neither. Letting go of it gives its place on the device
// free, behind all that the streams which read it were asked for. Any thread, one at a
// time; may outlive the iterator it came from.
class DeviceElement {
 public:
  DeviceElement() = default;
  DeviceElement(DeviceElement&& other) noexcept;
  DeviceElement& operator=(DeviceElement&& other) noexcept;
  ~DeviceElement();

  explicit operator bool() const { return lanes_ != nullptr; }
  Identity identity() const { return head_.identity(); }
  const Spec& spec() const { return head_.spec(); }
  size_t size() const { return head_.size(); }
  int device() const;  // its number, as in "GPU:0". REQUIRES: not empty
  // Leaf number `i`, as of an Element; but raw() of all but strings is an address on
  // the device, which the host cannot follow. REQUIRES: i < size().
  Tensor tensor(size_t i) const;
  // The leaf of that key of a dict; aborts on a key that is not there.
  Tensor operator[](std::string_view key) const;

  // What is asked of `stream` from now on sees the values, whenever they have come, and
  // they stay until it is done with what it is asked for until this is let go of.
  // `stream` is a CUDA stream of this device, which must exist until then; nullptr is the
  // default stream.
  absl::Status ReadyOn(void* stream) const;
  // `stream` was asked for the last that reads the values: only that is waited for. Once
  // per stream, behind its ReadyOn(). After an error nobody knows how long it reads: the
  // place is not used again.
  absl::Status ReadBy(void* stream) const;
  // The same with streams of a backend, for which ReadBy() has to be called.
  absl::Status ReadyOn(DeviceStream& stream) const;
  absl::Status ReadBy(DeviceStream& stream) const;

 private:
  friend class DeviceLander;
  DeviceElement(std::shared_ptr<DeviceLanes> lanes, int place, Element head)
      : lanes_(std::move(lanes)), place_(place), head_(std::move(head)) {}
  void LetGo();

  std::shared_ptr<DeviceLanes> lanes_;
  int place_ = 0;
  Element head_;  // a head alone: where the body would be is nothing
};

// What became of one replica's values on the way to its device, since the iterator was made.
struct DeviceLandingStats {
  int device = 0;
  int64_t elements = 0;         // copied from host memory
  int64_t bytes = 0;            // of their bodies
  int64_t ahead = 0;            // of those taken, on their way before they were asked for
  int64_t waits = 0;            // looks of Next() that found no place on the device free
  int64_t not_page_locked = 0;  // copied from memory that the device does not read by itself
  std::string page_locking;     // "on", or "off: " and the reason
  int64_t direct = 0;           // written to the device by a NIC itself, and not copied
  std::string gpu_direct;       // whether a NIC does: "on", "off: " and the reason, …
  int places = 0;               // elements on the device at a time, of those copied
  int64_t place_bytes = 0;      // grows with the elements
  int64_t grown = 0;            // times it did; a steady state adds none
  int64_t events = 0;           // made; a steady state adds none
};

}  // namespace penstock
