// SPDX-License-Identifier: Apache-2.0
// The calls of GPUDirect RDMA in their order. UCX is real, over tcp lanes; that it knows
// CUDA is pretended, the driver too, and a GPU's memory is a fake device's.
#include "dataplane/transfer/ucx/gpu_direct_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/memory/pool.h"
#include "dataplane/transfer/ucx/loader.h"
#include "tests/dataplane/memory/fake_device.h"

namespace penstock::transfer::ucx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

using Calls = std::vector<std::string>;

// A UCX that says what it is told to, and notes what it is asked for.
class PretendedFabric final : public Fabric {
 public:
  PretendedFabric(Fabric& real, Calls& calls) : real_(real), calls_(calls) {}

  bool cuda = true;
  absl::Status registers;  // CUDA's memory
  std::optional<MemoryType> says = MemoryType::kCuda;
  absl::Status makes_workers;
  // A clock that goes on only here, with what is received.
  absl::Time now = absl::UnixEpoch();
  absl::Duration receive_takes = absl::Milliseconds(10);       // on the host
  absl::Duration cuda_receive_takes = absl::Milliseconds(11);  // on the GPU
  std::map<Handle, absl::Span<std::byte>> cuda_memory;         // registered now
  Calls received;                                              // by whom and where

  const std::string& release() const override { return real_.release(); }
  const std::string& path() const override { return real_.path(); }
  bool closes_unanswered() const override { return real_.closes_unanswered(); }
  bool knows_cuda() const override {
    calls_.emplace_back("ucp_context_query");
    return cuda;
  }
  absl::StatusOr<Handle> Register(absl::Span<std::byte> memory, MemoryType type) override {
    if (type == MemoryType::kHost) return real_.Register(memory, type);
    calls_.emplace_back("ucp_mem_map(cuda)");
    if (!registers.ok()) return registers;
    absl::StatusOr<Handle> handle = real_.Register(memory, MemoryType::kHost);
    if (handle.ok()) cuda_memory[*handle] = memory;
    return handle;
  }
  absl::StatusOr<std::optional<MemoryType>> TypeOf(Handle handle) override {
    calls_.emplace_back("ucp_mem_query");
    EXPECT_TRUE(cuda_memory.contains(handle));
    return says;
  }
  void Unregister(Handle handle) override {
    if (cuda_memory.erase(handle) > 0) calls_.emplace_back("ucp_mem_unmap");
    real_.Unregister(handle);
  }
  absl::StatusOr<std::unique_ptr<Worker>> MakeWorker(Worker::Events& events) override;

  // A receive of memory that is CUDA's must say so, and give the handle of that memory.
  void CheckReceive(absl::Span<std::byte> into, MemoryType type, Handle handle) {
    const auto found = cuda_memory.find(handle);
    const bool inside = found != cuda_memory.end() && into.data() >= found->second.data() &&
                        into.data() + into.size() <= found->second.data() + found->second.size();
    EXPECT_EQ(inside, type == MemoryType::kCuda);
    calls_.emplace_back(type == MemoryType::kCuda ? "receive(cuda)" : "receive(host)");
    now += type == MemoryType::kCuda ? cuda_receive_takes : receive_takes;
  }

 private:
  Fabric& real_;
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
  bool Close(Peer peer, Work& work) override { return real_->Close(peer, work); }
  bool Flush(Work& work) override { return real_->Flush(work); }
  absl::StatusOr<bool> Send(Peer peer, const Message& message, Work& work) override {
    return real_->Send(peer, message, work);
  }
  absl::StatusOr<bool> Receive(Offered offered, absl::Span<std::byte> into, MemoryType type,
                               Handle handle, Work& work) override {
    fabric_.CheckReceive(into, type, handle);
    return real_->Receive(offered, into, MemoryType::kHost, handle, work);
  }
  void Release(Offered offered) override { real_->Release(offered); }

 private:
  const std::unique_ptr<Worker> real_;
  PretendedFabric& fabric_;
};

absl::StatusOr<std::unique_ptr<Worker>> PretendedFabric::MakeWorker(Worker::Events& events) {
  if (!makes_workers.ok()) return makes_workers;
  absl::StatusOr<std::unique_ptr<Worker>> real = real_.MakeWorker(events);
  if (!real.ok()) return real.status();
  return std::make_unique<PretendedWorker>(*std::move(real), *this);
}

class PretendedDriver final : public GpuDirectDriver {
 public:
  explicit PretendedDriver(Calls& calls) : calls_(calls) {}
  absl::StatusOr<GpuDirectFacts> facts =
      GpuDirectFacts{.rdma_supported = true,
                     .peer_module = true,
                     .ordering = GpuDirectFacts::Ordering::kOwner,
                     .host_can_flush = true};
  absl::Status flushes;
  std::byte* torn = nullptr;  // a byte that is another behind a flush

