// SPDX-License-Identifier: Apache-2.0
// The functions of CUDA's driver that cuda/context.cc looks up. A context's handle points to the
// number of its device and stays valid from one process to the next.
#include <cuda.h>

#include <array>

#include "tests/cuda/pretended_world.h"

using penstock::pretended_cuda::World;

namespace {

constexpr int kMostDevices = 16;

CUcontext ContextOf(int device) {
  static const auto& numbers = *[] {
    auto* const made = new std::array<int, kMostDevices>;
    for (int i = 0; i < kMostDevices; ++i) (*made)[i] = i;
    return made;
  }();
  return reinterpret_cast<CUcontext>(const_cast<int*>(&numbers.at(device)));
}

bool IsDevice(const World& world, int device) {
  return device >= 0 && device < world.machine.devices;
}

}  // namespace

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  World& world = World::Get();
  std::lock_guard lock(world.mu);
  if (!world.started) return CUDA_ERROR_NOT_INITIALIZED;
  if (!IsDevice(world, ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  World& world = World::Get();
  std::lock_guard lock(world.mu);
  if (!IsDevice(world, device)) return CUDA_ERROR_INVALID_DEVICE;
  world.NeedContext(device, "cuDevicePrimaryCtxRetain");
  *context = ContextOf(device);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  World& world = World::Get();
  std::lock_guard lock(world.mu);
  if (!IsDevice(world, device)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *active = world.contexts[device] ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
  World& world = World::Get();
  std::lock_guard lock(world.mu);
  for (int device = 0; device < world.machine.devices; ++device) {
    if (context != ContextOf(device)) continue;
    if (!world.contexts[device]) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    world.thread().contexts.push_back(device);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  World& world = World::Get();
  std::lock_guard lock(world.mu);
  std::vector<int>& stack = world.thread().contexts;
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = ContextOf(stack.back());
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  World& world = World::Get();
  std::lock_guard lock(world.mu);
  const auto* at = reinterpret_cast<const void*>(address);  // NOLINT(performance-no-int-to-ptr)
  if (attribute != CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE || world.FindMemory(at, 1) == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *static_cast<CUmemoryPool*>(data) = nullptr;  // all memory is from cudaMalloc()
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) {
  *value = 0;
  return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle*, void*) {
  return CUDA_ERROR_INVALID_VALUE;  // no memory consists of pieces
}

CUresult cuMemRelease(CUmemGenericAllocationHandle) {
  return CUDA_ERROR_INVALID_VALUE;
}
