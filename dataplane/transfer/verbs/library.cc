// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/verbs/library.h"

#include <dlfcn.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace penstock::transfer::verbs {
namespace {

// Looks functions up by version, because the library also exports versions from 2006 under the same
// names.
template <class Function>
absl::Status Find(void* handle, const char* name, const char* version, Function*& function) {
  function = reinterpret_cast<Function*>(dlvsym(handle, name, version));
  if (function != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("libibverbs.so.1 lacks ", name, "@", version,
                   ": it is older than rdma-core 33; install a newer one"));
}

absl::StatusOr<const Library*> Open() {
  void* handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::NotFoundError(absl::StrCat("cannot load libibverbs (", dlerror(), ")"));
  }
  static Library library;
  absl::Status found;
  found.Update(Find(handle, "ibv_get_device_list", "IBVERBS_1.1", library.get_device_list));
  found.Update(Find(handle, "ibv_free_device_list", "IBVERBS_1.1", library.free_device_list));
  found.Update(Find(handle, "ibv_get_device_name", "IBVERBS_1.1", library.get_device_name));
  found.Update(Find(handle, "ibv_open_device", "IBVERBS_1.1", library.open_device));
  found.Update(Find(handle, "ibv_close_device", "IBVERBS_1.1", library.close_device));
  found.Update(Find(handle, "ibv_query_device", "IBVERBS_1.1", library.query_device));
  found.Update(Find(handle, "ibv_query_port", "IBVERBS_1.1", library.query_port));
  found.Update(Find(handle, "_ibv_query_gid_table", "IBVERBS_1.11", library.query_gid_table));
  found.Update(Find(handle, "ibv_get_async_event", "IBVERBS_1.1", library.get_async_event));
  found.Update(Find(handle, "ibv_ack_async_event", "IBVERBS_1.1", library.ack_async_event));
  if (!found.ok()) return found;
  return &library;
}

}  // namespace

absl::StatusOr<const Library*> OpenLibrary() {
  static const auto& library = *new absl::StatusOr<const Library*>(Open());
  return library;
}

}  // namespace penstock::transfer::verbs
