// SPDX-License-Identifier: Apache-2.0
// TokenShards: windows of token files.
#pragma once

#include "dataplane/dataset/graph/registry.h"

namespace penstock {

NodeKind TokenShardsKind();
NodeKind TokenShardsOfKind();

}  // namespace penstock
