// SPDX-License-Identifier: Apache-2.0
// Elements made of given tensors: FromTensors and FromTensorSlices, and, inside a DatasetFunction,
// TensorsOf and TensorSlicesOf.
#pragma once

#include "dataplane/dataset/graph/registry.h"

namespace penstock {

NodeKind FromTensorsKind();
NodeKind FromTensorSlicesKind();
NodeKind TensorsOfKind();
NodeKind TensorSlicesOfKind();

}  // namespace penstock
