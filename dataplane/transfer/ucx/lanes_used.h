// SPDX-License-Identifier: Apache-2.0
// The lanes over which UCX moves the elements of this process's links.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "dataplane/transfer/ucx/fabric.h"

namespace penstock::transfer::ucx {

// Records the lanes of a new peer. Any thread.
void NoteLanes(const std::vector<Worker::Lane>& lanes);
// Returns the lanes to all peers so far, by UCX's names: "rc_mlx5/mlx5_0:1". Any thread.
std::set<std::string> LanesOfProcess();

}  // namespace penstock::transfer::ucx
