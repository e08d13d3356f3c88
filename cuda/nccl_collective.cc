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
#include <vector>

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

// A communicator that we own. Its calls return at once, so that another thread can abort it while
// one waits for what was begun. Memory and events are kept, since to give them back waits for the
// device.
class NcclCollective final : public Collective {
 public:
  static absl::StatusOr<std::unique_ptr<NcclCollective>> Split(const NcclLibrary& nccl,
                                                               NcclComm parent, int color) {
    std::unique_ptr<NcclCollective> own;
    ASSIGN_OR_RETURN(own, BeginSplit(nccl, parent, color));
    // A parent that does not block is being split still.
    const auto ask = [&](int* state) { return nccl.CommGetAsyncError(parent, state); };
    RETURN_IF_ERROR(AwaitSettled(nccl, "ncclCommSplit", ask));
    RETURN_IF_ERROR(own->FinishSplit());
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
    for (const Buffer& buffer : pending_) (void)cudaEventDestroy(buffer.done);
    for (const Buffer& buffer : spare_) (void)cudaEventDestroy(buffer.done);
    pending_.clear();
    spare_.clear();
    (void)cudaStreamDestroy(stream_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  absl::Status Start(CollectiveOp op, absl::Span<const int64_t> values) override {
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(device_));
    ASSIGN_OR_RETURN(Buffer buffer, Take(values.size() * sizeof(int64_t)));
    std::memcpy(buffer.data(), values.data(), values.size() * sizeof(int64_t));
    buffer.count = values.size();
    return Launch("ncclAllReduce", std::move(buffer), [&](NcclComm comm, char* data) {
      return nccl_.AllReduce(data, data, values.size(), kNcclInt64, NcclOpOf(op), comm, stream_);
    });
  }

  absl::StatusOr<std::vector<int64_t>> Finish() override {
    if (pending_.empty()) return absl::FailedPreconditionError("no reduction was started");
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(device_));
    RETURN_IF_ERROR(WaitFor(pending_.front().done));
    const Buffer& buffer = pending_.front();
    std::vector<int64_t> values(buffer.count);
    std::memcpy(values.data(), buffer.data(), values.size() * sizeof(int64_t));
    KeepOldest();
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
    ASSIGN_OR_RETURN(Buffer buffer, Take(most * static_cast<size_t>(size_)));
    const size_t own = most * static_cast<size_t>(rank_);
    std::memcpy(buffer.data() + own, bytes.data(), bytes.size());
    RETURN_IF_ERROR(Launch("ncclAllGather", std::move(buffer), [&](NcclComm comm, char* data) {
      return nccl_.AllGather(data + own, data, most, kNcclUint8, comm, stream_);
    }));
    RETURN_IF_ERROR(WaitFor(pending_.front().done));
    std::vector<std::string> of_ranks;
    for (size_t i = 0; i < sizes.size(); ++i) {
      of_ranks.emplace_back(pending_.front().data() + i * most, static_cast<size_t>(sizes[i]));
    }
    KeepOldest();
    return of_ranks;
  }

  absl::StatusOr<std::unique_ptr<Collective>> Split(int color) override {
    RETURN_IF_ERROR(AsyncError());
    std::unique_ptr<NcclCollective> split;
    {
      MutexLock lock(mu_);
      RETURN_IF_ERROR(ended_);
      ASSIGN_OR_RETURN(split, BeginSplit(nccl_, comm_, color));
    }
    RETURN_IF_ERROR(Settle("ncclCommSplit"));
    RETURN_IF_ERROR(split->FinishSplit());
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
    NcclComm aborted;
    {
      MutexLock lock(mu_);
      ended_.Update(why);
      aborted = std::exchange(comm_, nullptr);
    }
    if (aborted == nullptr) return;
    const absl::StatusOr<OnDevice> on = OnDevice::Enter(device_);
    if (on.ok()) (void)nccl_.CommAbort(aborted);  // waits for what runs on the device
  }

 private:
  // What a call reads and writes, and its place in the stream.
  struct Buffer {
    Mapped mapped;
    size_t bytes;
    cudaEvent_t done;
    size_t count = 0;  // of values
    char* data() const { return mapped.data(); }
  };

