// SPDX-License-Identifier: Apache-2.0
#include "cuda/nccl_library.h"

#include <dlfcn.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock::cuda {
namespace {

template <class Function>
absl::Status FindNcclFunction(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("libnccl.so.2 has no ", name, "; Penstock needs NCCL 2.18 or later"));
}

absl::StatusOr<NcclLibrary> Open() {
  void* const library = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot load NCCL: ", ::dlerror(),
                     "; add its folder to LD_LIBRARY_PATH, or link the program with it"));
  }
  NcclLibrary nccl;
  RETURN_IF_ERROR(FindNcclFunction(library, "ncclGetVersion", nccl.GetVersion));
  RETURN_IF_ERROR(FindNcclFunction(library, "ncclGetErrorString", nccl.GetErrorString));
  RETURN_IF_ERROR(FindNcclFunction(library, "ncclCommCount", nccl.CommCount));
  RETURN_IF_ERROR(FindNcclFunction(library, "ncclCommUserRank", nccl.CommUserRank));
  RETURN_IF_ERROR(FindNcclFunction(library, "ncclCommCuDevice", nccl.CommCuDevice));
  RETURN_IF_ERROR(FindNcclFunction(library, "ncclCommSplit", nccl.CommSplit));
  RETURN_IF_ERROR(FindNcclFunction(library, "ncclCommGetAsyncError", nccl.CommGetAsyncError));
  RETURN_IF_ERROR(FindNcclFunction(library, "ncclCommFinalize", nccl.CommFinalize));
  RETURN_IF_ERROR(FindNcclFunction(library, "ncclCommDestroy", nccl.CommDestroy));
  RETURN_IF_ERROR(FindNcclFunction(library, "ncclCommAbort", nccl.CommAbort));
  RETURN_IF_ERROR(FindNcclFunction(library, "ncclAllReduce", nccl.AllReduce));
  RETURN_IF_ERROR(FindNcclFunction(library, "ncclAllGather", nccl.AllGather));
  return nccl;
}

}  // namespace

absl::StatusOr<const NcclLibrary*> NcclLibrary::Get() {
  static const auto* const opened = new absl::StatusOr<NcclLibrary>(Open());
  RETURN_IF_ERROR(opened->status());
  return &**opened;
}

absl::Status NcclLibrary::ToStatus(int result, std::string_view call) const {
  if (result == kNcclSuccess) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(std::string(call), ": ", GetErrorString(result), " (NCCL error ", result, ")"));
}

}  // namespace penstock::cuda
