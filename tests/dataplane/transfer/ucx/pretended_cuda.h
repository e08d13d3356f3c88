// SPDX-License-Identifier: Apache-2.0
// A real UCX that pretends to support CUDA, and a GPU's driver. Both give the answers that a test
// sets, and record their calls.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "dataplane/memory/device/gpu_direct_driver.h"
#include "dataplane/transfer/ucx/fabric.h"

namespace penstock::transfer::ucx {

// A list of calls in order. Any thread.
class Calls {
 public:
  void Add(std::string call);
  void Clear();
  std::vector<std::string> all() const;
  int Count(const std::string& call) const;

 private:
  mutable std::mutex mu_;
  std::vector<std::string> calls_;  // guarded by mu_
};

// Records "ucp_context_query", "ucp_mem_map(cuda)", "ucp_mem_query", "ucp_mem_unmap",
// "receive(cuda)", "received(cuda)" and "receive(host)".
class PretendedFabric final : public Fabric {
 public:
  PretendedFabric(Fabric& real, Calls& calls) : real_(real), calls_(calls) {}

  // Set before the first call:
  bool cuda = true;
  std::string said_release = "1.19.0";  // a release that serves several GPUs
  absl::Status registers;               // status of registering CUDA's memory
  std::optional<MemoryType> says = MemoryType::kCuda;
  absl::Status makes_workers;  // from now on, status of making a trial's workers
  // Each thread has its own clock, which advances only by these times of receives.
  absl::Duration receive_takes = absl::Milliseconds(10);       // into host memory
  absl::Duration cuda_receive_takes = absl::Milliseconds(11);  // into GPU memory
  // How often a thread without a current context registered CUDA's memory.
  std::atomic<int> without_context = 0;
  // Any time: this many receives into CUDA's memory fail, except those of a trial.
  std::atomic<int> fails = 0;
  // This many receives before those stay under way, and are cancelled when the peer is closed.
  std::atomic<int> stay = 0;

  static absl::Time now();
  // Returns CUDA's memory that is registered now.
  std::map<Handle, absl::Span<std::byte>> cuda_memory() const;

  const std::string& release() const override { return said_release; }
  const std::string& path() const override { return real_.path(); }
  bool closes_unanswered() const override { return real_.closes_unanswered(); }
  bool knows_cuda() const override;
  absl::StatusOr<Handle> Register(absl::Span<std::byte> memory, MemoryType type) override;
  absl::StatusOr<std::optional<MemoryType>> TypeOf(Handle handle) override;
  void Unregister(Handle handle) override;
  absl::StatusOr<std::unique_ptr<Worker>> MakeWorker(Worker::Events& events) override;

 private:
  friend class PretendedWorker;
  // A receive into CUDA's memory must say so, and give the handle of that memory.
  void OnReceive(absl::Span<std::byte> into, MemoryType type, Handle handle);

  Fabric& real_;
  Calls& calls_;
  mutable std::mutex mu_;
  std::map<Handle, absl::Span<std::byte>> cuda_memory_;  // guarded by mu_
};

// Records "cuDeviceGetAttribute" and "cuFlushGPUDirectRDMAWrites".
class PretendedDriver final : public GpuDirectDriver {
 public:
  explicit PretendedDriver(Calls& calls) : calls_(calls) {}
  absl::StatusOr<GpuDirectFacts> facts =
      GpuDirectFacts{.rdma_supported = true,
                     .peer_module = true,
                     .ordering = GpuDirectFacts::Ordering::kOwner,
                     .host_can_flush = true};
  absl::Status flushes;
  std::byte* torn = nullptr;           // a byte that differs after a flush
  std::atomic<int> fails_behind = -1;  // any time: flushes fail after this many; below 0: none

  absl::StatusOr<GpuDirectFacts> Ask(int device) override;
  absl::Status FlushWrites(int device) override;

 private:
  Calls& calls_;
};

}  // namespace penstock::transfer::ucx
