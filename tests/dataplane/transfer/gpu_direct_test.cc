// SPDX-License-Identifier: Apache-2.0
// The conditions ("rungs") of GPUDirect RDMA, each failing once, on recorded calls.
#include "dataplane/transfer/ucx/gpu_direct.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace penstock::transfer::ucx {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A machine on which all conditions hold, unless the test changes one.
class RecordedCalls final : public GpuDirectCalls {
 public:
  bool ucx_knows_cuda = true;
  std::string release = "1.18.1";
  std::unique_ptr<ServedGpu> served = std::make_unique<ServedGpu>();
  absl::StatusOr<GpuDirectFacts> facts =
      GpuDirectFacts{.rdma_supported = true,
                     .dma_buf_supported = true,
                     .ordering = GpuDirectFacts::Ordering::kOwner,
                     .host_can_flush = true};
  absl::StatusOr<MemoryKind> kind = MemoryKind::kDevice;
  absl::Status registers;
  absl::StatusOr<bool> says_cuda = true;
  absl::StatusOr<GpuDirectTrial> trial = GpuDirectTrial{true, 40e9, 45e9};

  std::vector<std::string> calls;

  Handle handle() { return &handle_; }

  bool UcxKnowsCuda() override { return Note("ucp_context_query", ucx_knows_cuda); }
  absl::Status ServesGpu(int device) override { return served->Serve(device, release); }
  absl::StatusOr<GpuDirectFacts> AskDriver(int) override { return Note("driver", facts); }
  absl::StatusOr<MemoryKind> KindOf(const void*) override { return Note("kind", kind); }
  absl::StatusOr<Handle> RegisterAsCuda(absl::Span<std::byte>) override {
    calls.push_back("ucp_mem_map");
    if (!registers.ok()) return registers;
    return handle();
  }
  absl::StatusOr<bool> SaysCuda(Handle) override { return Note("ucp_mem_query", says_cuda); }
  void Deregister(Handle) override { calls.push_back("ucp_mem_unmap"); }
  absl::StatusOr<GpuDirectTrial> Try(int, absl::Span<std::byte>, Handle, bool) override {
    return Note("try", trial);
  }

 private:
  template <class T>
  T Note(const char* call, const T& answer) {
    calls.emplace_back(call);
    return answer;
  }
  int handle_ = 0;
};

class GpuDirect : public testing::Test {
 protected:
  // Expects that nothing stays registered, elements are staged, and the reason is given.
  void ExpectStaged(int rung, const std::string& reason) {
    const GpuDirectVerdict verdict = DecideGpuDirect(calls_, 0, absl::MakeSpan(slots_));
    EXPECT_FALSE(verdict.on);
    EXPECT_EQ(verdict.stopped_at, rung);
    EXPECT_THAT(verdict.ToString(),
                StartsWith(absl::StrCat("gpu_direct=off: stopped at rung ", rung, " of 7 (",
                                        std::string(GpuDirectRungName(rung)), "): ")));
    EXPECT_THAT(verdict.ToString(), HasSubstr(reason));
    EXPECT_THAT(verdict.ToString(), HasSubstr("staged in host memory"));
    EXPECT_EQ(verdict.handle, nullptr);
    const auto count = [&](std::string_view call) {
      return std::count(calls_.calls.begin(), calls_.calls.end(), call);
    };
    EXPECT_EQ(count("ucp_mem_unmap"), calls_.registers.ok() ? count("ucp_mem_map") : 0);
  }

  RecordedCalls calls_;
  std::array<std::byte, 256> slots_;
};

TEST_F(GpuDirect, WithoutCudaInUcxNothingMoreIsAsked) {
  calls_.ucx_knows_cuda = false;
  ExpectStaged(1, "without CUDA");
  EXPECT_THAT(calls_.calls, ElementsAre("ucp_context_query"));
}

