// SPDX-License-Identifier: Apache-2.0
#include "cuda/context.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "cuda/error.h"
#include "include/status_macros.h"

namespace penstock::cuda {
namespace {

// Functions of the driver that the runtime does not offer. The driver is opened at run time,
// because a program that is linked against libcuda does not start on machines without libcuda.
struct Driver {
  decltype(&cuDeviceGet) device_get = nullptr;
  decltype(&cuDevicePrimaryCtxRetain) retain = nullptr;
  decltype(&cuDevicePrimaryCtxGetState) state = nullptr;
  decltype(&cuCtxPushCurrent_v2) push = nullptr;
  decltype(&cuCtxPopCurrent_v2) pop = nullptr;
  decltype(&cuPointerGetAttribute) pointer_attribute = nullptr;
  decltype(&cuDeviceGetAttribute) device_attribute = nullptr;
  decltype(&cuMemRetainAllocationHandle) retain_allocation = nullptr;
  decltype(&cuMemRelease) release_allocation = nullptr;

  bool whole() const { return device_get && retain && state && push && pop; }
};

template <class Function>
void FindDriverFunction(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
}

Driver OpenDriver() {
  Driver driver;
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW);  // the runtime also keeps it open
  if (library == nullptr) return driver;
  FindDriverFunction(library, "cuDeviceGet", driver.device_get);
  FindDriverFunction(library, "cuDevicePrimaryCtxRetain", driver.retain);
  FindDriverFunction(library, "cuDevicePrimaryCtxGetState", driver.state);
  FindDriverFunction(library, "cuCtxPushCurrent_v2", driver.push);
  FindDriverFunction(library, "cuCtxPopCurrent_v2", driver.pop);
  FindDriverFunction(library, "cuPointerGetAttribute", driver.pointer_attribute);
  FindDriverFunction(library, "cuDeviceGetAttribute", driver.device_attribute);
  FindDriverFunction(library, "cuMemRetainAllocationHandle", driver.retain_allocation);
  FindDriverFunction(library, "cuMemRelease", driver.release_allocation);
  return driver;
}

const Driver& TheDriver() {
  static const Driver driver = OpenDriver();
  return driver;
}

// Converts an error of the driver. An error that also exists in the runtime has the same number
// there.
absl::Status DriverStatus(CUresult result, const char* call) {
  return ToStatus(static_cast<int>(result), call);
}

struct Contexts {
  Mutex mu;
  std::vector<CUcontext> of GUARDED_BY(mu);  // by device; null: not retained yet
};

Contexts& OurContexts() {
  static Contexts& contexts = *new Contexts;
  return contexts;
}

// Returns the device's primary context and retains it until the process ends, because Penstock's
// streams and memory belong to this context.
absl::StatusOr<CUcontext> PrimaryContext(int device) {
  Contexts& contexts = OurContexts();
  {
    MutexLock lock(contexts.mu);
    if (device >= 0 && static_cast<size_t>(device) < contexts.of.size() &&
        contexts.of[device] != nullptr) {
      return contexts.of[device];
    }
  }
  ASSIGN_OR_RETURN(const int count, CountDevices());
  if (device < 0 || device >= count) {
    return absl::NotFoundError(
        absl::StrCat("no GPU ", device, ": this process has ", count, ", numbered from 0"));
  }
  const Driver& driver = TheDriver();
  if (!driver.whole()) {
    return absl::NotFoundError("no GPU: libcuda.so.1 lacks functions that every driver has");
  }
  MutexLock lock(contexts.mu);
  if (contexts.of.empty()) contexts.of.resize(count);
  CUcontext& context = contexts.of[device];
  if (context == nullptr) {
    CUdevice handle;
    RETURN_IF_ERROR(DriverStatus(driver.device_get(&handle, device), "cuDeviceGet"));
    RETURN_IF_ERROR(DriverStatus(driver.retain(&context, handle), "cuDevicePrimaryCtxRetain"));
  }
  return context;
}

}  // namespace

absl::StatusOr<int> CountDevices() {
  int count = 0;
  RETURN_IF_ERROR(ToStatus(cudaGetDeviceCount(&count), "cudaGetDeviceCount"));
  if (count == 0) return NoGpu(cudaErrorNoDevice);
  return count;
}

std::optional<int> FindDeviceInUse() {
  const Driver& driver = TheDriver();
  if (!driver.whole()) return std::nullopt;
  CUdevice handle;
  // device_get() fails past the last device, and for every device until the driver is initialized.
  for (int device = 0; driver.device_get(&handle, device) == CUDA_SUCCESS; ++device) {
    unsigned flags = 0;
    int active = 0;
    if (driver.state(handle, &flags, &active) == CUDA_SUCCESS && active != 0) return device;
  }
  return std::nullopt;
}

absl::StatusOr<int> DeviceInUse() {
  {
    Contexts& contexts = OurContexts();
    MutexLock lock(contexts.mu);
    for (size_t device = 0; device < contexts.of.size(); ++device) {
      if (contexts.of[device] != nullptr) return static_cast<int>(device);
    }
  }
  RETURN_IF_ERROR(CountDevices().status());
  return FindDeviceInUse().value_or(0);
}

MemoryKind KindOfDeviceMemory(const void* address) {
  const Driver& driver = TheDriver();
  if (driver.pointer_attribute == nullptr) return MemoryKind::kDevice;
  const auto at = reinterpret_cast<CUdeviceptr>(address);
  CUmemoryPool pool = nullptr;
  if (driver.pointer_attribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, at) == CUDA_SUCCESS &&
      pool != nullptr) {
    return MemoryKind::kPooled;
  }
  // Only mapped memory has an allocation handle. The attribute that says whether other processes
  // can open the memory does not distinguish mapped memory from cudaMalloc()'s: under some drivers,
  // in MIG and in confidential computing, the attribute is false for both kinds.
  CUmemGenericAllocationHandle pieces;
  if (driver.retain_allocation != nullptr && driver.release_allocation != nullptr &&
      driver.retain_allocation(&pieces, const_cast<void*>(address)) == CUDA_SUCCESS) {
    driver.release_allocation(pieces);
    return MemoryKind::kMapped;
  }
  return MemoryKind::kDevice;
}

int DriverAttribute(int device, int attribute) {
  const Driver& driver = TheDriver();
  CUdevice handle;
  int value = 0;
  if (driver.device_attribute == nullptr || driver.device_get == nullptr ||
      driver.device_get(&handle, device) != CUDA_SUCCESS ||
      driver.device_attribute(&value, static_cast<CUdevice_attribute>(attribute), handle) !=
          CUDA_SUCCESS) {
    return 0;
  }
  return value;
}

absl::StatusOr<OnDevice> OnDevice::Enter(int device) {
  ASSIGN_OR_RETURN(CUcontext context, PrimaryContext(device));
  RETURN_IF_ERROR(DriverStatus(TheDriver().push(context), "cuCtxPushCurrent"));
  OnDevice on;
  RETURN_IF_ERROR(ToStatus(cudaThreadExchangeStreamCaptureMode(&on.capture_mode_),
                           "cudaThreadExchangeStreamCaptureMode"));
  return on;
}

OnDevice::~OnDevice() {
  if (!entered_) return;
  cudaThreadExchangeStreamCaptureMode(&capture_mode_);
  CUcontext popped;
  TheDriver().pop(&popped);
}

}  // namespace penstock::cuda
