// SPDX-License-Identifier: Apache-2.0
// Opens the library that has UCX.
#pragma once

#include "absl/status/statusor.h"
#include "dataplane/transfer/ucx/fabric.h"

namespace penstock::transfer::ucx {

// Opened once, with the settings of that moment (settings.h), and never closed. It knows GPUs'
// memory if this process uses a GPU by then, and UCX can.
// The library is what PENSTOCK_UCX_MODULE names, else libpenstock_ucx.so in the
// folder lib/penstock beside or up to four levels above the file with this code.
// NotFound, in words, if it or UCX is not there or UCX has no such lanes; asked
// again, it looks again.
absl::StatusOr<Fabric*> OpenTheFabric();

}  // namespace penstock::transfer::ucx
