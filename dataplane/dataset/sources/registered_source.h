// SPDX-License-Identifier: Apache-2.0
// FromSource(): a source that the program or a plug-in registered (penstock/plugin.h), and the
// iterator over a source that a registered or Python reader reads.
#pragma once

#include <memory>
#include <string_view>

#include "dataplane/dataset/engine/build_site.h"
#include "penstock/plugin.h"

namespace penstock {

// Reads the splits of the node's feed with `reader`. The node has the attributes "name" and
// "splits". Errors contain `what` ("source") and that name.
std::unique_ptr<NodeIterator> ReadSplits(const BuildSite& site, std::string_view what,
                                         std::unique_ptr<SourceReader> reader);

}  // namespace penstock
