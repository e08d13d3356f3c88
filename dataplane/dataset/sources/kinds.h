// SPDX-License-Identifier: Apache-2.0
// The node kinds that this folder defines. A new source needs a file, a line here and a line in
// kinds.cc.
#pragma once

#include <vector>

#include "dataplane/dataset/graph/registry.h"

namespace penstock {

std::vector<NodeKind> SourceKinds();

// A kind whose name ends in "Of" is used inside a body. It reads the file that the outer element
// names, or the values that the outer element contains.
NodeKind FixedLengthRecordKind();
NodeKind FixedLengthRecordOfKind();
NodeKind FromTensorSlicesKind();
NodeKind FromTensorsKind();
NodeKind ImageDirectoryKind();
NodeKind ListFilesKind();
NodeKind NpyKind();
NodeKind NpyOfKind();
std::vector<NodeKind> ParquetKinds();  // empty without Arrow
NodeKind PythonGeneratorKind();
NodeKind RangeKind();
NodeKind RangeOfKind();
NodeKind RegisteredSourceKind();
NodeKind TarShardsKind();
NodeKind TarShardsOfKind();
NodeKind TensorSlicesOfKind();
NodeKind TensorsOfKind();
NodeKind TextLineKind();
NodeKind TextLineOfKind();
NodeKind TFRecordKind();
NodeKind TFRecordOfKind();
NodeKind TokenShardsKind();
NodeKind TokenShardsOfKind();

}  // namespace penstock
