// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/doctor/fake_probe.h"
#include "tools/doctor/pci.h"

namespace penstock::doctor {
namespace {

using ::testing::HasSubstr;

std::optional<Finding> Ucx(const FakeProbe& probe, const std::string& id) {
  return Fired(CheckUcx(probe), id);
}
std::optional<Finding> Gpu(const FakeProbe& probe, const std::string& id) {
  return Fired(CheckGpu(probe), id);
}

void AddGpu(FakeProbe& probe, const std::string& address) {
  probe.files["/sys/bus/pci/devices/" + address + "/vendor"] = "0x10de";
  probe.files["/sys/bus/pci/devices/" + address + "/class"] = "0x030200";
}

TEST(UcxNotFound, FiresWithoutTheLibrary) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.ucx = absl::NotFoundError("libucp.so.0: no such file");
  const auto found = Ucx(probe, "ucx.not_found");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->severity, Severity::kError);
  EXPECT_THAT(found->what, HasSubstr("libucp.so.0"));
}
TEST(UcxNotFound, IsANoteWithoutANic) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.RemoveNic();
  probe.ucx = absl::NotFoundError("libucp.so.0: no such file");
  ASSERT_TRUE(Ucx(probe, "ucx.not_found"));
  EXPECT_EQ(Ucx(probe, "ucx.not_found")->severity, Severity::kNote);
}
TEST(UcxNotFound, IsSilentWithIt) {
  EXPECT_FALSE(Ucx(FakeProbe::Healthy(), "ucx.not_found"));
}

TEST(UcxTooOld, FiresBelow1_13) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.ucx->minor = 12;
  EXPECT_TRUE(Ucx(probe, "ucx.too_old"));
}
TEST(UcxTooOld, IsSilentAt1_13) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.ucx->minor = 13;
  EXPECT_FALSE(Ucx(probe, "ucx.too_old"));
}

TEST(UcxWithoutVerbs, FiresWithoutTheModule) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.Remove("/usr/lib/ucx/libuct_ib.so.0");
  const auto found = Ucx(probe, "ucx.without_verbs");
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->blocks);
}
TEST(UcxWithoutVerbs, IsSilentWithIt) {
  EXPECT_FALSE(Ucx(FakeProbe::Healthy(), "ucx.without_verbs"));
}

TEST(UcxWithoutCuda, FiresWithGpuAndNic) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.Remove("/usr/lib/ucx/libuct_cuda.so.0");
  EXPECT_TRUE(Ucx(probe, "ucx.without_cuda"));
}
TEST(UcxWithoutCuda, IsSilentWithoutAGpu) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.Remove("/usr/lib/ucx/libuct_cuda.so.0");
  probe.RemoveGpu();
  EXPECT_FALSE(Ucx(probe, "ucx.without_cuda"));
}

TEST(UcxOneGpu, FiresForTwoBelow1_19) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.ucx->minor = 18;
  AddGpu(probe, "0000:4d:00.0");
  EXPECT_TRUE(Ucx(probe, "ucx.one_gpu"));
}
TEST(UcxOneGpu, IsSilentForTwoAt1_19) {
  FakeProbe probe = FakeProbe::Healthy();
  AddGpu(probe, "0000:4d:00.0");
  EXPECT_FALSE(Ucx(probe, "ucx.one_gpu"));
}

TEST(GpuNoDriver, FiresForACardAlone) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.Remove("/proc/driver/nvidia");
  EXPECT_TRUE(Gpu(probe, "gpu.no_driver"));
}
TEST(GpuNoDriver, IsSilentWithoutACard) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.RemoveGpu();
  EXPECT_FALSE(Gpu(probe, "gpu.no_driver"));
  EXPECT_TRUE(Gpu(probe, "gpu.none"));
}

TEST(GpuNoLibrary, FiresForTheDriverAlone) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.libraries.clear();
  EXPECT_TRUE(Gpu(probe, "gpu.no_library"));
}
TEST(GpuNoLibrary, IsSilentWithBoth) {
  EXPECT_FALSE(Gpu(FakeProbe::Healthy(), "gpu.no_library"));
}

