// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "dataplane/transfer/ucx/gpu_direct.h"
#include "tools/doctor/checks.h"
#include "tools/doctor/pci.h"
#include "tools/doctor/readings.h"

namespace penstock::doctor {
namespace {

constexpr char kDriver[] = "/proc/driver/nvidia/version";

// dma-buf registration needs Linux 5.12 and NVIDIA's open kernel modules.
bool HasDmaBuf(const Probe& probe) {
  const std::vector<std::string> parts =
      absl::StrSplit(probe.Read("/proc/sys/kernel/osrelease").value_or(""), '.');
  int major = 0, minor = 0;
  if (parts.size() < 2 || !absl::SimpleAtoi(parts[0], &major) ||
      !absl::SimpleAtoi(parts[1], &minor)) {
    return false;
  }
  return std::pair(major, minor) >= std::pair(5, 12) &&
         absl::StrContains(probe.Read(kDriver).value_or(""), "Open Kernel Module");
}

// The modules through which a NIC reaches GPU memory: the driver's own and its predecessor.
bool HasPeerModule(const Probe& probe) {
  return !probe.List("/sys/module/nvidia_peermem").empty() ||
         !probe.List("/sys/module/nv_peer_mem").empty() ||
         !probe.List("/sys/kernel/mm/memory_peers/nv_mem").empty();
}

Finding NoDriver(size_t gpus) {
  return {.id = "gpu.no_driver",
          .severity = Severity::kWarning,
          .what = absl::StrCat("The machine has ", gpus, " NVIDIA GPU", gpus == 1 ? "" : "s",
                               ", but no driver is loaded."),
          .why = "Elements can only be received in host memory.",
          .remedy = "Install and load NVIDIA's driver (`modprobe nvidia`)."};
}

Finding NoLibrary(const absl::Status& status) {
  return {.id = "gpu.no_library",
          .severity = Severity::kWarning,
          .what = absl::StrCat("The GPU's driver is loaded, but libcuda.so.1 cannot be opened (",
                               std::string(status.message()), ")."),
          .why = "This process cannot use the GPU: elements are received in host memory only.",
          .remedy =
              "In a container use NVIDIA's container toolkit (`--gpus all`). Elsewhere install the "
              "driver's libraries, in the version of the module."};
}

// Reports that the build has no CUDA, or that CUDA finds none of the existing devices.
Finding BackendFindsNone(const Probe& probe, const absl::Status& why) {
  if (probe.DeviceBackendName() == "none") {
    return {.id = "gpu.no_backend",
            .severity = Severity::kWarning,
            .what = "The machine has a GPU, but this build of Penstock has no CUDA.",
            .why = "Segments are not page-locked, and elements are received in host memory only.",
            .remedy = "Build with the CUDA toolkit (`cmake --preset cuda`)."};
  }
  return {.id = "gpu.not_usable",
          .severity = Severity::kWarning,
          .what = absl::StrCat("The machine has a GPU, but ", probe.DeviceBackendName(),
                               " finds none that this process can use (",
                               std::string(why.message()), ")."),
          .why = "Elements can only be received in host memory.",
          .remedy = "Check `nvidia-smi`, CUDA_VISIBLE_DEVICES, and the devices of the container."};
}

Finding Backend(const Probe& probe) {
  const absl::StatusOr<int> count = probe.CountDevices();
  return {.id = "gpu.backend",
          .what = absl::StrCat("Backend for GPUs: ", probe.DeviceBackendName(), "; ",
                               count.ok() ? absl::StrCat("devices it can use: ", *count)
                                          : std::string(count.status().message()),
                               ".")};
}

Finding NoPeerMemory() {
  return {
      .id = "gpu.no_peer_memory",
      .severity = Severity::kWarning,
      .what =
          "The NIC cannot write to GPU memory: neither nvidia_peermem nor dma-buf is available.",
      .why =
          "Elements are received in page-locked host memory and copied to the GPU from there, "
          "which costs one more pass over host memory.",
      .remedy =
          "Run `modprobe nvidia_peermem`, or use NVIDIA's open kernel modules with Linux 5.12 or "
          "newer, for dma-buf.",
      .protocols = {"ucx"}};
}

// Reports the rungs of GPUDirect that can be checked without a link.
Finding Direct(const Probe& probe) {
  const transfer::ucx::GpuDirectVerdict foreseen =
      transfer::ucx::ForeseeGpuDirect(UcxKnowsCuda(probe), {.rdma_supported = true,
                                                            .dma_buf_supported = HasDmaBuf(probe),
                                                            .peer_module = HasPeerModule(probe)});
  return {.id = "gpu.direct",
          .what = foreseen.on ? "GPUDirect RDMA: no obstacle found (rungs 1 and 2 of 7). "
                                "CopyStats() shows whether it is used."
                              : absl::StrCat("GPUDirect RDMA: ", foreseen.ToString(), "."),
          .protocols = {"ucx"}};
}

Finding FarFromNic(const PciDevice& gpu, const PciDevice& nic, Distance distance) {
  return {.id = "gpu.far_from_nic",
          .severity = Severity::kWarning,
          .what = absl::StrCat("GPU ", gpu.name, " reaches its nearest NIC, ", nic.name,
                               ", through ", DistanceName(distance), "."),
          .why =
              "Data that the NIC writes to the GPU crosses one processor, or even two, often at a "
              "fraction of the NIC's rate.",
          .remedy =
              "Put NIC and GPU below one PCIe switch or host bridge. Otherwise receive elements in "
              "host memory of the NIC's NUMA node.",
          .protocols = {"ucx"}};
}

// Returns the nearest NIC among those whose place on the bus is known.
std::optional<std::pair<Distance, PciDevice>> Nearest(const PciDevice& gpu,
                                                      const std::vector<PciDevice>& nics) {
  std::optional<std::pair<Distance, PciDevice>> nearest;
  if (gpu.path.empty()) return nearest;
  for (const PciDevice& nic : nics) {
    const Distance distance = DistanceBetween(gpu, nic);
    if (!nearest || distance < nearest->first) nearest = {distance, nic};
  }
  return nearest;
}

}  // namespace

std::vector<Finding> CheckGpu(const Probe& probe) {
  const std::vector<PciDevice> gpus = NvidiaGpus(probe);
  if (gpus.empty()) {
    return {{.id = "gpu.none", .what = "No NVIDIA GPU: elements stay in host memory."},
            Backend(probe)};
  }
  if (!probe.Read(kDriver)) return {NoDriver(gpus.size())};

  std::vector<Finding> findings;
  const absl::StatusOr<std::string> library = probe.FindLibrary("libcuda.so.1");
  if (!library.ok()) findings.push_back(NoLibrary(library.status()));
  const absl::StatusOr<int> usable = probe.CountDevices();
  if (library.ok() && !usable.ok()) findings.push_back(BackendFindsNone(probe, usable.status()));
  findings.push_back(Backend(probe));
  const std::vector<PciDevice> nics = RdmaNics(probe);
  if (!nics.empty() && !HasPeerModule(probe) && !HasDmaBuf(probe)) {
    findings.push_back(NoPeerMemory());
  }
  if (!nics.empty()) findings.push_back(Direct(probe));
  for (const PciDevice& gpu : gpus) {
    const auto nearest = Nearest(gpu, nics);
    const std::string model =
        ReadField(probe, absl::StrCat("/proc/driver/nvidia/gpus/", gpu.name, "/information"),
                  "Model")
            .value_or("unknown model");
    findings.push_back(
        {.id = "gpu.device",
         .what = absl::StrCat("GPU ", gpu.name, ", ", model,
                              nearest ? absl::StrCat(", nearest NIC ", nearest->second.name,
                                                     " through ", DistanceName(nearest->first))
                                      : std::string(),
                              ".")});
    if (nearest && nearest->first >= Distance::kNode) {
      findings.push_back(FarFromNic(gpu, nearest->second, nearest->first));
    }
  }
  return findings;
}

}  // namespace penstock::doctor
