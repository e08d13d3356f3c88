// SPDX-License-Identifier: Apache-2.0
// Places on a device that a NIC writes bodies of elements into by itself, where a link can
// have it so (transfer/ucx/gpu_direct.h). Such an element takes no slot in host memory and
// is not copied: only its head is on the host. Where that cannot be, or is not known yet,
// elements are received in host memory and copied by the device (device_prefetch_queue.h).
// Nothing fails for it; state() says which it is, and why.
//
// It is handed to a dataset's last node as the pool that its elements are made in
// (dataset/iterator_output.h), and so comes to links: only what a node hands on as it is can
// have a body that the host cannot read.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/device.h"
#include "dataplane/memory/gpu_direct_driver.h"
#include "dataplane/memory/pool.h"
#include "dataplane/memory/registrar.h"
#include "penstock/device_element.h"
#include "penstock/element.h"
#include "penstock/loan.h"

namespace penstock {

class DevicePlaces;    // gpu_direct_pool.cc
class GpuDirectState;  // the same

// One place, lent to a link for one block. Any thread, one at a time.
class DevicePlace {
 public:
  // Of the head, on the host, as long as it was asked for. Who has it has the place; an
  // element is made of it (GpuDirectPool::Take).
  Loan loan;
  absl::Span<std::byte> body;  // on the device
  // What opening the places made of them.
  const Registration& registration() const;
  // What a NIC has written is seen by what is asked of the device from now on. After an
  // error it is not, and nothing is lent any more.
  absl::Status FlushWrites();
  // How the receive went; not called where it failed since its connection was closed before. After
  // some failures in a row nothing is lent any more.
  void OnReceived(const absl::Status& status);

 private:
  friend class DevicePlaces;
  std::shared_ptr<DevicePlaces> of_;
};

struct GpuDirectPoolOptions {
  int device = 0;
  int places = 4;        // elements on the device at a time; fewer if they would take more
                         // than a sixteenth of its memory
  Pool* host = nullptr;  // of all that is not received there; outlives this. nullptr: DefaultPool()
};

// Any thread.
class GpuDirectPool final : public Pool {
 public:
  // Lets something write to places of the device's memory; slow. An error is why not, in
  // words. Of these DeadlineExceeded says that it may still write to them later: they are
  // kept for good.
  using Open = std::function<absl::StatusOr<std::unique_ptr<Registration>>(
      DeviceBackend& backend, GpuDirectDriver& driver, int device, absl::Span<std::byte> places)>;

  // Both outlive all places.
  GpuDirectPool(DeviceBackend& backend, GpuDirectDriver& driver,
                const GpuDirectPoolOptions& options);
  // Waits for places that are being opened.
  ~GpuDirectPool() override;

  // `pool` if it is one.
  static GpuDirectPool* From(Pool* pool) { return dynamic_cast<GpuDirectPool*>(pool); }

  // A place for such a block; nullopt if it is to be received in host memory. The first one, and
  // any that is larger than those before, has places opened on a thread of this.
  std::optional<DevicePlace> LendPlace(size_t head_bytes, size_t body_bytes, const Open& open);

  // The values of an element whose head lies in a place's loan, once more for each call;
  // empty if it does not. The place is free when all of these and the element are let go of
  // and the device has read them.
  DeviceElement Take(const Element& element);

  // "on", "off: " and the reason, "being tried", or "not asked for".
  std::string state() const;
  int64_t grown() const;  // times that places were opened anew, for larger bodies

  absl::StatusOr<Loan> Lend(size_t bytes) override { return host_.Lend(bytes); }
  absl::StatusOr<Loan> LendBlock(size_t head_bytes, size_t body_bytes) override {
    return host_.LendBlock(head_bytes, body_bytes);
  }
  PoolCounters counters() const override { return host_.counters(); }

 private:
  absl::StatusOr<int> CountPlaces(size_t place_bytes) const;
  void OpenPlaces(size_t place_bytes, const Open& open);

  DeviceBackend& backend_;
  GpuDirectDriver& driver_;
  const GpuDirectPoolOptions options_;
  Pool& host_;
  const std::shared_ptr<GpuDirectState> gpu_direct_;

  mutable Mutex mu_;
  std::shared_ptr<DevicePlaces> places_ GUARDED_BY(mu_);               // those that are lent from
  std::vector<std::weak_ptr<DevicePlaces>> outgrown_ GUARDED_BY(mu_);  // those before them
  size_t opened_bytes_ GUARDED_BY(mu_) = 0;  // of a place, asked for so far
  bool opening_ GUARDED_BY(mu_) = false;
  int64_t grown_ GUARDED_BY(mu_) = 0;
  std::thread opener_ GUARDED_BY(mu_);
};

}  // namespace penstock
