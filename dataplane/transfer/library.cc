// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/library.h"

#include <dlfcn.h>

#include <memory>
#include <mutex>
#include <set>

#include "penstock/status.h"

namespace penstock::transfer {
namespace {

using Stamp = const char* (*)();
using Register = void (*)(absl::Status*);

struct Close {
  void operator()(void* library) const { ::dlclose(library); }
};
using Library = std::unique_ptr<void, Close>;

absl::StatusOr<Library> Open(const std::string& path, int mode) {
  Library library(::dlopen(path.c_str(), mode | RTLD_LOCAL));
  if (library != nullptr) return library;
  return absl::NotFoundError(absl::StrCat("cannot open the transport library: ", ::dlerror()));
}

absl::Status CheckStamp(void* library, const std::string& path) {
  const auto stamp = reinterpret_cast<Stamp>(::dlsym(library, "penstock_transport_stamp"));
  if (stamp == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is no transport library: it lacks PENSTOCK_EXPORT_TRANSPORT"));
  }
  const std::string theirs = stamp();
  const std::string ours = TransportStamp();
  if (theirs == ours) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, " was built against another release or with another compiler: it is '",
                   theirs, "', this program '", ours, "'; build it again"));
}

absl::Status Load(const std::string& path) {
  // Lazily, so that one with another stamp is refused for that, and not for the
  // first symbol that it misses.
  PENSTOCK_ASSIGN_OR_RETURN(Library library, Open(path, RTLD_LAZY));
  PENSTOCK_RETURN_IF_ERROR(CheckStamp(library.get(), path));
  PENSTOCK_ASSIGN_OR_RETURN(Library whole, Open(path, RTLD_NOW));
  const auto enter =
      reinterpret_cast<Register>(::dlsym(whole.get(), "penstock_register_transport"));
  if (enter == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is no transport library: it lacks PENSTOCK_EXPORT_TRANSPORT"));
  }
  absl::Status outcome;
  enter(&outcome);
  if (outcome.ok()) (void)whole.release();  // its code is used from now on
  return Annotate(outcome, path);
}

}  // namespace

absl::Status LoadTransports(const std::vector<std::string>& paths) {
  static std::mutex mu;
  static std::set<std::string>& loaded = *new std::set<std::string>;  // guarded by mu
  std::lock_guard lock(mu);
  for (const std::string& path : paths) {
    if (loaded.contains(path)) continue;
    PENSTOCK_RETURN_IF_ERROR(Load(path));
    loaded.insert(path);
  }
  return absl::OkStatus();
}

}  // namespace penstock::transfer
