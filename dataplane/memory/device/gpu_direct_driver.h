// SPDX-License-Identifier: Apache-2.0
// The part of a GPU's driver that lets a NIC write into the GPU's memory directly. As for device.h,
// the linker chooses the implementation: cuda/gpu_direct_driver.cc, or cuda/no_gpu_direct_driver.cc
// if there is no toolkit.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock {

// The facts that CUDA's driver and the kernel report about a GPU.
struct GpuDirectFacts {
  bool rdma_supported = false;     // CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED
  bool dma_buf_supported = false;  // CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, and kernel support
  bool peer_module = false;        // nvidia_peermem, or its predecessor nv_peer_mem
  // The devices that see a NIC's writes in order: none, this GPU, or all GPUs.
  enum class Ordering { kNone = 0, kOwner = 100, kAllDevices = 200 };
  Ordering ordering = Ordering::kNone;
  bool host_can_flush = false;  // cudaDeviceFlushGPUDirectRDMAWrites() works
  bool several_paths = false;   // from NIC to GPU; writes over different paths are not ordered
};

// Any thread may call its methods.
class GpuDirectDriver {
 public:
  virtual ~GpuDirectDriver() = default;
  // NotFound with the reason for a device that does not exist.
  virtual absl::StatusOr<GpuDirectFacts> Ask(int device) = 0;
  // After this call, work queued on the device sees the writes that a NIC has made.
  virtual absl::Status FlushWrites(int device) = 0;
};

// The driver of the backend that is linked in.
GpuDirectDriver& LinkedGpuDirectDriver();

}  // namespace penstock
