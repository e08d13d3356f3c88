// SPDX-License-Identifier: Apache-2.0
// NpyDataset: arrays that NumPy saved, each row or each whole array as an element.
#pragma once

#include "dataplane/dataset/graph/registry.h"

namespace penstock {

NodeKind NpyKind();
NodeKind NpyOfKind();

}  // namespace penstock
