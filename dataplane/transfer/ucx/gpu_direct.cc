// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/gpu_direct.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "penstock/status.h"

namespace penstock::transfer::ucx {
namespace {

constexpr std::string_view kRungs[kGpuDirectRungs] = {
    "UCX supports CUDA",
    "the driver allows it",
    "slots are plain device memory",
    "the NIC registered the slots",
    "writes are seen in order",
    "it is correct and fast",
    "it is reported",
};

GpuDirectVerdict StopAt(int rung, std::string reason) {
  GpuDirectVerdict verdict;
  verdict.stopped_at = rung;
  verdict.reason = std::move(reason);
  return verdict;
}

GpuDirectVerdict StopAt(int rung, const absl::Status& status) {
  return StopAt(rung, std::string(status.message()));
}

std::string WhyNotOrdered(const GpuDirectFacts& facts) {
  if (facts.several_paths)
    return "the GPU is reached over several paths, and writes are not ordered between them";
  if (facts.ordering < GpuDirectFacts::Ordering::kOwner && !facts.host_can_flush)
    return "the GPU does not see a NIC's writes in order, and the host cannot flush them";
  return "";
}

// Makes checks 3 to 6, if the driver allows GPUDirect.
GpuDirectVerdict Climb(GpuDirectCalls& calls, int device, absl::Span<std::byte> slots,
                       const GpuDirectFacts& facts, Handle& handle) {
  const absl::StatusOr<MemoryKind> kind = calls.KindOf(slots.data());
  if (!kind.ok()) return StopAt(3, kind.status());
  if (*kind != MemoryKind::kDevice) {
    return StopAt(3, absl::StrCat("the slots are ", std::string(MemoryKindName(*kind)),
                                  " memory; use memory from cudaMalloc()"));
  }
  if (const absl::Status serves = calls.ServesGpu(device); !serves.ok()) return StopAt(4, serves);
  absl::StatusOr<Handle> registered = calls.RegisterAsCuda(slots);
  if (!registered.ok()) return StopAt(4, registered.status());
  handle = *registered;
  const absl::StatusOr<bool> cuda = calls.SaysCuda(handle);
  if (!cuda.ok()) return StopAt(4, cuda.status());
  if (!*cuda) return StopAt(4, "UCX does not recognize the slots as CUDA memory");
  if (const std::string why = WhyNotOrdered(facts); !why.empty()) return StopAt(5, why);

  const absl::StatusOr<GpuDirectTrial> trial =
      calls.Try(device, slots, handle, facts.host_can_flush);
  GpuDirectVerdict verdict;
  if (!trial.ok()) {
    verdict = StopAt(6, trial.status());
    verdict.in_doubt = absl::IsDeadlineExceeded(trial.status());
    return verdict;
  }
  if (!trial->contents_equal) {
    verdict = StopAt(6, "the data in the GPU's slot differs from the data that was sent");
  } else if (trial->gpu_bytes_per_second < kLeastGpuDirectShare * trial->host_bytes_per_second) {
    verdict = StopAt(
        6, absl::StrFormat("%.1f GB/s into the GPU, %.1f GB/s into the host: staging "
                           "is faster; is the NIC far from the GPU?",
                           trial->gpu_bytes_per_second / 1e9, trial->host_bytes_per_second / 1e9));
  } else {
    verdict.on = true;
    verdict.handle = handle;
    verdict.flush = facts.host_can_flush;
  }
  verdict.trial = *trial;
  return verdict;
}

// Returns true if the release ("1.18.1") supports several GPUs, according to the notes of release
// 1.19.
bool ServesSeveralGpus(std::string_view release) {
  int major = 0, minor = 0;
  const std::vector<std::string> numbers = absl::StrSplit(std::string(release), '.');
  if (numbers.size() < 2 || !absl::SimpleAtoi(numbers[0], &major) ||
      !absl::SimpleAtoi(numbers[1], &minor)) {
    return false;
  }
  return major > 1 || (major == 1 && minor >= 19);
}

}  // namespace

absl::Status ServedGpu::Serve(int device, std::string_view release) {
  if (ServesSeveralGpus(release)) return absl::OkStatus();
  MutexLock lock(mu_);
  if (!served_) served_ = device;
  if (*served_ == device) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("UCX ", std::string(release),
                   " supports one GPU per process, and this process uses it for GPU ", *served_,
                   ", not ", device, "; run one process per GPU, or install UCX 1.19 or newer"));
}

std::string_view GpuDirectRungName(int rung) {
  return kRungs[std::clamp(rung, 1, kGpuDirectRungs) - 1];
}

std::string GpuDirectVerdict::ToString() const {
  std::string text =
      on ? "gpu_direct=on"
         : absl::StrCat("gpu_direct=off: stopped at rung ", stopped_at, " of ", kGpuDirectRungs,
                        " (", std::string(GpuDirectRungName(stopped_at)), "): ", reason,
                        "; elements are staged in host memory");
  if (trial.host_bytes_per_second > 0) {
    absl::StrAppendFormat(&text, "; %.1f GB/s into the GPU, %.1f GB/s into the host",
                          trial.gpu_bytes_per_second / 1e9, trial.host_bytes_per_second / 1e9);
  }
  return text;
}

GpuDirectVerdict ForeseeGpuDirect(bool ucx_knows_cuda, const GpuDirectFacts& facts) {
  if (!ucx_knows_cuda) {
    return StopAt(1,
                  "this UCX was built without CUDA, or UCX_TLS lacks cuda_copy, or this process "
                  "had not used a GPU before it first used ucx; install a UCX with both CUDA and "
                  "verbs, unset UCX_TLS, and choose the GPU first");
  }
  if (!facts.rdma_supported) return StopAt(2, "the GPU or its driver has no GPUDirect RDMA");
  if (!facts.peer_module && !facts.dma_buf_supported) {
    return StopAt(2,
                  "neither nvidia_peermem nor dma-buf is available; run `modprobe nvidia_peermem`, "
                  "or use NVIDIA's open kernel modules on Linux 5.12 or newer");
  }
  GpuDirectVerdict verdict;
  verdict.on = true;
  return verdict;
}

GpuDirectVerdict DecideGpuDirect(GpuDirectCalls& calls, int device, absl::Span<std::byte> slots) {
  // If UCX lacks CUDA, the driver is not queried.
  if (!calls.UcxKnowsCuda()) return ForeseeGpuDirect(false, {});
  const absl::StatusOr<GpuDirectFacts> facts = calls.AskDriver(device);
  if (!facts.ok()) return StopAt(2, facts.status());
  if (const GpuDirectVerdict foreseen = ForeseeGpuDirect(true, *facts); !foreseen.on)
    return foreseen;
  Handle handle = nullptr;
  const GpuDirectVerdict verdict = Climb(calls, device, slots, *facts, handle);
  if (!verdict.on && !verdict.in_doubt && handle != nullptr) calls.Deregister(handle);
  return verdict;
}

}  // namespace penstock::transfer::ucx
