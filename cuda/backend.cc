// SPDX-License-Identifier: Apache-2.0
// The backend of a build with the CUDA toolkit. CUDA's runtime is linked statically and opens the
// driver when it is first used, so the program also starts on machines without a driver.
#include <cuda_runtime_api.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cuda/context.h"
#include "cuda/error.h"
#include "dataplane/memory/device/device.h"
#include "dataplane/memory/fork_guard.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using cuda::OnDevice;
using cuda::ToStatus;

// A forked child cannot use the runtime, so it leaves the parent's objects alone.
class CudaMemory final : public DeviceMemory {
 public:
  CudaMemory(int device, void* address, size_t bytes)
      : DeviceMemory(address, bytes), device_(device) {}
  ~CudaMemory() override {
    if (!in_creator_) return;
    const absl::StatusOr<OnDevice> on = OnDevice::Enter(device_);
    if (on.ok()) ToStatus(cudaFree(address()), "cudaFree").IgnoreError();  // gone with the device
  }

 private:
  const ForkGuard in_creator_;
  const int device_;
};

class CudaEvent final : public DeviceEvent {
 public:
  CudaEvent(int device, cudaEvent_t event) : device_(device), event_(event) {}
  ~CudaEvent() override {
    if (!in_creator_) return;
    const absl::StatusOr<OnDevice> on = OnDevice::Enter(device_);
    if (on.ok()) ToStatus(cudaEventDestroy(event_), "cudaEventDestroy").IgnoreError();
  }

  absl::StatusOr<bool> Done() override {
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(device_));
    const cudaError_t error = cudaEventQuery(event_);
    if (error == cudaErrorNotReady) {
      (void)cudaGetLastError();
      return false;
    }
    RETURN_IF_ERROR(ToStatus(error, "cudaEventQuery"));
    return true;
  }
  absl::Status Wait() override {
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(device_));
    return ToStatus(cudaEventSynchronize(event_), "cudaEventSynchronize");
  }

  cudaEvent_t get() const { return event_; }

 private:
  const ForkGuard in_creator_;
  const int device_;
  const cudaEvent_t event_;
};

class CudaStream final : public DeviceStream {
 public:
  enum class Owner { kUs, kCaller };
  CudaStream(int device, cudaStream_t stream, Owner owner)
      : device_(device), stream_(stream), owner_(owner) {}
  ~CudaStream() override {
    if (owner_ == Owner::kCaller || !in_creator_) return;
    const absl::StatusOr<OnDevice> on = OnDevice::Enter(device_);
    // Work already queued on the stream still completes.
    if (on.ok()) ToStatus(cudaStreamDestroy(stream_), "cudaStreamDestroy").IgnoreError();
  }

  absl::Status CopyToDevice(void* device, const void* host, size_t bytes) override {
    return Copy(device, host, bytes, cudaMemcpyHostToDevice);
  }
  absl::Status CopyToHost(void* host, const void* device, size_t bytes) override {
    return Copy(host, device, bytes, cudaMemcpyDeviceToHost);
  }
  absl::Status Record(DeviceEvent& event) override {
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(device_));
    return ToStatus(cudaEventRecord(static_cast<CudaEvent&>(event).get(), stream_),
                    "cudaEventRecord");
  }
  absl::Status WaitFor(const DeviceEvent& event) override {
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(device_));
    return ToStatus(cudaStreamWaitEvent(stream_, static_cast<const CudaEvent&>(event).get(), 0),
                    "cudaStreamWaitEvent");
  }
  void* native() const override { return stream_; }

 private:
  absl::Status Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    if (bytes == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(device_));
    return ToStatus(cudaMemcpyAsync(to, from, bytes, kind, stream_), "cudaMemcpyAsync");
  }

  const ForkGuard in_creator_;
  const int device_;
  const cudaStream_t stream_;
  const Owner owner_;
};

class PageLocked final : public Registration {
 public:
  PageLocked(int device, absl::Span<std::byte> memory) : Registration(memory), device_(device) {}
  ~PageLocked() override {
    if (!in_creator_) return;
    const absl::StatusOr<OnDevice> on = OnDevice::Enter(device_);
    if (on.ok()) {
      ToStatus(cudaHostUnregister(memory().data()), "cudaHostUnregister").IgnoreError();
    }
  }

 private:
  const ForkGuard in_creator_;
  const int device_;
};

