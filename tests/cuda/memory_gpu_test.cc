// SPDX-License-Identifier: Apache-2.0
// Needs a real GPU: the kinds of memory are told apart, and queries do not begin to use a device.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <vector>

#include "dataplane/memory/device/device.h"
#include "tests/dataplane/memory/device_conformance.h"

namespace penstock {
namespace {

constexpr size_t kExamined = size_t{1} << 20;

// A function of the driver, with which the program is not linked.
template <class Function>
Function* Driver(const char* name) {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, name));
}

class MemoryOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!gpu_.Count().ok() && DeviceRequired()) FAIL() << DescribeDevices(gpu_);
    if (!gpu_.Count().ok()) GTEST_SKIP() << DescribeDevices(gpu_);
  }
  void ExpectKind(const void* memory, MemoryKind kind) {
    const auto* const bytes = static_cast<const std::byte*>(memory);
    for (const std::byte* const at : {bytes, bytes + kExamined / 2 + 1, bytes + kExamined - 1})
      EXPECT_EQ(MemoryKindName(gpu_.KindOf(at).value()), MemoryKindName(kind)) << at - bytes;
  }

  DeviceBackend& gpu_ = LinkedDeviceBackend();
};

// Runs in a process of its own, since other tests of this program use the device.
TEST_F(MemoryOnGpu, QueriesMakeNoContext) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        if (!gpu_.Count().ok() || !gpu_.Describe(0).ok()) std::_Exit(2);
        std::_Exit(gpu_.InUse().has_value() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(MemoryOnGpu, ADeviceThatAnotherLibraryUsesIsFound) {
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(gpu_.InUse(), 0);
}

TEST_F(MemoryOnGpu, PlainPageLockedAndManaged) {
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  void *plain, *locked, *managed;
  ASSERT_EQ(cudaMalloc(&plain, kExamined), cudaSuccess);
  ASSERT_EQ(cudaHostAlloc(&locked, kExamined, cudaHostAllocPortable), cudaSuccess);
  ASSERT_EQ(cudaMallocManaged(&managed, kExamined), cudaSuccess);
  ExpectKind(plain, MemoryKind::kDevice);
  ExpectKind(locked, MemoryKind::kPageLocked);
  ExpectKind(managed, MemoryKind::kManaged);
  ExpectKind(std::vector<std::byte>(kExamined).data(), MemoryKind::kHost);
  EXPECT_EQ(cudaFree(plain), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(locked), cudaSuccess);
  EXPECT_EQ(cudaFree(managed), cudaSuccess);
}

TEST_F(MemoryOnGpu, OfAPool) {
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  void* pooled;
  ASSERT_EQ(cudaMallocAsync(&pooled, kExamined, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ExpectKind(pooled, MemoryKind::kPooled);
  EXPECT_EQ(cudaFreeAsync(pooled, nullptr), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

// PyTorch's expandable segments are made like this.
TEST_F(MemoryOnGpu, PutTogetherOfPieces) {
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
  const auto create = Driver<decltype(cuMemCreate)>("cuMemCreate");
  const auto reserve = Driver<decltype(cuMemAddressReserve)>("cuMemAddressReserve");
  const auto map = Driver<decltype(cuMemMap)>("cuMemMap");
  const auto access = Driver<decltype(cuMemSetAccess)>("cuMemSetAccess");
  const auto unmap = Driver<decltype(cuMemUnmap)>("cuMemUnmap");
  const auto release = Driver<decltype(cuMemRelease)>("cuMemRelease");
  const auto free = Driver<decltype(cuMemAddressFree)>("cuMemAddressFree");
  ASSERT_TRUE(create && reserve && map && access && unmap && release && free);
  constexpr size_t kPiece = size_t{2} << 20;  // the smallest size that a device maps
  CUmemAllocationProp of_device = {};
  of_device.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  of_device.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
  CUmemGenericAllocationHandle piece;
  ASSERT_EQ(create(&piece, kPiece, &of_device, 0), CUDA_SUCCESS);
  CUdeviceptr address;
  ASSERT_EQ(reserve(&address, kPiece, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(map(address, kPiece, 0, piece, 0), CUDA_SUCCESS);
  const CUmemAccessDesc both = {.location = of_device.location,
                                .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  ASSERT_EQ(access(address, kPiece, &both, 1), CUDA_SUCCESS);
  ExpectKind(reinterpret_cast<const void*>(address), MemoryKind::kMapped);  // NOLINT
  EXPECT_EQ(unmap(address, kPiece), CUDA_SUCCESS);
  EXPECT_EQ(free(address, kPiece), CUDA_SUCCESS);
  EXPECT_EQ(release(piece), CUDA_SUCCESS);
}

}  // namespace
}  // namespace penstock
