// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/memory.h"

#include <mutex>
#include <shared_mutex>
#include <utility>

#include "control/sync/mutex.h"
#include "dataplane/memory/fork_guard.h"
#include "dataplane/memory/heap_pool.h"
#include "dataplane/transfer/ucx/loader.h"
#include "include/status_macros.h"

namespace penstock::transfer::ucx {

class Memory::Registered final : public Registration {
 public:
  Registered(absl::Span<std::byte> memory, std::shared_ptr<Memory> of, Handle handle)
      : Registration(memory),
        of_(std::move(of)),
        handle_(handle),
        page_lock_(of_->page_locking_.LockOnceInUse(memory)) {}
  ~Registered() override {
    {
      std::lock_guard lock(of_->mu_);
      of_->regions_.erase(memory().data());
    }
    of_->fabric_.Unregister(handle_);
  }

 private:
  const std::shared_ptr<Memory> of_;
  const Handle handle_;
  const std::unique_ptr<PageLock> page_lock_;
};

absl::StatusOr<std::unique_ptr<Registration>> Memory::Register(absl::Span<std::byte> memory) {
  ASSIGN_OR_RETURN(const Handle handle, fabric_.Register(memory, MemoryType::kHost));
  auto registered = std::make_unique<Registered>(memory, shared_from_this(), handle);
  std::lock_guard lock(mu_);
  regions_.emplace(memory.data(), Region{memory.size(), handle});
  return registered;
}

Handle Memory::Find(absl::Span<const std::byte> bytes) const {
  std::shared_lock lock(mu_);
  auto behind = regions_.upper_bound(bytes.data());
  if (behind == regions_.begin()) return nullptr;
  const auto& [begin, region] = *--behind;
  return bytes.data() + bytes.size() <= begin + region.bytes ? region.handle : nullptr;
}

absl::StatusOr<Resources*> TheResources() {
  static Mutex& mu = *new Mutex;
  static Resources* resources GUARDED_BY(mu) = nullptr;
  static const ForkGuard* in_creator GUARDED_BY(mu) = nullptr;
  MutexLock lock(mu);
  if (in_creator != nullptr && !*in_creator) {
    return absl::FailedPreconditionError(
        "this process was forked from one that used 'ucx', and UCX does not work in the child");
  }
  if (resources == nullptr) {
    ASSIGN_OR_RETURN(Fabric * fabric, OpenTheFabric());
    in_creator = new ForkGuard;
    auto memory = std::make_shared<Memory>(*fabric);
    resources = new Resources{*fabric, memory, RegisteredPool({}, memory)};
  }
  return resources;
}

}  // namespace penstock::transfer::ucx
