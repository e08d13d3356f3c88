// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/device/gpu_direct_driver.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>

#include "cuda/context.h"
#include "cuda/error.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using cuda::ToStatus;

absl::StatusOr<int> Attribute(cudaDeviceAttr attribute, int device) {
  int value = 0;
  RETURN_IF_ERROR(
      ToStatus(cudaDeviceGetAttribute(&value, attribute, device), "cudaDeviceGetAttribute"));
  return value;
}

// Returns true if the module is loaded or built in. UCX checks the same places.
bool HasPeerModule() {
  constexpr const char* kPlaces[] = {"/sys/module/nvidia_peermem", "/sys/module/nv_peer_mem",
                                     "/sys/kernel/mm/memory_peers/nv_mem"};
  return std::any_of(std::begin(kPlaces), std::end(kPlaces),
                     [](const char* place) { return ::access(place, F_OK) == 0; });
}

class CudaGpuDirect final : public GpuDirectDriver {
 public:
  absl::StatusOr<GpuDirectFacts> Ask(int device) override {
    ASSIGN_OR_RETURN(const cuda::OnDevice on, cuda::OnDevice::Enter(device));
    ASSIGN_OR_RETURN(const int rdma, Attribute(cudaDevAttrGPUDirectRDMASupported, device));
    ASSIGN_OR_RETURN(const int ordering, Attribute(cudaDevAttrGPUDirectRDMAWritesOrdering, device));
    ASSIGN_OR_RETURN(const int flushes,
                     Attribute(cudaDevAttrGPUDirectRDMAFlushWritesOptions, device));
    // If the CPU and the GPU share page tables, a NIC has two paths to the GPU's memory: one
    // through the CPU and one through the GPU.
    ASSIGN_OR_RETURN(const int shared_tables,
                     Attribute(cudaDevAttrPageableMemoryAccessUsesHostPageTables, device));
    return GpuDirectFacts{
        .rdma_supported = rdma != 0,
        .dma_buf_supported =
            cuda::DriverAttribute(device, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) == 1,
        .peer_module = HasPeerModule(),
        .ordering = ordering >= cudaGPUDirectRDMAWritesOrderingAllDevices
                        ? GpuDirectFacts::Ordering::kAllDevices
                    : ordering >= cudaGPUDirectRDMAWritesOrderingOwner
                        ? GpuDirectFacts::Ordering::kOwner
                        : GpuDirectFacts::Ordering::kNone,
        .host_can_flush = (flushes & cudaFlushGPUDirectRDMAWritesOptionHost) != 0,
        .several_paths = shared_tables != 0};
  }

  absl::Status FlushWrites(int device) override {
    ASSIGN_OR_RETURN(const cuda::OnDevice on, cuda::OnDevice::Enter(device));
    return ToStatus(
        cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
                                           cudaFlushGPUDirectRDMAWritesToOwner),
        "cudaDeviceFlushGPUDirectRDMAWrites");
  }
};

}  // namespace

GpuDirectDriver& LinkedGpuDirectDriver() {
  static GpuDirectDriver& driver = *new CudaGpuDirect;  // used until the process ends
  return driver;
}

}  // namespace penstock
