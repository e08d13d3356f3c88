// SPDX-License-Identifier: Apache-2.0
// FromSource(): a source that the program or a plug-in registered (penstock/plugin.h).
#pragma once

#include "dataplane/dataset/graph/registry.h"
#include "penstock/plugin.h"

namespace penstock {

NodeKind RegisteredSourceKind();

}  // namespace penstock
