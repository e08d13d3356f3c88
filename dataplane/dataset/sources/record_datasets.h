// SPDX-License-Identifier: Apache-2.0
// TFRecordDataset, TextLineDataset and FixedLengthRecordDataset: records of named files, or of a
// file that an element names.
#pragma once

#include "dataplane/dataset/graph/registry.h"

namespace penstock {

NodeKind TFRecordKind();
NodeKind TFRecordOfKind();
NodeKind TextLineKind();
NodeKind TextLineOfKind();
NodeKind FixedLengthRecordKind();
NodeKind FixedLengthRecordOfKind();

}  // namespace penstock
