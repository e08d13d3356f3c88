// SPDX-License-Identifier: Apache-2.0
// Memory that UCX has registered. Each segment is registered once, when it is made, and page-locked
// for a GPU once the process uses a GPU, so that copies to the GPU do not wait in the driver.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/device/page_locking.h"
#include "dataplane/memory/pool.h"
#include "dataplane/memory/registrar.h"
#include "dataplane/transfer/ucx/fabric.h"
#include "dataplane/transfer/ucx/gpu_direct.h"

namespace penstock::transfer::ucx {

// Registers memory with UCX, and finds the handle of registered memory by address. Thread-safe.
class Memory final : public Registrar, public std::enable_shared_from_this<Memory> {
 public:
  // `fabric` and `page_locking` must outlive this object.
  explicit Memory(Fabric& fabric, PageLocking& page_locking = PageLocking::ForProcess())
      : fabric_(fabric), page_locking_(page_locking) {}

  std::string_view name() const override { return "registration with UCX"; }
  absl::StatusOr<std::unique_ptr<Registration>> Register(absl::Span<std::byte> memory) override;

  // Returns the handle of the registered region that contains all of `bytes`; nullptr if there is
  // none.
  Handle Find(absl::Span<const std::byte> bytes) const;

 private:
  class Registered;
  struct Region {
    size_t bytes;
    Handle handle;
  };

  Fabric& fabric_;
  PageLocking& page_locking_;
  mutable SharedMutex mu_;
  std::map<const std::byte*, Region> regions_;  // by begin; guarded by mu_
};

// The objects that all links of a process share; never destroyed.
struct Resources {
  Fabric& fabric;
  std::shared_ptr<Memory> memory;
  std::shared_ptr<Pool> pool;                  // of registered slots, for both ends
  std::function<absl::Time()> now = BootTime;  // clock for measuring the rate into a GPU
  std::shared_ptr<ServedGpu> gpu = std::make_shared<ServedGpu>();
};
// Returns the same errors as OpenTheFabric().
absl::StatusOr<Resources*> TheResources();

}  // namespace penstock::transfer::ucx
