// SPDX-License-Identifier: Apache-2.0
// Implements dataplane/replica/collective/collective.h with NCCL. The implementation uses a CUDA
// stream and a communicator of its own. Calls that wait poll the communicator for errors. When a
// rank is lost, the communicator reports an error and is aborted.
//
// NCCL requires that the GPUs of all ranks get the launches of different communicators in the same
// order. Before NCCL 2.26 the trainer must not have NCCL launches of its own in progress while it
// calls Next() or Reduce(). From NCCL 2.26 on, NCCL_LAUNCH_ORDER_IMPLICIT=1 ensures the order.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "cuda/context.h"
#include "cuda/error.h"
#include "cuda/nccl_library.h"
#include "dataplane/replica/collective/collective.h"
#include "include/status_macros.h"

namespace penstock::cuda {
namespace {

using replica::Collective;
using replica::CollectiveOp;

constexpr absl::Duration kPoll = absl::Microseconds(20);
constexpr absl::Duration kFinalizeWithin = absl::Seconds(2);

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

// Page-locked memory that the device also reads and writes.
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

// Owns a communicator. NCCL's calls on the communicator return immediately, so that one thread can
// abort the communicator while another thread waits for a result. Memory and events are reused,
// because freeing them waits for the device.
class NcclCollective final : public Collective {
 public:
  static absl::StatusOr<std::unique_ptr<NcclCollective>> Split(const NcclLibrary& nccl,
                                                               NcclComm parent, int color) {
    ASSIGN_OR_RETURN(Begun begun, BeginSplit(nccl, parent, color));
    // If the parent is non-blocking, the split may still be in progress.
    const auto ask = [&](int* state) { return nccl.CommGetAsyncError(parent, state); };
    return FinishSplit(std::move(begun), AwaitSettled(nccl, "ncclCommSplit", ask));
  }

  ~NcclCollective() override {
    const absl::StatusOr<OnDevice> on = OnDevice::Enter(device_);
    if (!on.ok()) return;
    NcclComm comm;
    bool finished;
    {
      MutexLock lock(mu_);
      comm = std::exchange(comm_, nullptr);
      finished = pending_.empty() && ended_.ok();
    }
    // CommDestroy() never returns if work is unfinished.
    if (comm != nullptr && finished && Finalize(comm)) {
      (void)nccl_.CommDestroy(comm);
    } else if (comm != nullptr) {
      (void)nccl_.CommAbort(comm);
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
    if (!pending_.empty())
      return absl::FailedPreconditionError("the previous reduction was not finished");
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
    Begun begun;
    {
      MutexLock lock(mu_);
      RETURN_IF_ERROR(ended_);
      ASSIGN_OR_RETURN(begun, BeginSplit(nccl_, comm_, color));
    }
    ASSIGN_OR_RETURN(std::unique_ptr<NcclCollective> split,
                     FinishSplit(std::move(begun), Settle("ncclCommSplit")));
    return split;
  }

  absl::Status AsyncError() const override {
    MutexLock lock(mu_);
    if (!ended_.ok() || comm_ == nullptr) return ended_;
    int error = kNcclSuccess;
    const int asked = nccl_.CommGetAsyncError(comm_, &error);
    if (error == kNcclInProgress) return absl::OkStatus();
    return nccl_.ToStatus(asked != kNcclSuccess ? asked : error, "an NCCL communicator has failed");
  }

  // NCCL does not transmit `why`: the other ranks see their own connections break.
  void Abort(const absl::Status& why) override {
    NcclComm aborted;
    {
      MutexLock lock(mu_);
      ended_.Update(why);
      aborted = std::exchange(comm_, nullptr);
    }
    if (aborted == nullptr) return;
    const absl::StatusOr<OnDevice> on = OnDevice::Enter(device_);
    if (on.ok()) (void)nccl_.CommAbort(aborted);  // waits for work that runs on the device
  }

 private:
  // The memory that a call reads and writes, and its event in the stream.
  struct Buffer {
    Mapped mapped;
    size_t bytes;
    cudaEvent_t done;
    size_t count = 0;  // number of values
    char* data() const { return mapped.data(); }
  };

  explicit NcclCollective(const NcclLibrary& nccl) : nccl_(nccl) {}

  // A split in progress. NCCL stores the new communicator in `made` when the split is done.
  struct Begun {
    std::unique_ptr<NcclCollective> own;
    std::unique_ptr<NcclComm> made;
  };
  static absl::StatusOr<Begun> BeginSplit(const NcclLibrary& nccl, NcclComm parent, int color) {
    Begun begun{std::unique_ptr<NcclCollective>(new NcclCollective(nccl)),
                std::make_unique<NcclComm>(nullptr)};
    NcclCollective& own = *begun.own;
    RETURN_IF_ERROR(nccl.ToStatus(nccl.CommCuDevice(parent, &own.device_), "ncclCommCuDevice"));
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(own.device_));
    int key = 0;
    RETURN_IF_ERROR(nccl.ToStatus(nccl.CommUserRank(parent, &key), "ncclCommUserRank"));
    // The settings of the trainer's communicator do not apply to the new communicator; NCCL's
    // environment variables do.
    NcclConfig config{.blocking = 0};
    const int result = nccl.CommSplit(parent, color, key, begun.made.get(), &config);
    if (result != kNcclInProgress) RETURN_IF_ERROR(nccl.ToStatus(result, "ncclCommSplit"));
    return begun;
  }