TEST(GpuNoBackend, FiresInABuildWithoutCuda) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.device_backend = "none";
  probe.device_count = absl::NotFoundError("no GPU: this build has no CUDA support");
  EXPECT_TRUE(Gpu(probe, "gpu.no_backend"));
  EXPECT_FALSE(Gpu(probe, "gpu.not_usable"));
}
TEST(GpuNoBackend, IsSilentWithoutAGpu) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.RemoveGpu();
  probe.device_backend = "none";
  EXPECT_FALSE(Gpu(probe, "gpu.no_backend"));
  const auto backend = Gpu(probe, "gpu.backend");
  ASSERT_TRUE(backend);
  EXPECT_THAT(backend->what, HasSubstr("none; no GPU"));
}

TEST(GpuNotUsable, FiresIfCudaFindsNone) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.device_count = absl::NotFoundError("no GPU: the driver shows no device");
  const auto found = Gpu(probe, "gpu.not_usable");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->what, HasSubstr("the driver shows no device"));
}
TEST(GpuNotUsable, IsSilentIfItFindsSome) {
  EXPECT_FALSE(Gpu(FakeProbe::Healthy(), "gpu.not_usable"));
  const auto backend = Gpu(FakeProbe::Healthy(), "gpu.backend");
  ASSERT_TRUE(backend);
  EXPECT_THAT(backend->what, HasSubstr("cuda 13.0"));
}

TEST(GpuNoPeerMemory, FiresWithoutModuleAndDmaBuf) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.Remove("/sys/module/nvidia_peermem");
  probe.files["/proc/driver/nvidia/version"] = "NVRM version: NVIDIA UNIX x86_64 Kernel Module";
  EXPECT_TRUE(Gpu(probe, "gpu.no_peer_memory"));
}
TEST(GpuNoPeerMemory, FiresOnAKernelBeforeDmaBuf) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.Remove("/sys/module/nvidia_peermem");
  probe.files["/proc/sys/kernel/osrelease"] = "5.4.0-100-generic";
  EXPECT_TRUE(Gpu(probe, "gpu.no_peer_memory"));
}
TEST(GpuNoPeerMemory, IsSilentWithDmaBuf) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.Remove("/sys/module/nvidia_peermem");
  EXPECT_FALSE(Gpu(probe, "gpu.no_peer_memory"));
}

TEST(GpuDirectFinding, SaysAtWhichRungItStops) {
  FakeProbe probe = FakeProbe::Healthy();
  EXPECT_THAT(Gpu(probe, "gpu.direct")->what, HasSubstr("rungs 1 and 2 of 7"));
  probe.Remove("/sys/module/nvidia_peermem");
  probe.files["/proc/sys/kernel/osrelease"] = "5.4.0-100-generic";
  EXPECT_THAT(Gpu(probe, "gpu.direct")->what, HasSubstr("stopped at rung 2 of 7"));
}

TEST(GpuFarFromNic, FiresAcrossNumaNodes) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.links["/sys/class/infiniband/mlx5_0/device"] =
      "/sys/devices/pci0000:b0/0000:b0:01.0/0000:b1:00.0";
  probe.files["/sys/class/infiniband/mlx5_0/device/numa_node"] = "1";
  const auto found = Gpu(probe, "gpu.far_from_nic");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->what, HasSubstr("SYS"));
}
TEST(GpuFarFromNic, IsSilentBelowOneSwitch) {
  EXPECT_FALSE(Gpu(FakeProbe::Healthy(), "gpu.far_from_nic"));
}

PciDevice At(const std::string& path, int node = 0) {
  return {.name = "", .path = "/sys/devices/" + path, .numa_node = node};
}

TEST(Distance, IsThatOfNvidiaSmi) {
  const PciDevice gpu = At("pci0000:3a/3a:00.0/3b:00.0/3c:08.0/3d:00.0");
  EXPECT_EQ(DistanceBetween(gpu, At("pci0000:3a/3a:00.0/3b:00.0/3c:10.0/3e:00.0")),
            Distance::kSwitch);
  EXPECT_EQ(DistanceBetween(gpu, At("pci0000:3a/3a:00.0/3b:00.0/3c:10.0/40:00.0/41:00.0/42:00.0")),
            Distance::kSwitches);
  EXPECT_EQ(DistanceBetween(gpu, At("pci0000:3a/3a:02.0/50:00.0")), Distance::kHostBridge);
  EXPECT_EQ(DistanceBetween(gpu, At("pci0000:80/80:00.0/81:00.0")), Distance::kNode);
  EXPECT_EQ(DistanceBetween(gpu, At("pci0000:80/80:00.0/81:00.0", 1)), Distance::kSystem);
}

}  // namespace
}  // namespace penstock::doctor
