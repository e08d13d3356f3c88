// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/library.h"

#include "control/env/shared_library.h"
#include "include/status_macros.h"

namespace penstock::transfer {

absl::Status LoadTransports(const std::vector<std::string>& paths) {
  const LibraryKind kind = {.what = "transport library",
                            .stamp = "penstock_transport_stamp",
                            .enter = "penstock_register_transport",
                            .macro = "PENSTOCK_EXPORT_TRANSPORT",
                            .ours = TransportStamp()};
  for (const std::string& path : paths) RETURN_IF_ERROR(LoadLibrary(path, kind));
  return absl::OkStatus();
}

}  // namespace penstock::transfer
