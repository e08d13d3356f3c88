// SPDX-License-Identifier: Apache-2.0
// dataplane/replica/collective.h over NCCL. Its launches are on a CUDA stream of our own,
// on a communicator of our own; what waits polls for errors of that communicator, so
// that a lost rank ends it, and then aborts it here.
//
// NCCL wants launches of different communicators in one order on all ranks of a GPU.
// Before 2.26 the trainer must not have its own under way while it calls Next() or
// Reduce(); from 2.26 on NCCL_LAUNCH_ORDER_IMPLICIT=1 sees to it.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "cuda/context.h"
#include "cuda/error.h"
#include "cuda/nccl_library.h"
#include "dataplane/replica/collective.h"
#include "penstock/status.h"

namespace penstock::cuda {
namespace {

using replica::Collective;
using replica::CollectiveOp;

constexpr std::chrono::microseconds kPoll(20);

int NcclOpOf(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::kSum:
      return kNcclSum;
    case CollectiveOp::kMin:
      return kNcclMin;
    case CollectiveOp::kMax:
      return kNcclMax;
  }
  return kNcclSum;
}

// Page-locked memory that the device reads and writes too.
class Mapped {
 public:
  static absl::StatusOr<Mapped> Of(size_t bytes) {
    void* address = nullptr;
    RETURN_IF_ERROR(
        ToStatus(cudaHostAlloc(&address, std::max<size_t>(bytes, 1), cudaHostAllocPortable),
                 "cudaHostAlloc"));
    return Mapped(address);
  }
  Mapped(Mapped&& other) noexcept : address_(std::exchange(other.address_, nullptr)) {}
  Mapped& operator=(Mapped&& other) noexcept {
    std::swap(address_, other.address_);
    return *this;
  }
  ~Mapped() {
    if (address_ != nullptr) (void)cudaFreeHost(address_);
  }
  char* data() const { return static_cast<char*>(address_); }

 private:
  explicit Mapped(void* address) : address_(address) {}
  void* address_;
};

// A communicator that we own.
class NcclCollective final : public Collective {
 public:
  static absl::StatusOr<std::unique_ptr<NcclCollective>> Split(const NcclLibrary& nccl,
                                                               NcclComm parent, int color) {
    std::unique_ptr<NcclCollective> own(new NcclCollective(nccl));
    MutexLock lock(own->mu_);
    RETURN_IF_ERROR(nccl.ToStatus(nccl.CommCuDevice(parent, &own->device_), "ncclCommCuDevice"));
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(own->device_));
    int key = 0;
    RETURN_IF_ERROR(nccl.ToStatus(nccl.CommUserRank(parent, &key), "ncclCommUserRank"));
    const int result = nccl.CommSplit(parent, color, key, &own->comm_, nullptr);
    if (result != kNcclInProgress) RETURN_IF_ERROR(nccl.ToStatus(result, "ncclCommSplit"));
    // A parent that does not block is being split still.
    RETURN_IF_ERROR(nccl.ToStatus(Settled(nccl, parent), "ncclCommSplit"));
    RETURN_IF_ERROR(own->Settle("ncclCommSplit"));
    RETURN_IF_ERROR(nccl.ToStatus(nccl.CommUserRank(own->comm_, &own->rank_), "ncclCommUserRank"));
    RETURN_IF_ERROR(nccl.ToStatus(nccl.CommCount(own->comm_, &own->size_), "ncclCommCount"));
    RETURN_IF_ERROR(ToStatus(cudaStreamCreateWithFlags(&own->stream_, cudaStreamNonBlocking),
                             "cudaStreamCreateWithFlags"));
    return own;
  }

