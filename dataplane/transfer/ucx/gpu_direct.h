// SPDX-License-Identifier: Apache-2.0
// Decides whether a NIC writes bodies of elements directly into a GPU's memory. The decision has
// seven checks, called rungs, made in order on the slots that receive a replica's elements; the
// last check reports the result. At the first check that fails, bodies are staged instead: received
// in a host slot and copied by the device (dataplane/memory/device/device_copy_engine.h). No call
// fails for this reason.
//
// GpuDirectCalls is the interface to the calls; gpu_direct_calls.h implements it with UCX and
// CUDA's driver. inbox.cc then receives the bodies.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/device/device.h"
#include "dataplane/memory/device/gpu_direct_driver.h"
#include "dataplane/transfer/ucx/fabric.h"

namespace penstock::transfer::ucx {

// The result of the sixth rung, which receives the same element into a GPU's slot and into a host
// slot.
struct GpuDirectTrial {
  bool contents_equal = false;
  double gpu_bytes_per_second = 0;
  double host_bytes_per_second = 0;
};

// The one GPU that UCX before 1.19 serves in a process: the first whose memory is registered.
// Releases from 1.19 on support several GPUs. Any thread.
class ServedGpu {
 public:
  // FailedPrecondition, with the numbers of both devices, if UCX of release `release` ("1.18.1")
  // serves a different device.
  absl::Status Serve(int device, std::string_view release);

 private:
  Mutex mu_;
  std::optional<int> served_ GUARDED_BY(mu_);
};

// The calls to UCX and the driver. One thread at a time.
class GpuDirectCalls {
 public:
  virtual ~GpuDirectCalls() = default;
  virtual bool UcxKnowsCuda() = 0;  // memory types of ucp_context_query()
  virtual absl::Status ServesGpu(int device) = 0;
  virtual absl::StatusOr<GpuDirectFacts> AskDriver(int device) = 0;
  virtual absl::StatusOr<MemoryKind> KindOf(const void* address) = 0;
  // Calls ucp_mem_map() with memory type CUDA, once for all slots.
  virtual absl::StatusOr<Handle> RegisterAsCuda(absl::Span<std::byte> slots) = 0;
  virtual absl::StatusOr<bool> SaysCuda(Handle handle) = 0;  // ucp_mem_query()
  virtual void Deregister(Handle handle) = 0;
  // Sends a pattern into the first slot and into a host slot, reads both slots back and compares
  // them. `flush`: calls FlushWrites() after the NIC's writes. DeadlineExceeded: the work did not
  // end in time, and may still write to the slots.
  virtual absl::StatusOr<GpuDirectTrial> Try(int device, absl::Span<std::byte> slots, Handle handle,
                                             bool flush) = 0;
};

inline constexpr int kGpuDirectRungs = 7;
// Returns the name of a rung, 1 to kGpuDirectRungs, such as "UCX supports CUDA".
std::string_view GpuDirectRungName(int rung);

// If the rate into the GPU is below this share of the rate into the host, over the same NIC,
// staging is faster.
inline constexpr double kLeastGpuDirectShare = 0.7;

struct GpuDirectVerdict {
  bool on = false;
  int stopped_at = 0;       // the rung; 0 if on
  std::string reason;       // why the checks stopped, and the remedy; empty if on
  Handle handle = nullptr;  // for the slots, if on; the caller deregisters it
  bool flush = false;       // flush after each receive
  // The NIC may still write to the slots: they must stay allocated and registered until the process
  // ends.
  bool in_doubt = false;
  GpuDirectTrial trial;  // set if the checks got that far
  // Returns, for example, "gpu_direct=off: stopped at rung 2 of 7 (the driver allows it): …".
  std::string ToString() const;
};

// Makes the checks on the slots that receive a GPU's elements. If the checks choose staging, the
// registration is undone, unless GpuDirectVerdict::in_doubt is true.
GpuDirectVerdict DecideGpuDirect(GpuDirectCalls& calls, int device, absl::Span<std::byte> slots);

// Makes only the first two checks, which need no link (penstock doctor).
GpuDirectVerdict ForeseeGpuDirect(bool ucx_knows_cuda, const GpuDirectFacts& facts);

}  // namespace penstock::transfer::ucx