class CudaPageLock final : public Registrar {
 public:
  std::string_view name() const override { return "page-lock for cuda"; }
  absl::StatusOr<std::unique_ptr<Registration>> Register(absl::Span<std::byte> memory) override {
    ASSIGN_OR_RETURN(const int device, cuda::DeviceInUse());
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(device));
    const absl::Status locked =
        ToStatus(cudaHostRegister(memory.data(), memory.size(),
                                  cudaHostRegisterPortable | cudaHostRegisterMapped),
                 "cudaHostRegister");
    if (!locked.ok()) {
      return Annotate(locked, "while page-locking ", memory.size(), " bytes");
    }
    return std::make_unique<PageLocked>(device, memory);
  }
};

class CudaBackend final : public DeviceBackend {
 public:
  std::string_view name() const override { return name_; }
  absl::StatusOr<int> Count() override { return cuda::CountDevices(); }

  std::optional<int> InUse() override { return cuda::FindDeviceInUse(); }
  absl::StatusOr<DeviceInfo> Describe(int device) override {
    ASSIGN_OR_RETURN(const int count, cuda::CountDevices());
    if (device < 0 || device >= count) {
      return absl::NotFoundError(absl::StrCat("no GPU ", device, " of ", count));
    }
    cudaDeviceProp properties;
    RETURN_IF_ERROR(
        ToStatus(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties"));
    DeviceInfo info{.name = properties.name,
                    .memory_bytes = static_cast<int64_t>(properties.totalGlobalMem)};
    char address[32] = "";
    RETURN_IF_ERROR(
        ToStatus(cudaDeviceGetPCIBusId(address, sizeof(address), device), "cudaDeviceGetPCIBusId"));
    info.pci_address = absl::AsciiStrToLower(address);
    return info;
  }

  Registrar& page_lock() override { return page_lock_; }

  absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(int device, size_t bytes) override {
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(device));
    void* address = nullptr;
    const absl::Status got = ToStatus(cudaMalloc(&address, bytes), "cudaMalloc");
    if (!got.ok()) return Annotate(got, "for ", bytes, " bytes on GPU ", device);
    return std::make_unique<CudaMemory>(device, address, bytes);
  }

  absl::StatusOr<std::unique_ptr<DeviceStream>> MakeStream(int device) override {
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(device));
    cudaStream_t stream;
    // Does not synchronize with the program's default stream.
    RETURN_IF_ERROR(ToStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                             "cudaStreamCreateWithFlags"));
    return std::make_unique<CudaStream>(device, stream, CudaStream::Owner::kUs);
  }
  absl::StatusOr<std::unique_ptr<DeviceStream>> WrapStream(int device, void* native) override {
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(device));
    return std::make_unique<CudaStream>(device, static_cast<cudaStream_t>(native),
                                        CudaStream::Owner::kCaller);
  }
  absl::StatusOr<std::unique_ptr<DeviceEvent>> MakeEvent(int device) override {
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(device));
    cudaEvent_t event;
    RETURN_IF_ERROR(ToStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                             "cudaEventCreateWithFlags"));
    return std::make_unique<CudaEvent>(device, event);
  }

  absl::Status WithContext(int device, absl::FunctionRef<absl::Status()> call) override {
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(device));
    return call();
  }

  absl::StatusOr<MemoryKind> KindOf(const void* address) override {
    const absl::StatusOr<int> device = cuda::DeviceInUse();
    if (absl::IsNotFound(device.status())) return MemoryKind::kHost;  // no device: only host memory
    RETURN_IF_ERROR(device.status());
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(*device));
    cudaPointerAttributes attributes;
    RETURN_IF_ERROR(
        ToStatus(cudaPointerGetAttributes(&attributes, address), "cudaPointerGetAttributes"));
    switch (attributes.type) {
      case cudaMemoryTypeHost:
        return MemoryKind::kPageLocked;
      case cudaMemoryTypeDevice:
        return cuda::KindOfDeviceMemory(address);
      case cudaMemoryTypeManaged:
        return MemoryKind::kManaged;
      default:
        return MemoryKind::kHost;
    }
  }

 private:
  const std::string name_ =
      absl::StrCat("cuda ", CUDART_VERSION / 1000, ".", CUDART_VERSION % 1000 / 10);
  CudaPageLock page_lock_;
};

}  // namespace

DeviceBackend& LinkedDeviceBackend() {
  static DeviceBackend& backend = *new CudaBackend;  // used until the process ends
  return backend;
}

}  // namespace penstock
