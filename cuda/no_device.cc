// SPDX-License-Identifier: Apache-2.0
// The backend of a build without the toolkit: it has no device, and its errors give the reason.
#include "absl/status/status.h"
#include "dataplane/memory/device/device.h"

namespace penstock {
namespace {

absl::Status NoDevice() {
  return absl::NotFoundError(
      "no GPU: this build has no CUDA support (configure with PENSTOCK_CUDA=ON)");
}

class NoPageLock final : public Registrar {
 public:
  std::string_view name() const override { return "page-lock"; }
  absl::StatusOr<std::unique_ptr<Registration>> Register(absl::Span<std::byte>) override {
    return NoDevice();
  }
};

class NoBackend final : public DeviceBackend {
 public:
  std::string_view name() const override { return "none"; }
  absl::StatusOr<int> Count() override { return NoDevice(); }
  std::optional<int> InUse() override { return std::nullopt; }
  absl::StatusOr<DeviceInfo> Describe(int) override { return NoDevice(); }
  Registrar& page_lock() override { return page_lock_; }
  absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(int, size_t) override {
    return NoDevice();
  }
  absl::StatusOr<std::unique_ptr<DeviceStream>> MakeStream(int) override { return NoDevice(); }
  absl::StatusOr<std::unique_ptr<DeviceStream>> WrapStream(int, void*) override {
    return NoDevice();
  }
  absl::StatusOr<std::unique_ptr<DeviceEvent>> MakeEvent(int) override { return NoDevice(); }
  absl::Status WithContext(int, absl::FunctionRef<absl::Status()>) override { return NoDevice(); }
  absl::StatusOr<MemoryKind> KindOf(const void*) override { return MemoryKind::kHost; }

 private:
  NoPageLock page_lock_;
};

}  // namespace

DeviceBackend& LinkedDeviceBackend() {
  static DeviceBackend& backend = *new NoBackend;  // used until the process ends
  return backend;
}

}  // namespace penstock
