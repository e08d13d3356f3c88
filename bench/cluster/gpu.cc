// SPDX-License-Identifier: Apache-2.0
// NVIDIA's driver, opened at run time. Building this needs no toolkit, and running it needs no GPU.
// CUDA's driver API documentation describes the functions.
#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/cluster/level.h"
#include "bench/interrupt.h"
#include "bench/measure.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

using Result = int;  // 0: done
using Context = void*;
using Stream = void*;
using Address = unsigned long long;  // in GPU memory

struct Driver {
  Result (*init)(unsigned flags) = nullptr;
  Result (*error_text)(Result result, const char** text) = nullptr;
  Result (*count)(int* count) = nullptr;
  Result (*device)(int* device, int ordinal) = nullptr;
  Result (*retain)(Context* context, int device) = nullptr;
  Result (*release)(int device) = nullptr;
  Result (*set_context)(Context context) = nullptr;
  Result (*allocate)(Address* address, size_t bytes) = nullptr;
  Result (*free)(Address address) = nullptr;
  Result (*allocate_host)(void** address, size_t bytes, unsigned flags) = nullptr;
  Result (*free_host)(void* address) = nullptr;
  Result (*to_device)(Address to, const void* from, size_t bytes, Stream stream) = nullptr;
  Result (*to_host)(void* to, Address from, size_t bytes, Stream stream) = nullptr;
  Result (*to_peer)(Address to, Context to_context, Address from, Context from_context,
                    size_t bytes, Stream stream) = nullptr;
  Result (*synchronize)() = nullptr;
};

template <class Function>
bool FindFunction(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

absl::StatusOr<Driver> OpenDriver() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    return absl::NotFoundError("no GPU: no NVIDIA driver is installed (libcuda.so.1)");
  }
  Driver driver;
  const bool whole = FindFunction(library, "cuInit", driver.init) &&
                     FindFunction(library, "cuGetErrorString", driver.error_text) &&
                     FindFunction(library, "cuDeviceGetCount", driver.count) &&
                     FindFunction(library, "cuDeviceGet", driver.device) &&
                     FindFunction(library, "cuDevicePrimaryCtxRetain", driver.retain) &&
                     FindFunction(library, "cuDevicePrimaryCtxRelease_v2", driver.release) &&
                     FindFunction(library, "cuCtxSetCurrent", driver.set_context) &&
                     FindFunction(library, "cuMemAlloc_v2", driver.allocate) &&
                     FindFunction(library, "cuMemFree_v2", driver.free) &&
                     FindFunction(library, "cuMemHostAlloc", driver.allocate_host) &&
                     FindFunction(library, "cuMemFreeHost", driver.free_host) &&
                     FindFunction(library, "cuMemcpyHtoDAsync_v2", driver.to_device) &&
                     FindFunction(library, "cuMemcpyDtoHAsync_v2", driver.to_host) &&
                     FindFunction(library, "cuMemcpyPeerAsync", driver.to_peer) &&
                     FindFunction(library, "cuCtxSynchronize", driver.synchronize);
  if (!whole) return absl::NotFoundError("no GPU: libcuda.so.1 lacks functions of CUDA 11");
  return driver;
}

const absl::StatusOr<Driver>& TheDriver() {
  static const absl::StatusOr<Driver>& driver = *new absl::StatusOr<Driver>(OpenDriver());
  return driver;
}

absl::Status CheckDriverCall(const Driver& driver, Result result, const char* call) {
  if (result == 0) return absl::OkStatus();
  const char* text = nullptr;
  driver.error_text(result, &text);
  return absl::UnavailableError(absl::StrCat(call, ": ", text == nullptr ? "unknown error" : text));
}

enum class Way { kToDevice, kToHost, kToPeer };

// Copies round-robin between 4 buffers at each end. All 4 copies are started before the first wait.
class GpuCopy final : public Side {
 public:
  GpuCopy(Way way, size_t bytes, std::string name)
      : way_(way), bytes_(bytes), name_(std::move(name)), roles_{{"limit", {::getpid()}}} {}
  GpuCopy(const GpuCopy&) = delete;
  GpuCopy& operator=(const GpuCopy&) = delete;
  ~GpuCopy() override {
    for (const auto& [device, address] : device_memory_) {
      driver_.set_context(contexts_[device]);
      driver_.free(address);
    }
    for (void* memory : host_memory_) driver_.free_host(memory);
    for (size_t device = 0; device < contexts_.size(); ++device) {
      driver_.release(static_cast<int>(device));
    }
  }

