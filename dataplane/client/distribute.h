// SPDX-License-Identifier: Apache-2.0
// The Distribute node: a source whose elements come from the service. The nodes before Distribute
// run on workers.
#pragma once

#include <string>

#include "dataplane/dataset/graph/registry.h"
#include "penstock/dataset.h"
#include "penstock/distribute.h"

namespace penstock::client {

NodeKind DistributeKind();

// Returns a Distribute node for a dataset that is already registered.
Dataset DistributeFromId(std::string dataset_id, const Spec& spec, Cardinality cardinality,
                         const DistributeOptions& options);

}  // namespace penstock::client
