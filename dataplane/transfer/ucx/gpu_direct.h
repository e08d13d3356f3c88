// SPDX-License-Identifier: Apache-2.0
// Whether a NIC writes bodies of elements into a GPU's memory by itself. Seven rungs are climbed
// for the places that a replica's elements are received in, of which the last is the report; at
// the first that does not hold, bodies are staged: received in a host slot and copied
// by the device (dataplane/memory/device_copy_engine.h). Nothing fails for it.
//
// The calls stand behind an interface, which gpu_direct_calls.h has on UCX and CUDA's
// driver. How a body is then received: engine_messages.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/device.h"
#include "dataplane/memory/gpu_direct_driver.h"
#include "dataplane/transfer/ucx/fabric.h"

namespace penstock::transfer::ucx {

// What the sixth rung measures: the same element into a GPU's slot and into the host's.
struct GpuDirectTrial {
  bool contents_equal = false;
  double gpu_bytes_per_second = 0;
  double host_bytes_per_second = 0;
};

// The GPU that UCX before 1.19 serves in a process: the first whose memory is registered. Releases
// from 1.19 on keep the memory of several GPUs apart. Any thread.
class ServedGpu {
 public:
  // FailedPrecondition naming both devices, if UCX of that release ("1.18.1") serves another.
  absl::Status Serve(int device, std::string_view release);

 private:
  Mutex mu_;
  std::optional<int> served_ GUARDED_BY(mu_);
};

// Calls of UCX and the driver. One thread at a time.
class GpuDirectCalls {
 public:
  virtual ~GpuDirectCalls() = default;
  virtual bool UcxKnowsCuda() = 0;  // memory types of ucp_context_query()
  virtual absl::Status ServesGpu(int device) = 0;
  virtual absl::StatusOr<GpuDirectFacts> AskDriver(int device) = 0;
  virtual absl::StatusOr<MemoryKind> KindOf(const void* address) = 0;
  // ucp_mem_map() with memory type CUDA, of all slots at once.
  virtual absl::StatusOr<Handle> RegisterAsCuda(absl::Span<std::byte> slots) = 0;
  virtual absl::StatusOr<bool> SaysCuda(Handle handle) = 0;  // ucp_mem_query()
  virtual void Deregister(Handle handle) = 0;
  // A pattern into the first slot and into a host slot, read back and compared.
  // `flush`: FlushWrites() behind what the NIC wrote.
  // DeadlineExceeded: what was begun did not end, and may still write to the slots.
  virtual absl::StatusOr<GpuDirectTrial> Try(int device, absl::Span<std::byte> slots, Handle handle,
                                             bool flush) = 0;
};

inline constexpr int kGpuDirectRungs = 7;
// "UCX knows CUDA", of rung 1 to kGpuDirectRungs.
std::string_view GpuDirectRungName(int rung);

// Below this share of the host's rate, over the same rail, staging is faster.
inline constexpr double kLeastGpuDirectShare = 0.7;

struct GpuDirectVerdict {
  bool on = false;
  int stopped_at = 0;       // the rung; 0 if on
  std::string reason;       // of that, and what to do; empty if on
  Handle handle = nullptr;  // of the slots, if on; the caller deregisters it
  bool flush = false;       // behind each receive
  // The slots may still be written to: they stay, and stay registered, as long as the process.
  bool in_doubt = false;
  GpuDirectTrial trial;  // if it came so far
  // "gpu_direct=off: stopped at rung 2 of 7 (the driver allows it): …"
  std::string ToString() const;
};

// Climbs the rungs with the slots that a GPU's elements are received in. What was registered on
// the way is let loose again if it ends in staging, unless that is in doubt.
GpuDirectVerdict DecideGpuDirect(GpuDirectCalls& calls, int device, absl::Span<std::byte> slots);

// The first two rungs alone, from what can be known without a link (penstock doctor).
GpuDirectVerdict ForeseeGpuDirect(bool ucx_knows_cuda, const GpuDirectFacts& facts);

}  // namespace penstock::transfer::ucx