  absl::StatusOr<GpuDirectFacts> Ask(int) override {
    calls_.emplace_back("cuDeviceGetAttribute");
    return facts;
  }
  absl::Status FlushWrites(int) override {
    calls_.emplace_back("cuFlushGPUDirectRDMAWrites");
    if (torn != nullptr) *torn ^= std::byte{1};
    return flushes;
  }

 private:
  Calls& calls_;
};

// What comes to a worker object, kept until it is received.
class Inbox final : public Worker::Events {
 public:
  void OnMessage(std::string_view, absl::Span<const std::byte>) override {}
  bool OnOffered(std::string_view head, size_t bytes, Offered offered) override {
    head_ = head;
    block_ = OfferedBlock{.head = head_, .body_bytes = bytes, .offered = offered};
    return true;
  }
  void OnFailed(Worker::Peer, const absl::Status& status) override { failed_ = status; }
  const std::optional<OfferedBlock>& block() const { return block_; }
  const absl::Status& failed() const { return failed_; }

 private:
  std::string head_;
  std::optional<OfferedBlock> block_;
  absl::Status failed_;
};

class Noted final : public Work {
 public:
  void OnDone(const absl::Status&) override { done = true; }
  bool done = false;
};

class GpuDirectCallsTest : public testing::Test {
 protected:
  static constexpr size_t kSlotBytes = 256 << 10;

  absl::Span<std::byte> slots() {
    return {static_cast<std::byte*>(memory_->address()), memory_->bytes()};
  }
  GpuDirectVerdict Decide() {
    calls_.clear();
    return DecideGpuDirect(direct_, 0, slots());
  }
  // Staged, said why, and nothing stays registered.
  void ExpectStaged(int rung, const std::string& reason) {
    const GpuDirectVerdict verdict = Decide();
    EXPECT_FALSE(verdict.on);
    EXPECT_THAT(verdict.ToString(),
                StartsWith(absl::StrCat("gpu_direct=off: stopped at rung ", rung, " of 7 (",
                                        std::string(GpuDirectRungName(rung)), "): ")));
    EXPECT_THAT(verdict.ToString(), HasSubstr(reason));
    EXPECT_THAT(verdict.ToString(), HasSubstr("staged in host memory"));
    EXPECT_TRUE(fabric_.cuda_memory.empty());
  }

  Calls calls_;
  FakeDevice device_;
  PretendedFabric fabric_{**OpenTheFabric(), calls_};
  PretendedDriver driver_{calls_};
  UcxGpuDirect direct_{fabric_, nullptr, device_, driver_, [this] { return fabric_.now; }};
  const std::unique_ptr<DeviceMemory> memory_ = device_.Allocate(0, 4 * kSlotBytes).value();
};

TEST_F(GpuDirectCallsTest, AllRungsHold) {
  const GpuDirectVerdict verdict = Decide();
  EXPECT_TRUE(verdict.on) << verdict.ToString();
  EXPECT_TRUE(verdict.flush);
  EXPECT_TRUE(fabric_.cuda_memory.contains(verdict.handle));
  EXPECT_THAT(verdict.ToString(), testing::MatchesRegex("gpu_direct=on; .* GB/s into the GPU, .* "
                                                        "GB/s into the host"));
  ASSERT_GT(calls_.size(), 7u);
  EXPECT_THAT(
      Calls(calls_.begin(), calls_.begin() + 7),
      ElementsAre("ucp_context_query", "cuDeviceGetAttribute", "ucp_mem_map(cuda)", "ucp_mem_query",
                  "receive(cuda)", "cuFlushGPUDirectRDMAWrites", "receive(host)"));
  direct_.Deregister(verdict.handle);
  EXPECT_EQ(calls_.back(), "ucp_mem_unmap");
}

TEST_F(GpuDirectCallsTest, EachRungFailsWithItsReasonAndElementsAreStaged) {
  fabric_.cuda = false;
  ExpectStaged(1, "built without CUDA");
  EXPECT_THAT(calls_, ElementsAre("ucp_context_query"));
  fabric_.cuda = true;

  const absl::StatusOr<GpuDirectFacts> facts = driver_.facts;
  driver_.facts = absl::NotFoundError("no GPU: no driver is loaded");
  ExpectStaged(2, "no driver is loaded");
  driver_.facts = facts;
  driver_.facts->peer_module = false;
  ExpectStaged(2, "modprobe nvidia_peermem");
  driver_.facts = facts;

  device_.SayKind(MemoryKind::kPooled);
  ExpectStaged(3, "pool");
  device_.SayKind(MemoryKind::kDevice);

  fabric_.registers = absl::ResourceExhaustedError("BAR1 is full");
  ExpectStaged(4, "BAR1 is full");
  fabric_.registers = absl::OkStatus();
  fabric_.says = MemoryType::kHost;
  ExpectStaged(4, "not CUDA's");
  fabric_.says = std::nullopt;
  ExpectStaged(4, "not CUDA's");
  fabric_.says = MemoryType::kCuda;

  driver_.facts->ordering = GpuDirectFacts::Ordering::kNone;
  driver_.facts->host_can_flush = false;
  ExpectStaged(5, "cannot flush");
  driver_.facts = facts;

  driver_.torn = slots().data() + 1000;
  ExpectStaged(6, "not what was sent");
  driver_.torn = nullptr;
  fabric_.cuda_receive_takes = absl::Milliseconds(20);
  ExpectStaged(6, "staging is faster");
  fabric_.cuda_receive_takes = absl::Milliseconds(11);
  fabric_.makes_workers = absl::UnavailableError("no more queue pairs");
  ExpectStaged(6, "no more queue pairs");
  fabric_.makes_workers = absl::OkStatus();
  driver_.flushes = absl::InternalError("the device is gone");
  ExpectStaged(6, "the device is gone");
  driver_.flushes = absl::OkStatus();

  EXPECT_TRUE(Decide().on);
}

