// SPDX-License-Identifier: Apache-2.0
// TarShards: samples of tar files, grouped as WebDataset does.
#pragma once

#include "dataplane/dataset/graph/registry.h"

namespace penstock {

NodeKind TarShardsKind();
NodeKind TarShardsOfKind();

}  // namespace penstock
