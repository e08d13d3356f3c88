// SPDX-License-Identifier: Apache-2.0
// NCCL's library, opened at run time, and the part of its ABI that is used here. This ABI is that
// of NCCL 2.18, the first release with ncclCommSplit; NCCL 2.28 still has it. Private to this
// folder.
#pragma once

#include <cuda_runtime_api.h>

#include <climits>
#include <cstddef>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::cuda {

using NcclComm = void*;  // ncclComm_t

// ncclResult_t, ncclRedOp_t, ncclDataType_t.
inline constexpr int kNcclSuccess = 0;
inline constexpr int kNcclInProgress = 7;
enum NcclOp : int { kNcclSum = 0, kNcclMax = 2, kNcclMin = 3 };
enum NcclType : int { kNcclUint8 = 1, kNcclInt64 = 4 };

// ncclConfig_t of 2.18. Later versions append fields, and use `size` to tell the versions apart.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = kUndefined;
  int cga_cluster_size = kUndefined;
  int min_ctas = kUndefined;
  int max_ctas = kUndefined;
  const char* net_name = nullptr;
  int split_share = kUndefined;

  static constexpr int kUndefined = INT_MIN;
};

struct NcclLibrary {
  int (*GetVersion)(int* version);
  const char* (*GetErrorString)(int result);
  int (*CommCount)(NcclComm comm, int* count);
  int (*CommUserRank)(NcclComm comm, int* rank);
  int (*CommCuDevice)(NcclComm comm, int* device);
  int (*CommSplit)(NcclComm comm, int color, int key, NcclComm* made, NcclConfig* config);
  int (*CommGetAsyncError)(NcclComm comm, int* error);
  int (*CommFinalize)(NcclComm comm);
  int (*CommDestroy)(NcclComm comm);
  int (*CommAbort)(NcclComm comm);
  int (*AllReduce)(const void* from, void* to, size_t count, int type, int op, NcclComm comm,
                   cudaStream_t stream);
  int (*AllGather)(const void* from, void* to, size_t count_each, int type, NcclComm comm,
                   cudaStream_t stream);

  // Opens libnccl.so.2 once. Returns FailedPrecondition with the dynamic linker's message, or with
  // the name of a function that the library lacks.
  static absl::StatusOr<const NcclLibrary*> Get();

  // Returns OK for success, else Unavailable with the name `call` and NCCL's reason.
  absl::Status ToStatus(int result, std::string_view call) const;
};

}  // namespace penstock::cuda
