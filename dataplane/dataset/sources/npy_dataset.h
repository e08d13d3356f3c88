// SPDX-License-Identifier: Apache-2.0
// NpyDataset: arrays that NumPy saved, by rows or whole.
#pragma once

#include "dataplane/dataset/registry.h"

namespace penstock {

NodeKind NpyKind();
NodeKind NpyOfKind();

}  // namespace penstock
