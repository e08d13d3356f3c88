// SPDX-License-Identifier: Apache-2.0
// TFRecordDataset and TextLineDataset, of named files and of a file that an
// element names.
#pragma once

#include "dataplane/dataset/registry.h"

namespace penstock {

NodeKind TFRecordKind();
NodeKind TFRecordOfKind();
NodeKind TextLineKind();
NodeKind TextLineOfKind();

}  // namespace penstock
