// SPDX-License-Identifier: Apache-2.0
// An element whose values are on a device. A replica on a GPU gets such elements from a
// DistributedIterator (penstock/distributed_dataset.h). Needs no CUDA header: a CUDA stream
// (cudaStream_t) is a pointer, and is passed as a void pointer.
//
//   // Work queued on `stream` after this sees the values.
//   PENSTOCK_RETURN_IF_ERROR(batch.ReadyOn(stream));
//   Launch<<<…, stream>>>(batch["image"].raw(), …);
//                                            // destroying `batch` frees its place after that work
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

#pragma GCC visibility push(default)
namespace penstock {

class DeviceCopyState;  // dataplane/memory/device/device_copy_engine.cc
class DeviceStream;     // dataplane/memory/device/device.h

// An element whose values are on a device, or on their way there. Shapes, strings, row splits and
// sparse indices are on the host. The host never waits for the copy or for the work that reads the
// values. Destroying the element frees its place on the device, once all work that was queued on
// the streams that read it is done. Any thread may use it, one at a time. It may outlive the
// iterator from which it came.
class DeviceElement {
 public:
  DeviceElement() = default;
  DeviceElement(DeviceElement&& other) noexcept;
  DeviceElement& operator=(DeviceElement&& other) noexcept;
  ~DeviceElement();

  explicit operator bool() const { return state_ != nullptr; }
  Identity identity() const { return head_.identity(); }
  const Spec& spec() const { return head_.spec(); }
  size_t size() const { return head_.size(); }
  int device() const;  // its number, as in "GPU:0". REQUIRES: not empty
  // Returns leaf number `i`, as Element does, but raw() is an address on the device, which the host
  // cannot read (except for strings). REQUIRES: i < size().
  Tensor tensor(size_t i) const;
  // Returns the leaf with the key `key` of a dict; aborts if there is no such key.
  Tensor operator[](std::string_view key) const;

  // Work queued on `stream` after this call sees the values, even if the copy has not finished yet.
  // The values stay valid until `stream` has finished all work that was queued on it before this
  // element is destroyed. `stream` is a CUDA stream of this device, which must exist until then;
  // nullptr is the default stream.
  absl::Status ReadyOn(void* stream) const;
  // Declares that all work on `stream` that reads the values has been queued, so that the place
  // waits only for this work. Call it once per stream, after ReadyOn() for the stream. After an
  // error it is unknown how long the stream reads the values, so the place is never used again.
  absl::Status ReadBy(void* stream) const;
  // The same, for streams of a backend. For such streams, ReadBy() must be called.
  absl::Status ReadyOn(DeviceStream& stream) const;
  absl::Status ReadBy(DeviceStream& stream) const;

 private:
  friend class DeviceCopyEngine;
  DeviceElement(std::shared_ptr<DeviceCopyState> state, int place, Element head)
      : state_(std::move(state)), place_(place), head_(std::move(head)) {}
  void LetGo();

  std::shared_ptr<DeviceCopyState> state_;
  int place_ = 0;
  Element head_;  // the head alone; its body is on the device
};

// Counts of the values of one replica that were moved to its device, since the iterator was made.
struct DeviceCopyStats {
  int device = 0;
  int64_t elements = 0;  // copied from host memory
  int64_t bytes = 0;     // of the bodies of these elements
  int64_t ahead = 0;     // delivered elements whose transfer began before Next() asked for them
  int64_t waits = 0;     // times that Next() found no free place on the device
  int64_t not_page_locked = 0;  // copied from memory that the device cannot read directly
  std::string page_locking;     // "on", or "off: " and the reason
  int64_t direct = 0;           // written to the device by a NIC itself, and not copied
  std::string gpu_direct;       // whether a NIC writes directly: "on", "off: " and the reason, …
  int places = 0;               // places on the device for copied elements
  int64_t place_bytes = 0;      // bytes of one place; grows with the elements
  int64_t grown = 0;            // times that place_bytes grew; a steady state adds none
  int64_t events = 0;           // device events made; a steady state adds none
};
using DeviceLandingStats [[deprecated("DeviceCopyStats")]] = DeviceCopyStats;

}  // namespace penstock
#pragma GCC visibility pop