TEST_F(GpuDirectCallsTest, ABlocksHeadLandsOnTheHostAndItsBodyStraightInTheGpusSlot) {
  const GpuDirectVerdict verdict = Decide();
  ASSERT_TRUE(verdict.on) << verdict.ToString();
  Inbox inbox, nothing;
  const std::unique_ptr<Worker> from = fabric_.MakeWorker(nothing).value();
  const std::unique_ptr<Worker> to = fabric_.MakeWorker(inbox).value();
  const auto progress_until = [&](const auto& condition) {
    while (!condition()) {
      ASSERT_TRUE(inbox.failed().ok() && nothing.failed().ok());
      from->Progress();
      to->Progress();
    }
  };
  const Worker::Peer peer = from->Connect(to->address()).value();
  std::vector<std::byte> body(kSlotBytes - 100, std::byte{7});
  Noted sent;
  const absl::StatusOr<bool> sending =
      from->Send(peer, {.head = "the head", .data = body, .announce = true}, sent);
  ASSERT_TRUE(sending.ok()) << sending.status();
  progress_until([&] { return inbox.block().has_value(); });

  calls_.clear();
  const int64_t lent = DefaultPool().counters().slots_lent;
  UcxGpuDirect direct(fabric_, to.get(), device_, driver_);
  std::vector<std::byte> head(64);
  const absl::Span<std::byte> slot = slots().subspan(2 * kSlotBytes, kSlotBytes);
  bool handed_over = false;
  ASSERT_TRUE(ReceiveIntoGpu(direct, 0, verdict, *inbox.block(), absl::MakeSpan(head), slot,
                             [&](const absl::Status& status) {
                               EXPECT_TRUE(status.ok()) << status;
                               calls_.emplace_back("hand over");
                               handed_over = true;
                             })
                  .ok());
  progress_until([&] { return handed_over && (*sending || sent.done); });
  EXPECT_THAT(calls_, ElementsAre("receive(cuda)", "cuFlushGPUDirectRDMAWrites", "hand over"));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(head.data())), "the head");
  EXPECT_TRUE(std::equal(body.begin(), body.end(), slot.begin()));
  EXPECT_EQ(DefaultPool().counters().slots_lent, lent);  // none on the host

  Noted closed, flushed_from, flushed_to;
  closed.done = from->Close(peer, closed);
  flushed_from.done = from->Flush(flushed_from);
  flushed_to.done = to->Flush(flushed_to);
  progress_until([&] { return closed.done && flushed_from.done && flushed_to.done; });
  direct_.Deregister(verdict.handle);
}

// Without pretending: whatever UCX and backend there are here.
TEST(GpuDirectHere, UcxSaysWhatItTakesMemoryFor) {
  Fabric& fabric = **OpenTheFabric();
  std::vector<std::byte> memory(1 << 16);
  const Handle handle = fabric.Register(absl::MakeSpan(memory), MemoryType::kHost).value();
  EXPECT_EQ(fabric.TypeOf(handle).value(), MemoryType::kHost);
  fabric.Unregister(handle);
}

TEST(GpuDirectHere, ItIsStagedWhereAnythingIsMissingAndItIsSaidWhat) {
  Fabric& fabric = **OpenTheFabric();
  if (fabric.knows_cuda() && LinkedDeviceBackend().Count().ok()) {
    GTEST_SKIP() << "this machine may have it";
  }
  UcxGpuDirect direct(fabric, nullptr, LinkedDeviceBackend(), LinkedGpuDirectDriver());
  std::vector<std::byte> memory(1 << 16);
  const GpuDirectVerdict verdict = DecideGpuDirect(direct, 0, absl::MakeSpan(memory));
  EXPECT_EQ(verdict.stopped_at, fabric.knows_cuda() ? 2 : 1) << verdict.ToString();
}

}  // namespace
}  // namespace penstock::transfer::ucx