  ~NcclCollective() override {
    const absl::StatusOr<OnDevice> on = OnDevice::Enter(device_);
    if (!on.ok()) return;
    {
      MutexLock lock(mu_);
      // Unfinished work would never let it be destroyed.
      if (comm_ != nullptr && pending_.empty() && ended_.ok())
        (void)nccl_.CommDestroy(comm_);
      else if (comm_ != nullptr)
        (void)nccl_.CommAbort(comm_);
      comm_ = nullptr;
    }
    if (stream_ == nullptr) return;
    (void)cudaStreamSynchronize(stream_);
    for (const Pending& pending : pending_) (void)cudaEventDestroy(pending.done);
    pending_.clear();
    (void)cudaStreamDestroy(stream_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  absl::Status Start(CollectiveOp op, absl::Span<const int64_t> values) override {
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(device_));
    const size_t bytes = values.size() * sizeof(int64_t);
    ASSIGN_OR_RETURN(Mapped mapped, Mapped::Of(bytes));
    std::memcpy(mapped.data(), values.data(), bytes);
    RETURN_IF_ERROR(Launch("ncclAllReduce", [&](NcclComm comm) {
      return nccl_.AllReduce(mapped.data(), mapped.data(), values.size(), kNcclInt64, NcclOpOf(op),
                             comm, stream_);
    }));
    return Mark(std::move(mapped), values.size());
  }

  absl::StatusOr<std::vector<int64_t>> Finish() override {
    if (pending_.empty()) return absl::FailedPreconditionError("no reduction was started");
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(device_));
    RETURN_IF_ERROR(WaitFor(pending_.front().done));
    const Pending pending = std::move(pending_.front());
    pending_.pop_front();
    (void)cudaEventDestroy(pending.done);
    std::vector<int64_t> values(pending.count);
    std::memcpy(values.data(), pending.mapped.data(), values.size() * sizeof(int64_t));
    return values;
  }

