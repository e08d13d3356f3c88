// SPDX-License-Identifier: Apache-2.0
// Opens the library that is linked against UCX.
#pragma once

#include "absl/status/statusor.h"
#include "dataplane/transfer/ucx/fabric.h"

namespace penstock::transfer::ucx {

// Opens the library once, with the settings at that time (settings.h), and never closes it. UCX
// recognizes GPU memory if it was built with CUDA and if this process already uses a GPU. The
// library is the file named by PENSTOCK_UCX_MODULE. If that variable is not set, it is
// libpenstock_ucx.so in a folder lib/penstock, which is next to the file with this code or up to
// four levels above that file. NotFound with the reason if the library or UCX is missing, or if UCX
// does not have the requested lanes; the next call then tries again.
absl::StatusOr<Fabric*> OpenTheFabric();

}  // namespace penstock::transfer::ucx
