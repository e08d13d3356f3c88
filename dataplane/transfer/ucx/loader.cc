// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/loader.h"

#include <dlfcn.h>
#include <sys/auxv.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/device/device.h"
#include "dataplane/transfer/ucx/settings.h"
#include "include/status_macros.h"

namespace penstock::transfer::ucx {
namespace {

constexpr char kName[] = "libpenstock_ucx.so";
constexpr int kLevels = 4;

// Returns the path of the program or library that contains this code.
std::string OwnFile() {
  Dl_info own{};
  Dl_info program{};
  if (dladdr(reinterpret_cast<const void*>(&OpenTheFabric), &own) == 0) return "";
  const auto headers = reinterpret_cast<const void*>(::getauxval(AT_PHDR));
  // dladdr() reports a program's argv[0] as its file name, which may be anything.
  const bool in_program = dladdr(headers, &program) != 0 && program.dli_fbase == own.dli_fbase;
  return in_program ? "/proc/self/exe" : own.dli_fname;
}

// Returns the library's path; empty if the library was not found.
std::string FindLibrary() {
  if (const char* named = std::getenv("PENSTOCK_UCX_MODULE"); named != nullptr && *named != '\0') {
    return named;
  }
  std::error_code error;
  std::filesystem::path folder = std::filesystem::canonical(OwnFile(), error).parent_path();
  for (int level = 0; !error && level <= kLevels; ++level, folder = folder.parent_path()) {
    const std::filesystem::path library = folder / "lib" / "penstock" / kName;
    if (std::filesystem::exists(library, error)) return library;
    error.clear();
  }
  return "";
}

absl::StatusOr<Fabric*> Open() {
  const std::string library = FindLibrary();
  if (library.empty()) {
    return absl::NotFoundError(
        absl::StrCat(kName,
                     " was not found next to this program; build Penstock where UCX's headers are "
                     "installed (Debian: libucx-dev), or set PENSTOCK_UCX_MODULE to the file"));
  }
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("cannot load UCX (", dlerror(),
                     "); install it (Debian: libucx0), or add its folder to LD_LIBRARY_PATH"));
  }
  auto* const open = reinterpret_cast<OpenFabric*>(dlsym(handle, kOpenFabric));
  if (open == nullptr) {
    return absl::NotFoundError(absl::StrCat(library, " is not a Penstock library"));
  }
  ASSIGN_OR_RETURN(const Settings settings, SettleSettings());
  absl::Status status;
  Fabric* fabric = nullptr;
  const std::optional<int> device = LinkedDeviceBackend().InUse();
  const auto start = [&] {
    fabric = open(kFabricVersion, settings.lanes, device.has_value(), &status);
    return absl::OkStatus();
  };
  // UCX learns the GPU's location only from the current context, and then chooses the nearest NIC.
  if (!device.has_value() || !LinkedDeviceBackend().WithContext(*device, start).ok()) {
    start().IgnoreError();
  }
  if (fabric == nullptr) return Annotate(status, library);
  return fabric;
}

}  // namespace

absl::StatusOr<Fabric*> OpenTheFabric() {
  static Mutex& mu = *new Mutex;
  static Fabric* fabric GUARDED_BY(mu) = nullptr;
  MutexLock lock(mu);
  if (fabric == nullptr) {
    ASSIGN_OR_RETURN(fabric, Open());
  }
  return fabric;
}

}  // namespace penstock::transfer::ucx