  // `settled` is the parent's status after the split.
  static absl::StatusOr<std::unique_ptr<NcclCollective>> FinishSplit(Begun begun,
                                                                     const absl::Status& settled) {
    if (!settled.ok()) {
      static_cast<void>(begun.made.release());  // NCCL may still write to it
      return settled;
    }
    NcclCollective& own = *begun.own;
    {
      MutexLock lock(own.mu_);
      own.comm_ = *begun.made;
    }
    ASSIGN_OR_RETURN(const OnDevice on, OnDevice::Enter(own.device_));
    RETURN_IF_ERROR(own.Settle("ncclCommSplit"));
    {
      MutexLock lock(own.mu_);
      const NcclLibrary& nccl = own.nccl_;
      RETURN_IF_ERROR(nccl.ToStatus(nccl.CommUserRank(own.comm_, &own.rank_), "ncclCommUserRank"));
      RETURN_IF_ERROR(nccl.ToStatus(nccl.CommCount(own.comm_, &own.size_), "ncclCommCount"));
      RETURN_IF_ERROR(ToStatus(cudaStreamCreateWithFlags(&own.stream_, cudaStreamNonBlocking),
                               "cudaStreamCreateWithFlags"));
    }
    return std::move(begun.own);
  }

  // Sends the data that other ranks still need from this rank. Returns false if this takes too
  // long.
  bool Finalize(NcclComm comm) const {
    int state = nccl_.CommFinalize(comm);
    const absl::Time until = BootTime() + kFinalizeWithin;
    while (state == kNcclInProgress && BootTime() < until) {
      Sleep(kPoll);
      if (nccl_.CommGetAsyncError(comm, &state) != kNcclSuccess) return false;
    }
    return state == kNcclSuccess;
  }

  // Polls a communicator's state with `ask` until no operation is in progress.
  template <class Ask>
  static absl::Status AwaitSettled(const NcclLibrary& nccl, std::string_view call, Ask ask) {
    int state = kNcclInProgress;
    while (true) {
      const int asked = ask(&state);
      if (asked != kNcclSuccess) return nccl.ToStatus(asked, call);
      if (state != kNcclInProgress) return nccl.ToStatus(state, call);
      Sleep(kPoll);
    }
  }
  // Does the same for this communicator. If the communicator was aborted, returns the reason
  // instead.
  absl::Status Settle(std::string_view call) {
    const absl::Status settled = AwaitSettled(nccl_, call, [this](int* state) {
      MutexLock lock(mu_);
      *state = kNcclSuccess;
      return comm_ == nullptr ? kNcclSuccess : nccl_.CommGetAsyncError(comm_, state);
    });
    MutexLock lock(mu_);
    ended_.Update(settled);
    return ended_;
  }

  // Returns a spare buffer of at least `bytes` bytes, or a new buffer.
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

  // Launches `call` and adds its buffer to pending_. A buffer whose launch failed is kept too,
  // because the device may still use it.
  template <class Call>
  absl::Status Launch(std::string_view name, Buffer buffer, Call call) {
    int result = kNcclSuccess;
    absl::Status ended;
    {
      MutexLock lock(mu_);
      ended = ended_;
      if (ended.ok()) result = call(comm_, buffer.data());
    }
    if (!ended.ok()) {
      spare_.push_back(std::move(buffer));
      return ended;
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

  // Does not use cudaEventSynchronize(), which would not return after a rank is lost.
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
      Sleep(kPoll);
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
