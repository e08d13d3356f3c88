// SPDX-License-Identifier: Apache-2.0
// What UCX moves the elements of this process's links over.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "dataplane/transfer/ucx/fabric.h"

namespace penstock::transfer::ucx {

// Adds the lanes to a peer that links may go to. Any thread.
void NoteLanes(const std::vector<Worker::Lane>& lanes);
// The lanes to all peers so far, as UCX calls them: "rc_mlx5/mlx5_0:1". Any thread.
std::set<std::string> LanesOfProcess();

}  // namespace penstock::transfer::ucx
