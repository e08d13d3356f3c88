// SPDX-License-Identifier: Apache-2.0
// Places on a device into which a NIC writes bodies of elements directly, where a link supports it
// (transfer/ucx/gpu_direct.h). Such an element takes no slot in host memory and is not copied; only
// its head is on the host. If direct writes are not possible, or it is not known yet whether they
// are, elements are received in host memory and the device copies them (device_prefetch_queue.h).
// No call fails for this reason; state() reports which path is used, and why.
//
// A dataset's last node makes its elements in this pool (dataset/iterator_output.h), and passes the
// pool to its links. Only a node that passes elements on unchanged may produce a body that the host
// cannot read.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "dataplane/memory/device/device.h"
#include "dataplane/memory/device/gpu_direct_driver.h"
#include "dataplane/memory/pool.h"
#include "dataplane/memory/registrar.h"
#include "penstock/device_element.h"
#include "penstock/element.h"
#include "penstock/loan.h"

namespace penstock {

class DevicePlaces;    // gpu_direct_pool.cc
class GpuDirectState;  // gpu_direct_pool.cc

// One place, lent to a link for one block. Any thread, one thread at a time.
class DevicePlace {
 public:
  // Host memory of the requested size for the head. The place is lent as long as this loan exists.
  // An element is made from the loan (GpuDirectPool::Take).
  Loan loan;
  absl::Span<std::byte> body;  // on the device
  // The registration of all places, as `Open` returned it.
  const Registration& registration() const;
  // After this call, work queued on the device sees the data that a NIC has written. After an error
  // the device may not see this data, and the pool lends no more places.
  absl::Status FlushWrites();
  // Reports the result of the receive. Do not call it for a receive that failed because its
  // connection had been closed. After three failures in a row the pool lends no more places.
  void OnReceived(const absl::Status& status);

 private:
  friend class DevicePlaces;
  std::shared_ptr<DevicePlaces> of_;
};

struct GpuDirectPoolOptions {
  int device = 0;
  int places = 4;        // elements at a time; fewer if they need over 1/16 of the GPU's memory
  Pool* host = nullptr;  // for blocks in host memory; outlives this. nullptr: DefaultPool()
};

// Any thread may call its methods.
class GpuDirectPool final : public Pool {
 public:
  // Registers places of the device's memory for a writer such as a NIC; slow. An error gives the
  // reason for which this is impossible. DeadlineExceeded means that the writer may still write to
  // the places later; these are then never freed.
  using Open = std::function<absl::StatusOr<std::unique_ptr<Registration>>(
      DeviceBackend& backend, GpuDirectDriver& driver, int device, absl::Span<std::byte> places)>;

  // `backend` and `driver` must outlive all places.
  GpuDirectPool(DeviceBackend& backend, GpuDirectDriver& driver,
                const GpuDirectPoolOptions& options);
  // Waits for the thread that opens places, if there is one.
  ~GpuDirectPool() override;

  // Returns `pool` as a GpuDirectPool, or nullptr if it is not one.
  static GpuDirectPool* From(Pool* pool) { return dynamic_cast<GpuDirectPool*>(pool); }

  // Lends a place for a block of these sizes; nullopt if the block must be received in host memory.
  // The first block, and any block larger than all earlier ones, starts a thread of this pool that
  // opens places.
  std::optional<DevicePlace> LendPlace(size_t head_bytes, size_t body_bytes, const Open& open);

  // Returns the values of an element whose head is in a place's loan, as a new handle in each call;
  // empty if the head is elsewhere. The place becomes free when all these handles and the element
  // are destroyed and the device has read the values.
  DeviceElement Take(const Element& element);

  // Returns "on", "off: " with the reason, "being tried", or "not asked for".
  std::string state() const;
  int64_t grown() const;  // how often places were reopened for larger bodies

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
  std::shared_ptr<DevicePlaces> places_ GUARDED_BY(mu_);               // the places to lend from
  std::vector<std::weak_ptr<DevicePlaces>> outgrown_ GUARDED_BY(mu_);  // earlier, smaller places
  size_t opened_bytes_ GUARDED_BY(mu_) = 0;  // largest place requested so far
  bool opening_ GUARDED_BY(mu_) = false;
  int64_t grown_ GUARDED_BY(mu_) = 0;
  Thread opener_ GUARDED_BY(mu_);
};

}  // namespace penstock
