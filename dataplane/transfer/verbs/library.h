// SPDX-License-Identifier: Apache-2.0
// libibverbs as a table of functions. Compiling needs its headers, but linking does not need the
// library: <infiniband/verbs.h> is used only for types.
#pragma once

#include <infiniband/verbs.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/transfer/verbs/devices.h"

namespace penstock::transfer::verbs {

// The functions behave as in their manual pages; a test supplies functions of its own.
struct Library {
  ibv_device** (*get_device_list)(int* count) = nullptr;
  void (*free_device_list)(ibv_device** list) = nullptr;
  const char* (*get_device_name)(ibv_device* device) = nullptr;
  ibv_context* (*open_device)(ibv_device* device) = nullptr;
  int (*close_device)(ibv_context* context) = nullptr;
  int (*query_device)(ibv_context* context, ibv_device_attr* attributes) = nullptr;
  // The exported function does not set the fields of ibv_port_attr that newer releases have added.
  int (*query_port)(ibv_context* context, uint8_t port,
                    _compat_ibv_port_attr* attributes) = nullptr;
  ssize_t (*query_gid_table)(ibv_context* context, ibv_gid_entry* entries, size_t max_entries,
                             uint32_t flags, size_t entry_bytes) = nullptr;
  int (*get_async_event)(ibv_context* context, ibv_async_event* event) = nullptr;
  void (*ack_async_event)(ibv_async_event* event) = nullptr;
};

// Returns the library, which is opened at the first call and never closed. NotFound and
// FailedPrecondition mean the same as in ListDevices().
absl::StatusOr<const Library*> OpenLibrary();

absl::StatusOr<std::vector<Device>> ListDevices(const Library& library);

}  // namespace penstock::transfer::verbs
