// SPDX-License-Identifier: Apache-2.0
// The functions of CUDA's runtime that the backend and its tests call. A capture forbids those that
// wait, query, allocate or free. CUDA's documentation calls them potentially unsafe and names
// cudaMalloc() as one.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tests/cuda/pretended_world.h"

using penstock::pretended_cuda::Allocation;
using penstock::pretended_cuda::Capture;
using penstock::pretended_cuda::Event;
using penstock::pretended_cuda::kMemoryBytes;
using penstock::pretended_cuda::kPlain;
using penstock::pretended_cuda::kUnsafe;
using penstock::pretended_cuda::kWaits;
using penstock::pretended_cuda::PageLocked;
using penstock::pretended_cuda::Stream;
using penstock::pretended_cuda::World;

// --- Devices and errors ------------------------------------------------------------------

cudaError_t cudaGetDeviceCount(int* count) {
  return World::Get().DoWithout([&](World& world) {
    *count = world.machine.devices;
    return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return World::Get().DoWithout([&](World& world) {
    if (device < 0 || device >= world.machine.devices) return cudaErrorInvalidDevice;
    *properties = {};
    std::snprintf(properties->name, sizeof(properties->name), "Pretended");
    properties->totalGlobalMem = kMemoryBytes;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  return World::Get().DoWithout([&](World& world) {
    if (device < 0 || device >= world.machine.devices) return cudaErrorInvalidDevice;
    std::snprintf(id, static_cast<size_t>(bytes), "FFFF:%02X:00.0", device);
    return cudaSuccess;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  return World::Get().DoWithout([&](World& world) {
    if (device < 0 || device >= world.machine.devices) return cudaErrorInvalidDevice;
    world.NeedContext(device, "cudaSetDevice");
    std::vector<int>& stack = world.thread().contexts;
    if (!stack.empty()) stack.pop_back();
    stack.push_back(device);
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return World::Get().DoWithout([&](World& world) {
    const std::vector<int>& stack = world.thread().contexts;
    *device = stack.empty() ? 0 : stack.back();
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return World::Get().Do("cudaDeviceSynchronize", kUnsafe | kWaits, [](World& world, int) {
    world.Run();
    return cudaSuccess;
  });
}

cudaError_t cudaGetLastError() {
  World& world = World::Get();
  std::lock_guard lock(world.mu);
  return std::exchange(world.thread().last_error, cudaSuccess);
}

cudaError_t cudaPeekAtLastError() {
  World& world = World::Get();
  std::lock_guard lock(world.mu);
  return world.thread().last_error;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    default:
      return "an error that the pretended CUDA has no name for";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "pretended";
}

// --- Memory ------------------------------------------------------------------------------

cudaError_t cudaMalloc(void** address, size_t bytes) {
  return World::Get().Do("cudaMalloc", kUnsafe | kWaits, [&](World& world, int device) {
    size_t used = 0;
    for (const auto& [at, memory] : world.memory)
      used += memory.device == device ? memory.bytes : 0;
    if (bytes > kMemoryBytes - used) return cudaErrorMemoryAllocation;
    Allocation made{.device = device, .bytes = bytes, .memory = nullptr};
    made.memory = std::make_unique<std::byte[]>(std::max<size_t>(bytes, 1));
    std::byte* const at = made.memory.get();
    world.memory.emplace(at, std::move(made));
    *address = at;
    return cudaSuccess;
  });
}

cudaError_t cudaFree(void* address) {
  return World::Get().Do("cudaFree", kUnsafe | kWaits, [&](World& world, int) {
    if (address == nullptr) return cudaSuccess;
    const auto found = world.memory.find(static_cast<std::byte*>(address));
    if (found == world.memory.end()) return cudaErrorInvalidValue;
    world.MustBeCurrent(found->second.device, "cudaFree", "memory");
    world.MustNotBeInUse(address, found->second.bytes, "cudaFree");
    world.Run();
    world.memory.erase(found);
    return cudaSuccess;
  });
}

cudaError_t cudaHostRegister(void* address, size_t bytes, unsigned flags) {
  return World::Get().Do("cudaHostRegister", kUnsafe | kWaits, [&](World& world, int device) {
    if (address == nullptr || bytes == 0) return cudaErrorInvalidValue;
    const auto* at = static_cast<std::byte*>(address);
    for (const auto& [begin, locked] : world.page_locked) {
      if (begin < at + bytes && at < begin + locked.bytes) {
        return cudaErrorHostMemoryAlreadyRegistered;
      }
    }
    world.page_locked[at] = {
        .device = device, .portable = (flags & cudaHostRegisterPortable) != 0, .bytes = bytes};
    return cudaSuccess;
  });
}

cudaError_t cudaHostUnregister(void* address) {
  return World::Get().Do("cudaHostUnregister", kUnsafe | kWaits, [&](World& world, int) {
    const auto found = world.page_locked.find(static_cast<std::byte*>(address));
    if (found == world.page_locked.end()) return cudaErrorHostMemoryNotRegistered;
    world.MustNotBeInUse(address, found->second.bytes, "cudaHostUnregister");
    world.Run();
    world.page_locked.erase(found);
    return cudaSuccess;
  });
}

cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned flags) {
  return World::Get().Do("cudaHostAlloc", kUnsafe | kWaits, [&](World& world, int device) {
    auto memory = std::make_unique<std::byte[]>(bytes);
    *address = memory.get();
    world.page_locked[memory.get()] = {
        .device = device, .portable = (flags & cudaHostAllocPortable) != 0, .bytes = bytes};
    world.host_own[*address] = std::move(memory);
    return cudaSuccess;
  });
}

cudaError_t cudaFreeHost(void* address) {
  return World::Get().Do("cudaFreeHost", kUnsafe | kWaits, [&](World& world, int) {
    const auto found = world.host_own.find(address);
    if (found == world.host_own.end()) return cudaErrorInvalidValue;
    const auto locked = world.page_locked.find(found->second.get());
    world.MustNotBeInUse(address, locked->second.bytes, "cudaFreeHost");
    world.Run();
    world.page_locked.erase(locked);
    world.host_own.erase(found);
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  return World::Get().Do("cudaPointerGetAttributes", kPlain, [&](World& world, int) {
    *attributes = {};
    attributes->device = -1;
    if (const Allocation* memory = world.FindMemory(address, 1); memory != nullptr) {
      attributes->type = cudaMemoryTypeDevice;
      attributes->device = memory->device;
      attributes->devicePointer = const_cast<void*>(address);
    } else if (const PageLocked* locked = world.FindPageLocked(address, 1); locked != nullptr) {
      attributes->type = cudaMemoryTypeHost;
      attributes->device = locked->device;
      attributes->hostPointer = const_cast<void*>(address);
    } else {
      attributes->type = cudaMemoryTypeUnregistered;
    }
    return cudaSuccess;
  });
}

// --- Streams -----------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return World::Get().Do("cudaStreamCreateWithFlags", kPlain, [&](World& world, int device) {
    auto made = std::make_unique<Stream>(Stream{.device = device, .work = {}, .capture = {}});
    *stream = reinterpret_cast<cudaStream_t>(made.get());
    world.all_streams.push_back(made.get());
    world.streams[*stream] = std::move(made);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return World::Get().Do("cudaStreamDestroy", kPlain, [&](World& world, int) {
    const auto found = world.streams.find(stream);
    if (found == world.streams.end()) return cudaErrorInvalidResourceHandle;
    world.MustBeCurrent(found->second->device, "cudaStreamDestroy", "stream");
    world.destroyed.push_back(std::move(found->second));
    world.streams.erase(found);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return World::Get().Do("cudaStreamQuery", kUnsafe, [&](World& world, int) {
    Stream* const its = world.Find(stream);
    if (its == nullptr) return cudaErrorInvalidResourceHandle;
    world.MustBeCurrent(its->device, "cudaStreamQuery", "stream");
    const bool done = its->work.empty();
    world.Advance();
    return done ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return World::Get().Do("cudaStreamSynchronize", kUnsafe | kWaits, [&](World& world, int) {
    Stream* const its = world.Find(stream);
    if (its == nullptr) return cudaErrorInvalidResourceHandle;
    world.MustBeCurrent(its->device, "cudaStreamSynchronize", "stream");
    world.Run();
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  constexpr char kCall[] = "cudaMemcpyAsync";
  return World::Get().Do(kCall, kPlain, [&](World& world, int) {
    Stream* const its = world.Find(stream);
    if (its == nullptr) return cudaErrorInvalidResourceHandle;
    world.MustBeCurrent(its->device, kCall, "stream");
    if (bytes == 0) return cudaSuccess;
    bool pageable = false;
    for (const bool source : {true, false}) {
      const void* const address = source ? from : to;
      const bool on_device = kind == (source ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice) ||
                             kind == cudaMemcpyDeviceToDevice;
      const Allocation* const memory = world.FindMemory(address, bytes);
      if (address == nullptr || on_device != (memory != nullptr)) return cudaErrorInvalidValue;
      if (on_device) {
        world.MustBeCurrent(memory->device, kCall, "memory");
        continue;
      }
      const PageLocked* const locked = world.FindPageLocked(address, bytes);
      if (locked != nullptr && (locked->portable || locked->device == its->device)) continue;
      pageable = true;
      if (!world.machine.pageable_copies) {
        world.Violate(std::string(kCall) + (source ? " from" : " to") + " pageable memory");
      }
    }
    if (its->capture.has_value()) return cudaSuccess;  // into a graph that nobody launches
    its->work.push_back({.to = static_cast<std::byte*>(to),
                         .from = static_cast<const std::byte*>(from),
                         .bytes = bytes,
                         .reaches = nullptr,
                         .waits_for = nullptr});
    if (pageable) world.Run();
    return cudaSuccess;
  });
}

// --- Events ------------------------------------------------------------------------------

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return World::Get().Do("cudaEventCreateWithFlags", kPlain, [&](World& world, int device) {
    auto made = std::make_unique<Event>(Event{.device = device});
    *event = reinterpret_cast<cudaEvent_t>(made.get());
    world.events[*event] = std::move(made);
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return World::Get().Do("cudaEventDestroy", kPlain, [&](World& world, int) {
    Event* const its = world.Find(event);
    if (its == nullptr) return cudaErrorInvalidResourceHandle;
    world.MustBeCurrent(its->device, "cudaEventDestroy", "event");
    world.events.erase(event);
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return World::Get().Do("cudaEventRecord", kPlain, [&](World& world, int) {
    Event* const its = world.Find(event);
    Stream* const on = world.Find(stream);
    if (its == nullptr || on == nullptr) return cudaErrorInvalidResourceHandle;
    world.MustBeCurrent(its->device, "cudaEventRecord", "event");
    world.MustBeCurrent(on->device, "cudaEventRecord", "stream");
    if (its->device != on->device) return cudaErrorInvalidResourceHandle;
    its->captured = on->capture.has_value();
    if (its->captured) return cudaSuccess;
    its->reached = std::make_shared<bool>(false);
    on->work.push_back({.reaches = its->reached, .waits_for = nullptr});
    return cudaSuccess;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  constexpr char kCall[] = "cudaStreamWaitEvent";
  return World::Get().Do(kCall, kPlain, [&](World& world, int) {
    Event* const its = world.Find(event);
    Stream* const on = world.Find(stream);
    if (its == nullptr || on == nullptr) return cudaErrorInvalidResourceHandle;
    world.MustBeCurrent(on->device, kCall, "stream");  // the event may be of another device
    if (on->capture.has_value()) {
      if (its->captured) return cudaSuccess;
      world.Invalidate(*on->capture,
                       std::string(kCall) + " in a capture for an event that was recorded outside");
      return cudaErrorStreamCaptureIsolation;
    }
    on->work.push_back({.reaches = nullptr, .waits_for = its->reached});
    return cudaSuccess;
  });
}

namespace {

// Waits for the place where the event was last recorded, or queries it. An event recorded in a
// capture has no such place, even in relaxed mode.
cudaError_t AskEvent(World& world, cudaEvent_t event, const char* call, bool waits) {
  Event* const its = world.Find(event);
  if (its == nullptr) return cudaErrorInvalidResourceHandle;
  world.MustBeCurrent(its->device, call, "event");
  if (its->captured) {
    world.Violate(std::string(call) + " of an event that was recorded in a capture");
    for (auto& [handle, stream] : world.streams) {
      if (stream->capture.has_value()) stream->capture->invalid = true;
    }
    return cudaErrorCapturedEvent;
  }
  if (waits) world.Run();
  const bool done = *its->reached;
  world.Advance();
  return done ? cudaSuccess : cudaErrorNotReady;
}

}  // namespace

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return World::Get().Do("cudaEventQuery", kUnsafe, [&](World& world, int) {
    return AskEvent(world, event, "cudaEventQuery", false);
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return World::Get().Do("cudaEventSynchronize", kUnsafe | kWaits, [&](World& world, int) {
    return AskEvent(world, event, "cudaEventSynchronize", true);
  });
}

// --- Captures ----------------------------------------------------------------------------

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return World::Get().Do("cudaThreadExchangeStreamCaptureMode", kPlain, [&](World& world, int) {
    std::swap(*mode, world.thread().mode);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return World::Get().Do("cudaStreamBeginCapture", kPlain, [&](World& world, int) {
    Stream* const its = world.Find(stream);
    if (its == nullptr || its->capture.has_value()) return cudaErrorInvalidResourceHandle;
    world.MustBeCurrent(its->device, "cudaStreamBeginCapture", "stream");
    its->capture = Capture{.thread = std::this_thread::get_id(), .mode = mode};
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return World::Get().Do("cudaStreamEndCapture", kPlain, [&](World& world, int) {
    Stream* const its = world.Find(stream);
    *graph = nullptr;
    if (its == nullptr || !its->capture.has_value()) return cudaErrorInvalidResourceHandle;
    if (its->capture->mode != cudaStreamCaptureModeRelaxed &&
        its->capture->thread != std::this_thread::get_id()) {
      return cudaErrorStreamCaptureWrongThread;
    }
    const bool invalid = its->capture->invalid;
    its->capture.reset();
    if (invalid) return cudaErrorStreamCaptureInvalidated;
    *graph = reinterpret_cast<cudaGraph_t>(new int);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<int*>(graph);
  return cudaSuccess;
}
