// SPDX-License-Identifier: Apache-2.0
// Opens the library that links UCX.
#pragma once

#include "absl/status/statusor.h"
#include "dataplane/transfer/ucx/fabric.h"

namespace penstock::transfer::ucx {

// Opens the library once, with the settings at that time (settings.h), and never closes it. UCX
// recognizes GPU memory if it was built for that and if this process already uses a GPU. The
// library is the file in PENSTOCK_UCX_MODULE, else libpenstock_ucx.so in a folder lib/penstock that
// is next to the file with this code or up to four levels above it. NotFound with the reason if the
// library or UCX is missing, or if UCX has no such lanes; the next call tries again.
absl::StatusOr<Fabric*> OpenTheFabric();

}  // namespace penstock::transfer::ucx
