// SPDX-License-Identifier: Apache-2.0
// What a GPU's driver has to do with a NIC that writes into the GPU's memory by itself. As
// with device.h the linker chooses what is behind it: cuda/gpu_direct_driver.cc, or
// cuda/no_gpu_direct_driver.cc where there is no toolkit.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock {

// What CUDA's driver and the kernel say of a GPU.
struct GpuDirectFacts {
  bool rdma_supported = false;     // CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED
  bool dma_buf_supported = false;  // CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, and the kernel's
  bool peer_module = false;        // nvidia_peermem, or nv_peer_mem before it
  // Writes of a NIC are seen in order: by nobody, by this GPU, by all of them.
  enum class Ordering { kNone = 0, kOwner = 100, kAllDevices = 200 };
  Ordering ordering = Ordering::kNone;
  bool host_can_flush = false;  // cudaDeviceFlushGPUDirectRDMAWrites() works
  bool several_paths = false;   // from NIC to GPU: none orders those of the others
};

// Any thread.
class GpuDirectDriver {
 public:
  virtual ~GpuDirectDriver() = default;
  // NotFound with the reason for a device that is not there.
  virtual absl::StatusOr<GpuDirectFacts> Ask(int device) = 0;
  // Writes that a NIC made are seen by what is asked of the device from then on.
  virtual absl::Status FlushWrites(int device) = 0;
};

// That of the backend that is linked in.
GpuDirectDriver& LinkedGpuDirectDriver();

}  // namespace penstock
