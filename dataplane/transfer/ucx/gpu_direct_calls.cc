// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/gpu_direct_calls.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/memory/pool.h"
#include "include/status_macros.h"

namespace penstock::transfer::ucx {
namespace {

using Now = std::function<absl::Time()>;

constexpr absl::Duration kTrialTimeout = absl::Seconds(10);
constexpr absl::Duration kCloseTimeout = absl::Seconds(2);
constexpr size_t kMostTried = size_t{8} << 20;  // bytes; enough to measure a rate
constexpr int kRounds = 4;                      // the first one warms up

// One send, receive or close, which can be awaited.
class Awaited final : public Work {
 public:
  void OnDone(const absl::Status& status) override { done_ = status; }
  const std::optional<absl::Status>& done() const { return done_; }

 private:
  std::optional<absl::Status> done_;
};

// Two worker objects of this process, which send messages from one to the other.
class Loopback final : private Worker::Events {
 public:
  static absl::StatusOr<std::unique_ptr<Loopback>> Open(Fabric& fabric, const Now& now) {
    std::unique_ptr<Loopback> loopback(new Loopback(fabric, now));
    ASSIGN_OR_RETURN(loopback->from_, fabric.MakeWorker(*loopback));
    ASSIGN_OR_RETURN(loopback->to_, fabric.MakeWorker(*loopback));
    ASSIGN_OR_RETURN(loopback->peer_, loopback->from_->Connect(loopback->to_->address()));
    loopback->connected_ = true;
    return loopback;
  }

  // Leaks work that does not end, because UCX may still use that work, or may abort.
  ~Loopback() override {
    if (!Ended()) {
      LeaveBehind();
      return;
    }
    from_.reset();
    to_.reset();
    for (const std::unique_ptr<Buffer>& buffer : buffers_) fabric_.Unregister(buffer->handle);
  }

  // Host memory that stays registered with UCX for as long as the object exists.
  struct Buffer {
    Loan loan;
    absl::Span<std::byte> bytes;
    Handle handle = nullptr;
  };
  absl::StatusOr<const Buffer*> Lend(size_t bytes) {
    Buffer buffer;
    ASSIGN_OR_RETURN(buffer.loan, DefaultPool().Lend(bytes));
    buffer.bytes = buffer.loan.bytes().first(bytes);
    ASSIGN_OR_RETURN(buffer.handle, fabric_.Register(buffer.bytes, MemoryType::kHost));
    return buffers_.emplace_back(std::make_unique<Buffer>(std::move(buffer))).get();
  }

  // Sends `data` and receives it in `into`. Returns the time from the announcement to the arrival.
  absl::StatusOr<absl::Duration> Send(const Buffer& data, absl::Span<std::byte> into,
                                      MemoryType type, Handle handle) {
    // Both Awaited objects stay alive until UCX has finished with them.
    Awaited& sent = NewWork();
    Awaited& received = NewWork();
    offered_ = nullptr;
    ASSIGN_OR_RETURN(
        const bool sent_already,
        from_->Send(peer_,
                    {.head = "trial", .data = data.bytes, .handle = data.handle, .announce = true},
                    sent));
    RETURN_IF_ERROR(Await([this] { return offered_ != nullptr; }));
    const absl::Time begin = now_();
    ASSIGN_OR_RETURN(const bool received_already,
                     to_->Receive(offered_, into, type, handle, received));
    if (!received_already) {
      RETURN_IF_ERROR(Await([&] { return received.done().has_value(); }));
      RETURN_IF_ERROR(*received.done());
    }
    const absl::Duration took = now_() - begin;
    if (!sent_already) RETURN_IF_ERROR(Await([&] { return sent.done().has_value(); }));
    return took;
  }

 private:
  Loopback(Fabric& fabric, const Now& now) : fabric_(fabric), now_(now) {}

  void OnMessage(std::string_view, absl::Span<const std::byte>) override {}
  bool OnOffered(std::string_view, size_t, Offered offered) override {
    offered_ = offered;
    return true;
  }
  void OnFailed(Worker::Peer, const absl::Status& status) override { failed_ = status; }

  template <class Condition>
  bool ProgressUntil(Condition condition, absl::Duration timeout) {
    const absl::Time deadline = now_() + timeout;
    while (!condition()) {
      if (!failed_.ok() || now_() > deadline) return condition();
      from_->Progress();
      if (to_ != nullptr) to_->Progress();
    }
    return true;
  }

  template <class Condition>
  absl::Status Await(Condition condition) {
    if (ProgressUntil(condition, kTrialTimeout)) return absl::OkStatus();
    RETURN_IF_ERROR(failed_);
    return absl::DeadlineExceededError(
        "a message to this process itself did not arrive within 10 s");
  }

