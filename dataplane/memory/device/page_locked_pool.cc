// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/device/page_locked_pool.h"

#include <string_view>

#include "dataplane/memory/heap_pool.h"

namespace penstock {
namespace {

class PageLockIfPossible final : public Registrar {
 public:
  explicit PageLockIfPossible(PageLocking& locking) : locking_(locking) {}
  std::string_view name() const override { return "page-lock if possible"; }
  absl::StatusOr<std::unique_ptr<Registration>> Register(absl::Span<std::byte> memory) override {
    return locking_.Lock(memory);
  }

 private:
  PageLocking& locking_;
};

}  // namespace

std::shared_ptr<Pool> MakePageLockedPool(PageLocking& locking) {
  return RegisteredPool({}, std::make_shared<PageLockIfPossible>(locking));
}

Pool& PageLockedPool() {
  PageLocking& locking = PageLocking::ForProcess();
  if (!locking.on()) return DefaultPool();
  static const std::shared_ptr<Pool>& own =
      *new std::shared_ptr<Pool>(MakePageLockedPool(locking));  // used until the process ends
  return *own;
}

}  // namespace penstock