  absl::StatusOr<std::vector<std::string>> AllGather(std::string_view bytes) override {
    if (!pending_.empty()) return absl::FailedPreconditionError("a reduction was not finished");
    std::vector<int64_t> sizes(static_cast<size_t>(size_));
    sizes[static_cast<size_t>(rank_)] = static_cast<int64_t>(bytes.size());
    RETURN_IF_ERROR(Start(CollectiveOp::kSum, sizes));
    ASSIGN_OR_RETURN(sizes, Finish());
    const auto most = static_cast<size_t>(*std::max_element(sizes.begin(), sizes.end()));
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(device_));
    ASSIGN_OR_RETURN(Mapped mapped, Mapped::Of(most * static_cast<size_t>(size_)));
    char* const own = mapped.data() + most * static_cast<size_t>(rank_);
    std::memcpy(own, bytes.data(), bytes.size());
    char* const all = mapped.data();
    RETURN_IF_ERROR(Launch("ncclAllGather", [&](NcclComm comm) {
      return nccl_.AllGather(own, all, most, kNcclUint8, comm, stream_);
    }));
    RETURN_IF_ERROR(Mark(std::move(mapped), 0));
    const absl::Status gathered = WaitFor(pending_.front().done);
    RETURN_IF_ERROR(gathered);
    std::vector<std::string> of_ranks;
    for (size_t i = 0; i < sizes.size(); ++i)
      of_ranks.emplace_back(all + i * most, static_cast<size_t>(sizes[i]));
    (void)cudaEventDestroy(pending_.front().done);
    pending_.pop_front();
    return of_ranks;
  }

  absl::StatusOr<std::unique_ptr<Collective>> Split(int color) override {
    RETURN_IF_ERROR(AsyncError());
    NcclComm comm;
    {
      MutexLock lock(mu_);
      RETURN_IF_ERROR(ended_);
      comm = comm_;
    }
    ASSIGN_OR_RETURN(std::unique_ptr<NcclCollective> split, Split(nccl_, comm, color));
    return split;
  }

  absl::Status AsyncError() const override {
    MutexLock lock(mu_);
    if (!ended_.ok() || comm_ == nullptr) return ended_;
    int error = kNcclSuccess;
    const int asked = nccl_.CommGetAsyncError(comm_, &error);
    if (error == kNcclInProgress) return absl::OkStatus();
    return nccl_.ToStatus(asked != kNcclSuccess ? asked : error, "an NCCL communicator has ended");
  }

  // NCCL carries no words: the others see their own connections break.
  void Abort(const absl::Status& why) override {
    MutexLock lock(mu_);
    ended_.Update(why);
    if (comm_ == nullptr) return;
    const absl::StatusOr<OnDevice> on = OnDevice::Enter(device_);
    if (on.ok()) (void)nccl_.CommAbort(comm_);
    comm_ = nullptr;
  }

 private:
  struct Pending {
    Mapped mapped;
    size_t count;
    cudaEvent_t done;
  };

  explicit NcclCollective(const NcclLibrary& nccl) : nccl_(nccl) {}

  static int Settled(const NcclLibrary& nccl, NcclComm comm) {
    int state = kNcclInProgress;
    while (true) {
      const int asked = nccl.CommGetAsyncError(comm, &state);
      if (asked != kNcclSuccess) return asked;
      if (state != kNcclInProgress) return state;
      std::this_thread::sleep_for(kPoll);
    }
  }
  absl::Status Settle(std::string_view call) const REQUIRES(mu_) {
    return nccl_.ToStatus(Settled(nccl_, comm_), call);
  }

  template <class Call>
  absl::Status Launch(std::string_view name, Call call) {
    MutexLock lock(mu_);
    RETURN_IF_ERROR(ended_);
    const int result = call(comm_);
    if (result == kNcclInProgress) return Settle(name);
    return nccl_.ToStatus(result, name);
  }

  absl::Status Mark(Mapped mapped, size_t count) {
    cudaEvent_t done;
    RETURN_IF_ERROR(ToStatus(cudaEventCreateWithFlags(&done, cudaEventDisableTiming),
                             "cudaEventCreateWithFlags"));
    pending_.push_back({std::move(mapped), count, done});
    return ToStatus(cudaEventRecord(done, stream_), "cudaEventRecord");
  }

  // Never by cudaEventSynchronize(), which would not return once a rank is lost.
  absl::Status WaitFor(cudaEvent_t event) {
    while (true) {
      const cudaError_t error = cudaEventQuery(event);
      if (error == cudaSuccess) {
        MutexLock lock(mu_);
        return ended_;
      }
      (void)cudaGetLastError();
      if (error != cudaErrorNotReady) return ToStatus(error, "cudaEventQuery");
      if (const absl::Status lost = AsyncError(); !lost.ok()) {
        Abort(lost);
        return lost;
      }
      std::this_thread::sleep_for(kPoll);
    }
  }

  const NcclLibrary& nccl_;
  mutable Mutex mu_;
  NcclComm comm_ GUARDED_BY(mu_) = nullptr;  // nullptr: aborted
  absl::Status ended_ GUARDED_BY(mu_);
  int device_ = 0;
  int rank_ = 0;
  int size_ = 0;
  cudaStream_t stream_ = nullptr;
  std::deque<Pending> pending_;
};

}  // namespace
}  // namespace penstock::cuda

namespace penstock::replica {

absl::StatusOr<NcclRanks> CollectiveOfNccl(void* communicator) {
  if (communicator == nullptr)
    return absl::InvalidArgumentError("the NCCL communicator is nullptr; pass an ncclComm_t");
  ASSIGN_OR_RETURN(const cuda::NcclLibrary* const nccl, cuda::NcclLibrary::Get());
  NcclRanks ranks;
  RETURN_IF_ERROR(
      nccl->ToStatus(nccl->CommCuDevice(communicator, &ranks.device), "ncclCommCuDevice"));
  ASSIGN_OR_RETURN(ranks.own, cuda::NcclCollective::Split(*nccl, communicator, 0));
  return ranks;
}

}  // namespace penstock::replica