  // Returns true if all work is done, so that both worker objects may be destroyed.
  bool Ended() {
    if (connected_) {
      Awaited& closed = NewWork();
      if (!from_->Close(peer_, closed) && !IsDone(closed)) return false;
    }
    for (Worker* const worker : {from_.get(), to_.get()}) {
      if (worker == nullptr) continue;
      Awaited& flushed = NewWork();
      if (!worker->Flush(flushed) && !IsDone(flushed)) return false;
    }
    // Each worker object made progress after its flush, which ~Worker() does not allow. So each is
    // flushed once more; this time the other worker object need not make progress.
    for (Worker* const worker : {from_.get(), to_.get()}) {
      if (worker == nullptr) continue;
      Awaited& flushed = NewWork();
      const absl::Time deadline = now_() + kCloseTimeout;
      if (worker->Flush(flushed)) continue;
      while (!flushed.done().has_value() && now_() < deadline) worker->Progress();
      if (!flushed.done().has_value()) return false;
    }
    return true;
  }
  bool IsDone(const Awaited& work) {
    return ProgressUntil([&work] { return work.done().has_value(); }, kCloseTimeout);
  }

  Awaited& NewWork() { return *works_.emplace_back(std::make_unique<Awaited>()); }

  void LeaveBehind() {
    static_cast<void>(from_.release());
    static_cast<void>(to_.release());
    for (std::unique_ptr<Awaited>& work : works_) static_cast<void>(work.release());
    for (std::unique_ptr<Buffer>& buffer : buffers_) static_cast<void>(buffer.release());
  }

  Fabric& fabric_;
  const Now& now_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::unique_ptr<Worker> from_;
  std::unique_ptr<Worker> to_;
  Worker::Peer peer_ = 0;
  bool connected_ = false;
  Offered offered_ = nullptr;
  absl::Status failed_;
  std::vector<std::unique_ptr<Awaited>> works_;
};

// Returns true if device memory at `from` equals `expected`.
absl::StatusOr<bool> Equal(DeviceBackend& backend, int device, const void* from,
                           absl::Span<const std::byte> expected) {
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceStream> stream, backend.MakeStream(device));
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceEvent> copied, backend.MakeEvent(device));
  ASSIGN_OR_RETURN(Loan host, DefaultPool().Lend(expected.size()));
  RETURN_IF_ERROR(stream->CopyToHost(host.bytes().data(), from, expected.size()));
  RETURN_IF_ERROR(stream->Record(*copied));
  RETURN_IF_ERROR(copied->Wait());
  return std::memcmp(host.bytes().data(), expected.data(), expected.size()) == 0;
}

// Differs in each round, so that bytes of an earlier round are noticed.
void FillPattern(absl::Span<std::byte> data, int round) {
  for (size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<std::byte>((i * 131 + i / 251 + static_cast<size_t>(round) * 7) & 0xff);
  }
}

}  // namespace

absl::StatusOr<bool> UcxGpuDirect::SaysCuda(Handle handle) {
  ASSIGN_OR_RETURN(const std::optional<MemoryType> type, fabric_.TypeOf(handle));
  return type == MemoryType::kCuda;
}

absl::StatusOr<GpuDirectTrial> UcxGpuDirect::Try(int device, absl::Span<std::byte> slots,
                                                 Handle handle, bool flush) {
  const absl::Span<std::byte> slot = slots.first(std::min(slots.size(), kMostTried));
  ASSIGN_OR_RETURN(const std::unique_ptr<Loopback> loopback, Loopback::Open(fabric_, now_));
  ASSIGN_OR_RETURN(const Loopback::Buffer* pattern, loopback->Lend(slot.size()));
  ASSIGN_OR_RETURN(const Loopback::Buffer* host, loopback->Lend(slot.size()));

  GpuDirectTrial trial{.contents_equal = true};
  for (int round = 0; round < kRounds; ++round) {
    FillPattern(pattern->bytes, round);
    ASSIGN_OR_RETURN(const absl::Duration to_gpu,
                     loopback->Send(*pattern, slot, MemoryType::kCuda, handle));
    if (flush) RETURN_IF_ERROR(driver_.FlushWrites(device));
    ASSIGN_OR_RETURN(const bool equal, Equal(backend_, device, slot.data(), pattern->bytes));
    trial.contents_equal = trial.contents_equal && equal;
    ASSIGN_OR_RETURN(const absl::Duration to_host,
                     loopback->Send(*pattern, host->bytes, MemoryType::kHost, host->handle));
    if (round == 0) continue;
    const auto bytes = static_cast<double>(slot.size());
    trial.gpu_bytes_per_second =
        std::max(trial.gpu_bytes_per_second, bytes / absl::ToDoubleSeconds(to_gpu));
    trial.host_bytes_per_second =
        std::max(trial.host_bytes_per_second, bytes / absl::ToDoubleSeconds(to_host));
  }
  return trial;
}

}  // namespace penstock::transfer::ucx