  absl::Status Start() {
    const int gpus = way_ == Way::kToPeer ? 2 : 1;
    for (int ordinal = 0; ordinal < gpus; ++ordinal) {
      int device = 0;
      Context context = nullptr;
      RETURN_IF_ERROR(CheckDriverCall(driver_, driver_.device(&device, ordinal), "cuDeviceGet"));
      RETURN_IF_ERROR(
          CheckDriverCall(driver_, driver_.retain(&context, device), "cuDevicePrimaryCtxRetain"));
      contexts_.push_back(context);
      RETURN_IF_ERROR(Allocate(ordinal));
    }
    for (size_t i = 0; i < kBuffers && way_ != Way::kToPeer; ++i) {
      void* memory = nullptr;
      RETURN_IF_ERROR(
          CheckDriverCall(driver_, driver_.allocate_host(&memory, bytes_, 0), "cuMemHostAlloc"));
      host_memory_.push_back(memory);
    }
    return absl::OkStatus();
  }

  std::string name() const override { return name_; }
  const Roles& roles() const override { return roles_; }

  absl::StatusOr<Done> Read(double seconds) override {
    RETURN_IF_ERROR(
        CheckDriverCall(driver_, driver_.set_context(contexts_.front()), "cuCtxSetCurrent"));
    const double start = Now();
    double now = start;
    int64_t elements = 0;
    while (!Interrupted() && now < start + seconds) {
      for (size_t i = 0; i < kBuffers; ++i) RETURN_IF_ERROR(CopyOne(i));
      RETURN_IF_ERROR(CheckDriverCall(driver_, driver_.synchronize(), "cuCtxSynchronize"));
      elements += kBuffers;
      now = Now();
    }
    return Done{.seconds = now - start,
                .elements = static_cast<double>(elements),
                .bytes = elements * static_cast<int64_t>(bytes_)};
  }

 private:
  static constexpr size_t kBuffers = 4;

  absl::Status Allocate(size_t device) {
    RETURN_IF_ERROR(
        CheckDriverCall(driver_, driver_.set_context(contexts_[device]), "cuCtxSetCurrent"));
    for (size_t i = 0; i < kBuffers; ++i) {
      Address address = 0;
      RETURN_IF_ERROR(CheckDriverCall(driver_, driver_.allocate(&address, bytes_), "cuMemAlloc"));
      device_memory_.emplace_back(device, address);
    }
    return absl::OkStatus();
  }

  absl::Status CopyOne(size_t i) {
    const Address first = device_memory_[i].second;
    switch (way_) {
      case Way::kToDevice:
        return CheckDriverCall(driver_, driver_.to_device(first, host_memory_[i], bytes_, nullptr),
                               "cuMemcpyHtoDAsync");
      case Way::kToHost:
        return CheckDriverCall(driver_, driver_.to_host(host_memory_[i], first, bytes_, nullptr),
                               "cuMemcpyDtoHAsync");
      case Way::kToPeer:
        return CheckDriverCall(driver_,
                               driver_.to_peer(device_memory_[kBuffers + i].second, contexts_[1],
                                               first, contexts_[0], bytes_, nullptr),
                               "cuMemcpyPeerAsync");
    }
    return absl::InternalError("unknown kind of copy");
  }

  const Driver& driver_ = *TheDriver();
  const Way way_;
  const size_t bytes_;
  const std::string name_;
  const Roles roles_;
  std::vector<Context> contexts_;                          // by device
  std::vector<std::pair<size_t, Address>> device_memory_;  // kBuffers for each device
  std::vector<void*> host_memory_;                         // page-locked
};

Level Copy(Way way, const std::string& variant, const absl::Status& left_out) {
  Level level{.system = "cuMemcpy", .variant = variant, .left_out = left_out};
  if (!left_out.ok()) return level;
  level.start = [way, name = level.name()](
                    int64_t bytes,
                    const std::string& /*scratch*/) -> absl::StatusOr<std::unique_ptr<Side>> {
    auto copy = std::make_unique<GpuCopy>(way, static_cast<size_t>(bytes), name);
    RETURN_IF_ERROR(copy->Start());
    return copy;
  };
  return level;
}

}  // namespace

absl::StatusOr<int> CountGpus() {
  RETURN_IF_ERROR(TheDriver().status());
  const Driver& driver = *TheDriver();
  RETURN_IF_ERROR(Annotate(CheckDriverCall(driver, driver.init(0), "no GPU: cuInit"), "driver"));
  int count = 0;
  RETURN_IF_ERROR(CheckDriverCall(driver, driver.count(&count), "no GPU: cuDeviceGetCount"));
  if (count == 0) return absl::NotFoundError("no GPU: the driver has none for this process");
  return count;
}

std::vector<Level> GpuLevels() {
  const absl::StatusOr<int> gpus = CountGpus();
  const absl::Status peer = gpus.ok() && *gpus < 2
                                ? absl::NotFoundError("no NVLink: this process has only one GPU")
                                : gpus.status();
  return {Copy(Way::kToDevice, "pinned to GPU 0", gpus.status()),
          Copy(Way::kToHost, "GPU 0 to pinned", gpus.status()),
          Copy(Way::kToPeer, "GPU 0 to GPU 1", peer)};
}

}  // namespace penstock::bench