  explicit NcclCollective(const NcclLibrary& nccl) : nccl_(nccl) {}

  static absl::StatusOr<std::unique_ptr<NcclCollective>> BeginSplit(const NcclLibrary& nccl,
                                                                    NcclComm parent, int color) {
    std::unique_ptr<NcclCollective> own(new NcclCollective(nccl));
    MutexLock lock(own->mu_);
    RETURN_IF_ERROR(nccl.ToStatus(nccl.CommCuDevice(parent, &own->device_), "ncclCommCuDevice"));
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(own->device_));
    int key = 0;
    RETURN_IF_ERROR(nccl.ToStatus(nccl.CommUserRank(parent, &key), "ncclCommUserRank"));
    NcclConfig config{.blocking = 0};
    const int result = nccl.CommSplit(parent, color, key, &own->comm_, &config);
    if (result != kNcclInProgress) RETURN_IF_ERROR(nccl.ToStatus(result, "ncclCommSplit"));
    return own;
  }

  // Once its parent has settled.
  absl::Status FinishSplit() {
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(device_));
    RETURN_IF_ERROR(Settle("ncclCommSplit"));
    MutexLock lock(mu_);
    RETURN_IF_ERROR(nccl_.ToStatus(nccl_.CommUserRank(comm_, &rank_), "ncclCommUserRank"));
    RETURN_IF_ERROR(nccl_.ToStatus(nccl_.CommCount(comm_, &size_), "ncclCommCount"));
    return ToStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                    "cudaStreamCreateWithFlags");
  }

  // `ask` for a communicator's state again and again, until nothing is under way.
  template <class Ask>
  static absl::Status AwaitSettled(const NcclLibrary& nccl, std::string_view call, Ask ask) {
    int state = kNcclInProgress;
    while (true) {
      const int asked = ask(&state);
      if (asked != kNcclSuccess) return nccl.ToStatus(asked, call);
      if (state != kNcclInProgress) return nccl.ToStatus(state, call);
      std::this_thread::sleep_for(kPoll);
    }
  }
  // The same of this communicator; what it was aborted with.
  absl::Status Settle(std::string_view call) {
    const absl::Status settled = AwaitSettled(nccl_, call, [this](int* state) {
      MutexLock lock(mu_);
      *state = kNcclSuccess;
      return comm_ == nullptr ? kNcclSuccess : nccl_.CommGetAsyncError(comm_, state);
    });
    MutexLock lock(mu_);
    return ended_.ok() ? settled : ended_;
  }

  // One that is kept, if there is one of that size.
  absl::StatusOr<Buffer> Take(size_t bytes) {
    const auto found = std::find_if(spare_.begin(), spare_.end(),
                                    [&](const Buffer& spare) { return spare.bytes >= bytes; });
    if (found != spare_.end()) {
      Buffer buffer = std::move(*found);
      spare_.erase(found);
      return buffer;
    }
    ASSIGN_OR_RETURN(Mapped mapped, Mapped::Of(bytes));
    cudaEvent_t done;
    RETURN_IF_ERROR(ToStatus(cudaEventCreateWithFlags(&done, cudaEventDisableTiming),
                             "cudaEventCreateWithFlags"));
    return Buffer{.mapped = std::move(mapped), .bytes = bytes, .done = done};
  }
  void KeepOldest() {
    spare_.push_back(std::move(pending_.front()));
    pending_.pop_front();
  }

  // Adds it to those that are pending. A buffer whose launch failed is kept too, since the
  // device may still use it.
  template <class Call>
  absl::Status Launch(std::string_view name, Buffer buffer, Call call) {
    int result;
    {
      MutexLock lock(mu_);
      RETURN_IF_ERROR(ended_);
      result = call(comm_, buffer.data());
    }
    absl::Status launched = result == kNcclInProgress ? Settle(name) : nccl_.ToStatus(result, name);
    launched.Update(ToStatus(cudaEventRecord(buffer.done, stream_), "cudaEventRecord"));
    if (launched.ok()) {
      pending_.push_back(std::move(buffer));
    } else {
      spare_.push_back(std::move(buffer));
      Abort(launched);
    }
    return launched;
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
  std::deque<Buffer> pending_;
  std::vector<Buffer> spare_;
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
