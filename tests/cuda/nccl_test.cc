// SPDX-License-Identifier: Apache-2.0
// Compares our declaration of NCCL's ABI (cuda/nccl_library.h) with its header, if that was there
// at build time, and with its library, if that can be opened. Needs no GPU.
#include <dlfcn.h>

#include <string>
#include <type_traits>

#include "cuda/nccl_library.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

namespace penstock::cuda {
namespace {

TEST(NcclLibrary, IsDeclaredAsInItsHeader) {
#ifdef NCCL_MAJOR
  EXPECT_EQ(kNcclSuccess, ncclSuccess);
  EXPECT_EQ(kNcclInProgress, ncclInProgress);
  EXPECT_EQ(int{kNcclSum}, ncclSum);
  EXPECT_EQ(int{kNcclMax}, ncclMax);
  EXPECT_EQ(int{kNcclMin}, ncclMin);
  EXPECT_EQ(int{kNcclUint8}, ncclUint8);
  EXPECT_EQ(int{kNcclInt64}, ncclInt64);
  static_assert(sizeof(ncclResult_t) == sizeof(int) && sizeof(ncclRedOp_t) == sizeof(int) &&
                sizeof(ncclDataType_t) == sizeof(int) && std::is_pointer_v<ncclComm_t>);
  using Reduce = int (*)(const void*, void*, size_t, int, int, NcclComm, cudaStream_t);
  static_assert(std::is_same_v<decltype(NcclLibrary::AllReduce), Reduce>);
  // The types of the other parameters.
  static_assert(std::is_same_v<decltype(&ncclAllReduce),
                               ncclResult_t (*)(const void*, void*, size_t, ncclDataType_t,
                                                ncclRedOp_t, ncclComm_t, cudaStream_t)>);
  static_assert(std::is_same_v<decltype(&ncclAllGather),
                               ncclResult_t (*)(const void*, void*, size_t, ncclDataType_t,
                                                ncclComm_t, cudaStream_t)>);
  static_assert(std::is_same_v<decltype(&ncclCommSplit),
                               ncclResult_t (*)(ncclComm_t, int, int, ncclComm_t*, ncclConfig_t*)>);
  static_assert(std::is_same_v<decltype(&ncclCommGetAsyncError),
                               ncclResult_t (*)(ncclComm_t, ncclResult_t*)>);
  static_assert(
      std::is_same_v<decltype(&ncclCommCuDevice), ncclResult_t (*)(const ncclComm_t, int*)>);
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const NcclConfig ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.blocking, theirs.blocking);
  EXPECT_EQ(ours.net_name, theirs.netName);
  EXPECT_EQ(ours.split_share, theirs.splitShare);
  static_assert(offsetof(NcclConfig, magic) == offsetof(ncclConfig_t, magic));
  static_assert(offsetof(NcclConfig, blocking) == offsetof(ncclConfig_t, blocking));
  static_assert(offsetof(NcclConfig, net_name) == offsetof(ncclConfig_t, netName));
  static_assert(offsetof(NcclConfig, split_share) == offsetof(ncclConfig_t, splitShare));
  static_assert(sizeof(NcclConfig) <= sizeof(ncclConfig_t));
#else
  GTEST_SKIP() << "nccl.h was not there when this was built";
#endif
}

TEST(NcclLibrary, HasTheFunctionsThatAreLookedUp) {
  const absl::StatusOr<const NcclLibrary*> nccl = NcclLibrary::Get();
  if (::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL) == nullptr) {
    EXPECT_EQ(nccl.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(nccl.status().message()),
                ::testing::AllOf(::testing::HasSubstr("cannot load NCCL: libnccl.so.2: "),
                                 ::testing::HasSubstr("LD_LIBRARY_PATH")));
    GTEST_SKIP() << "libnccl.so.2 is not installed, or not in LD_LIBRARY_PATH: what it would have "
                    "to have was not looked up";
  }
  ASSERT_TRUE(nccl.ok()) << nccl.status();
  int version = 0;
  ASSERT_EQ((*nccl)->GetVersion(&version), kNcclSuccess);
  EXPECT_GE(version, 21800);
  EXPECT_THAT(std::string((*nccl)->ToStatus(5, "ncclCommCount").message()),
              ::testing::StartsWith("ncclCommCount: "));
}

}  // namespace
}  // namespace penstock::cuda