TEST_F(GpuDirect, BeforeUcx119OneGpuIsServed) {
  EXPECT_TRUE(DecideGpuDirect(calls_, 0, absl::MakeSpan(slots_)).on);
  EXPECT_TRUE(DecideGpuDirect(calls_, 0, absl::MakeSpan(slots_)).on);
  const GpuDirectVerdict other = DecideGpuDirect(calls_, 1, absl::MakeSpan(slots_));
  EXPECT_EQ(other.stopped_at, 4);
  EXPECT_THAT(other.reason, StartsWith("UCX 1.18.1 supports one GPU per process, and this process "
                                       "uses it for GPU 0, not 1; "));
  for (const char* release : {"1.19.0", "1.22.1", "2.0.0"}) {
    calls_.release = release;
    EXPECT_TRUE(DecideGpuDirect(calls_, 1, absl::MakeSpan(slots_)).on);
  }
  calls_.release = "1.18.1";
  calls_.served = std::make_unique<ServedGpu>();
  calls_.kind = MemoryKind::kManaged;  // so that nothing of GPU 0 is registered
  EXPECT_FALSE(DecideGpuDirect(calls_, 0, absl::MakeSpan(slots_)).on);
  calls_.kind = MemoryKind::kDevice;
  EXPECT_TRUE(DecideGpuDirect(calls_, 1, absl::MakeSpan(slots_)).on);
  calls_.release = "unknown";
  EXPECT_FALSE(DecideGpuDirect(calls_, 0, absl::MakeSpan(slots_)).on);
}

TEST_F(GpuDirect, TheDriverMustHaveItAndAWayToIt) {
  calls_.facts->rdma_supported = false;
  ExpectStaged(2, "no GPUDirect RDMA");
  calls_.facts->rdma_supported = true;
  calls_.facts->dma_buf_supported = false;
  ExpectStaged(2, "nvidia_peermem");
  calls_.facts = absl::NotFoundError("no GPU: no driver");
  ExpectStaged(2, "no driver");
}

TEST_F(GpuDirect, SlotsMustBeOfPlainMemory) {
  for (const MemoryKind kind : {MemoryKind::kManaged, MemoryKind::kPooled, MemoryKind::kMapped,
                                MemoryKind::kPageLocked, MemoryKind::kHost}) {
    calls_.kind = kind;
    ExpectStaged(3, std::string(MemoryKindName(kind)));
  }
}

TEST_F(GpuDirect, UcxMustRegisterThemAndSayCuda) {
  calls_.registers = absl::ResourceExhaustedError("BAR1 is full");
  ExpectStaged(4, "BAR1 is full");
  calls_.registers = absl::OkStatus();
  calls_.calls.clear();
  calls_.says_cuda = false;
  ExpectStaged(4, "not recognize the slots as CUDA memory");
}

TEST_F(GpuDirect, WritesMustBeSeenInOrder) {
  calls_.facts->ordering = GpuDirectFacts::Ordering::kNone;
  calls_.facts->host_can_flush = false;
  ExpectStaged(5, "cannot flush");
  calls_.facts->several_paths = true;
  calls_.facts->ordering = GpuDirectFacts::Ordering::kAllDevices;
  ExpectStaged(5, "several paths");
}

TEST_F(GpuDirect, TheFirstElementMustBeRightAndFast) {
  calls_.trial->contents_equal = false;
  ExpectStaged(6, "differs from the data that was sent");
  calls_.trial = GpuDirectTrial{true, 20e9, 40e9};
  ExpectStaged(6, "20.0 GB/s into the GPU, 40.0 GB/s into the host");
  calls_.trial = absl::UnavailableError("the peer is gone");
  ExpectStaged(6, "the peer is gone");
}

TEST_F(GpuDirect, AllHoldingItIsReportedWithBothRates) {
  const GpuDirectVerdict verdict = DecideGpuDirect(calls_, 0, absl::MakeSpan(slots_));
  EXPECT_TRUE(verdict.on);
  EXPECT_EQ(verdict.ToString(), "gpu_direct=on; 40.0 GB/s into the GPU, 45.0 GB/s into the host");
  EXPECT_THAT(calls_.calls, ElementsAre("ucp_context_query", "driver", "kind", "ucp_mem_map",
                                        "ucp_mem_query", "try"));
}

TEST_F(GpuDirect, MemoryOfAnUnfinishedTrialStaysRegistered) {
  calls_.trial = absl::DeadlineExceededError("nothing came within 10 s");
  const GpuDirectVerdict verdict = DecideGpuDirect(calls_, 0, absl::MakeSpan(slots_));
  EXPECT_FALSE(verdict.on);
  EXPECT_TRUE(verdict.in_doubt);
  EXPECT_THAT(verdict.ToString(), HasSubstr("rung 6 of 7"));
  EXPECT_THAT(calls_.calls, Not(Contains("ucp_mem_unmap")));
}

}  // namespace
}  // namespace penstock::transfer::ucx
