// SPDX-License-Identifier: Apache-2.0
#include "control/env/shared_library.h"

#include <dlfcn.h>

#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/env/path_lookup.h"
#include "control/sync/mutex.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Stamp = const char* (*)();
using Register = void (*)(absl::Status*);

struct Close {
  void operator()(void* library) const { ::dlclose(library); }
};
using Library = std::unique_ptr<void, Close>;

absl::StatusOr<Library> Open(const std::string& path, const LibraryKind& kind, int mode) {
  Library library(::dlopen(path.c_str(), mode | RTLD_LOCAL));
  if (library != nullptr) return library;
  return absl::NotFoundError(absl::StrCat("cannot open the ", kind.what, ": ", ::dlerror()));
}

absl::Status IsNone(const std::string& path, const LibraryKind& kind) {
  return absl::FailedPreconditionError(
      absl::StrCat(path, " is not a ", kind.what, ": it lacks ", kind.macro));
}

absl::Status CheckStamp(void* library, const std::string& path, const LibraryKind& kind) {
  const auto stamp = reinterpret_cast<Stamp>(::dlsym(library, kind.stamp));
  if (stamp == nullptr) return IsNone(path, kind);
  const std::string theirs = stamp();
  if (theirs == kind.ours) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path, " was built against a different release or with a different compiler: it is '", theirs,
      "', this program is '", kind.ours, "'; build it again"));
}

absl::Status Load(const std::string& path, const LibraryKind& kind) {
  // Opens the library lazily, so that a library with a different stamp is refused because of its
  // stamp, not because of the first symbol that it lacks.
  ASSIGN_OR_RETURN(Library library, Open(path, kind, RTLD_LAZY));
  RETURN_IF_ERROR(CheckStamp(library.get(), path, kind));
  ASSIGN_OR_RETURN(Library whole, Open(path, kind, RTLD_NOW));
  const auto enter = reinterpret_cast<Register>(::dlsym(whole.get(), kind.enter));
  if (enter == nullptr) return IsNone(path, kind);
  absl::Status outcome;
  enter(&outcome);
  (void)whole.release();  // the library's code may be in use from now on, even after an error
  return Annotate(outcome, path);
}

}  // namespace

absl::Status LoadLibrary(const std::string& path, const LibraryKind& kind) {
  RETURN_IF_ERROR(CheckPath(path));
  static Mutex mu;
  static std::set<std::pair<std::string, std::string>>& loaded =
      *new std::set<std::pair<std::string, std::string>>;  // guarded by mu
  MutexLock lock(mu);
  if (loaded.contains({kind.enter, path})) return absl::OkStatus();
  RETURN_IF_ERROR(Load(path, kind));
  loaded.insert({kind.enter, path});
  return absl::OkStatus();
}

}  // namespace penstock
