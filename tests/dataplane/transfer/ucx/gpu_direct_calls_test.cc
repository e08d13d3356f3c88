// SPDX-License-Identifier: Apache-2.0
// The calls of GPUDirect RDMA in their order. UCX is real, over tcp lanes. Its CUDA support and the
// driver are pretended, and a GPU's memory is a fake device's.
#include "dataplane/transfer/ucx/gpu_direct_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/transfer/ucx/loader.h"
#include "tests/dataplane/memory/fake_device.h"
#include "tests/dataplane/transfer/ucx/pretended_cuda.h"

namespace penstock::transfer::ucx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class GpuDirectCallsTest : public testing::Test {
 protected:
  static constexpr size_t kSlotBytes = 256 << 10;

  absl::Span<std::byte> slots() {
    return {static_cast<std::byte*>(memory_->address()), memory_->bytes()};
  }
  GpuDirectVerdict Decide() {
    calls_.Clear();
    return DecideGpuDirect(direct_, 0, slots());
  }
  // Expects that elements are staged, the reason is given, and nothing stays registered.
  void ExpectStaged(int rung, const std::string& reason) {
    const GpuDirectVerdict verdict = Decide();
    EXPECT_FALSE(verdict.on);
    EXPECT_THAT(verdict.ToString(),
                StartsWith(absl::StrCat("gpu_direct=off: stopped at rung ", rung, " of 7 (",
                                        std::string(GpuDirectRungName(rung)), "): ")));
    EXPECT_THAT(verdict.ToString(), HasSubstr(reason));
    EXPECT_THAT(verdict.ToString(), HasSubstr("staged in host memory"));
    EXPECT_TRUE(fabric_.cuda_memory().empty());
  }

  Calls calls_;
  FakeDevice device_;
  PretendedFabric fabric_{**OpenTheFabric(), calls_};
  PretendedDriver driver_{calls_};
  ServedGpu served_;
  UcxGpuDirect direct_{fabric_, device_, driver_, served_, &PretendedFabric::now};
  const std::unique_ptr<DeviceMemory> memory_ = device_.Allocate(0, 4 * kSlotBytes).value();
};

TEST_F(GpuDirectCallsTest, AllRungsHold) {
  const GpuDirectVerdict verdict = Decide();
  EXPECT_GT(fabric_.without_context, 0);  // the caller that opens the places makes it current
  EXPECT_TRUE(verdict.on) << verdict.ToString();
  EXPECT_TRUE(verdict.flush);
  EXPECT_TRUE(fabric_.cuda_memory().contains(verdict.handle));
  EXPECT_THAT(verdict.ToString(), testing::MatchesRegex("gpu_direct=on; .* GB/s into the GPU, .* "
                                                        "GB/s into the host"));
  const std::vector<std::string> calls = calls_.all();
  ASSERT_GT(calls.size(), 8u);
  EXPECT_THAT(std::vector(calls.begin(), calls.begin() + 8),
              ElementsAre("ucp_context_query", "cuDeviceGetAttribute", "ucp_mem_map(cuda)",
                          "ucp_mem_query", "receive(cuda)", "received(cuda)",
                          "cuFlushGPUDirectRDMAWrites", "receive(host)"));
  direct_.Deregister(verdict.handle);
  EXPECT_EQ(calls_.all().back(), "ucp_mem_unmap");
}

TEST_F(GpuDirectCallsTest, EachRungFailsWithItsReasonAndElementsAreStaged) {
  fabric_.cuda = false;
  ExpectStaged(1, "built without CUDA");
  EXPECT_THAT(calls_.all(), ElementsAre("ucp_context_query"));
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
  ExpectStaged(4, "not recognize the slots as CUDA memory");
  fabric_.says = std::nullopt;
  ExpectStaged(4, "not recognize the slots as CUDA memory");
  fabric_.says = MemoryType::kCuda;

  driver_.facts->ordering = GpuDirectFacts::Ordering::kNone;
  driver_.facts->host_can_flush = false;
  ExpectStaged(5, "cannot flush");
  driver_.facts = facts;

  driver_.torn = slots().data() + 1000;
  ExpectStaged(6, "differs from the data that was sent");
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

// Nothing is pretended here: tests whatever UCX and backend this machine has.
TEST(GpuDirectHere, UcxReportsTheTypeOfMemory) {
  Fabric& fabric = **OpenTheFabric();
  std::vector<std::byte> memory(1 << 16);
  const Handle handle = fabric.Register(absl::MakeSpan(memory), MemoryType::kHost).value();
  EXPECT_EQ(fabric.TypeOf(handle).value(), MemoryType::kHost);
  fabric.Unregister(handle);
}

TEST(GpuDirectHere, StagesAndGivesTheReasonIfAnythingIsMissing) {
  Fabric& fabric = **OpenTheFabric();
  if (fabric.knows_cuda() && LinkedDeviceBackend().Count().ok()) {
    GTEST_SKIP() << "this machine may have it";
  }
  ServedGpu served;
  UcxGpuDirect direct(fabric, LinkedDeviceBackend(), LinkedGpuDirectDriver(), served);
  std::vector<std::byte> memory(1 << 16);
  const GpuDirectVerdict verdict = DecideGpuDirect(direct, 0, absl::MakeSpan(memory));
  EXPECT_EQ(verdict.stopped_at, fabric.knows_cuda() ? 2 : 1) << verdict.ToString();
}

}  // namespace
}  // namespace penstock::transfer::ucx
