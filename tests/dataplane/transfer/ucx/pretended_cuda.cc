// SPDX-License-Identifier: Apache-2.0
#include "tests/dataplane/transfer/ucx/pretended_cuda.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "tests/dataplane/memory/fake_device.h"

namespace penstock::transfer::ucx {
namespace {

thread_local absl::Time the_time = absl::UnixEpoch();

}  // namespace

void Calls::Add(std::string call) {
  std::lock_guard lock(mu_);
  calls_.push_back(std::move(call));
}

void Calls::Clear() {
  std::lock_guard lock(mu_);
  calls_.clear();
}

std::vector<std::string> Calls::all() const {
  std::lock_guard lock(mu_);
  return calls_;
}

int Calls::Count(const std::string& call) const {
  std::lock_guard lock(mu_);
  return static_cast<int>(std::count(calls_.begin(), calls_.end(), call));
}

// Also records that a receive into CUDA's memory is done.
class PretendedWork final : public Work {
 public:
  PretendedWork(Work& real, Calls& calls) : real_(real), calls_(calls) {}
  void OnDone(const absl::Status& status) override {
    if (status.ok()) calls_.Add("received(cuda)");
    Work& real = real_;
    delete this;
    real.OnDone(status);
  }

 private:
  Work& real_;
  Calls& calls_;
};

class PretendedWorker final : public Worker {
 public:
  PretendedWorker(std::unique_ptr<Worker> real, PretendedFabric& fabric)
      : real_(std::move(real)), fabric_(fabric) {}
  const std::string& address() const override { return real_->address(); }
  size_t max_head_bytes() const override { return real_->max_head_bytes(); }
  void Wake() override { real_->Wake(); }
  bool Progress() override { return real_->Progress(); }
  void Sleep(int milliseconds) override { real_->Sleep(milliseconds); }
  absl::StatusOr<Peer> Connect(std::string_view address) override {
    return real_->Connect(address);
  }
  std::vector<Lane> LanesOf(Peer peer) const override { return real_->LanesOf(peer); }
  bool Close(Peer peer, Work& work) override {
    for (const auto& [offered, staying] : std::exchange(staying_, {})) {
      real_->Release(offered);
      staying->OnDone(absl::UnavailableError("the connection broke (Request canceled)"));
    }
    return real_->Close(peer, work);
  }
  bool Flush(Work& work) override { return real_->Flush(work); }
  absl::StatusOr<bool> Send(Peer peer, const Message& message, Work& work) override {
    return real_->Send(peer, message, work);
  }
  absl::StatusOr<bool> Receive(Offered offered, absl::Span<std::byte> into, MemoryType type,
                               Handle handle, Work& work) override {
    fabric_.OnReceive(into, type, handle);
    if (type == MemoryType::kHost)
      return real_->Receive(offered, into, MemoryType::kHost, handle, work);
    if (!FakeDevice::HasContext()) ++fabric_.without_context;
    if (fabric_.stay > 0) {
      --fabric_.stay;
      staying_.push_back({offered, &work});
      return false;
    }
    if (fabric_.fails > 0) {
      --fabric_.fails;
      real_->Release(offered);
      return absl::InternalError("local protection error");
    }
    auto noted = std::make_unique<PretendedWork>(work, fabric_.calls_);
    absl::StatusOr<bool> done = real_->Receive(offered, into, MemoryType::kHost, handle, *noted);
    if (!done.ok()) return done;
    if (*done) {
      fabric_.calls_.Add("received(cuda)");
    } else {
      [[maybe_unused]] const PretendedWork* kept = noted.release();
    }
    return done;
  }
  void Release(Offered offered) override { real_->Release(offered); }

 private:
  const std::unique_ptr<Worker> real_;
  PretendedFabric& fabric_;
  std::vector<std::pair<Offered, Work*>> staying_;
};

absl::Time PretendedFabric::now() {
  return the_time;
}

std::map<Handle, absl::Span<std::byte>> PretendedFabric::cuda_memory() const {
  std::lock_guard lock(mu_);
  return cuda_memory_;
}

bool PretendedFabric::knows_cuda() const {
  calls_.Add("ucp_context_query");
  return cuda;
}

absl::StatusOr<Handle> PretendedFabric::Register(absl::Span<std::byte> memory, MemoryType type) {
  if (type == MemoryType::kHost) return real_.Register(memory, type);
  calls_.Add("ucp_mem_map(cuda)");
  if (!FakeDevice::HasContext()) ++without_context;
  if (!registers.ok()) return registers;
  absl::StatusOr<Handle> handle = real_.Register(memory, MemoryType::kHost);
  std::lock_guard lock(mu_);
  if (handle.ok()) cuda_memory_[*handle] = memory;
  return handle;
}

absl::StatusOr<std::optional<MemoryType>> PretendedFabric::TypeOf(Handle handle) {
  calls_.Add("ucp_mem_query");
  EXPECT_TRUE(cuda_memory().contains(handle));
  return says;
}

void PretendedFabric::Unregister(Handle handle) {
  bool cudas = false;
  {
    std::lock_guard lock(mu_);
    cudas = cuda_memory_.erase(handle) > 0;
  }
  if (cudas) calls_.Add("ucp_mem_unmap");
  real_.Unregister(handle);
}

absl::StatusOr<std::unique_ptr<Worker>> PretendedFabric::MakeWorker(Worker::Events& events) {
  if (!makes_workers.ok()) return makes_workers;
  absl::StatusOr<std::unique_ptr<Worker>> real = real_.MakeWorker(events);
  if (!real.ok()) return real.status();
  return std::make_unique<PretendedWorker>(*std::move(real), *this);
}

void PretendedFabric::OnReceive(absl::Span<std::byte> into, MemoryType type, Handle handle) {
  calls_.Add(type == MemoryType::kCuda ? "receive(cuda)" : "receive(host)");
  std::lock_guard lock(mu_);
  const auto found = cuda_memory_.find(handle);
  const bool inside = found != cuda_memory_.end() && into.data() >= found->second.data() &&
                      into.data() + into.size() <= found->second.data() + found->second.size();
  EXPECT_EQ(inside, type == MemoryType::kCuda);
  the_time += type == MemoryType::kCuda ? cuda_receive_takes : receive_takes;
}

absl::StatusOr<GpuDirectFacts> PretendedDriver::Ask(int) {
  calls_.Add("cuDeviceGetAttribute");
  return facts;
}

absl::Status PretendedDriver::FlushWrites(int) {
  calls_.Add("cuFlushGPUDirectRDMAWrites");
  if (torn != nullptr) *torn ^= std::byte{1};
  if (fails_behind == 0) return absl::InternalError("the device is gone");
  if (fails_behind > 0) --fails_behind;
  return flushes;
}

}  // namespace penstock::transfer::ucx
