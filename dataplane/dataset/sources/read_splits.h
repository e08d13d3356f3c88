// SPDX-License-Identifier: Apache-2.0
// The iterator over what is not the engine's own to read.
#pragma once

#include <memory>
#include <string_view>

#include "dataplane/dataset/build_site.h"
#include "penstock/plugin.h"

namespace penstock {

// What `reader` reads of the splits that the node's feed gives. The node has the attributes
// "name" and "splits"; errors name it and `what` ("source") of that name.
std::unique_ptr<NodeIterator> ReadSplits(const BuildSite& site, std::string_view what,
                                         std::unique_ptr<SourceReader> reader);

}  // namespace penstock
