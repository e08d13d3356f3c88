// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/kinds.h"

#include <utility>

namespace penstock {

std::vector<NodeKind> SourceKinds() {
  std::vector<NodeKind> kinds = {
      RangeKind(),
      RangeOfKind(),
      FromTensorsKind(),
      FromTensorSlicesKind(),
      TensorsOfKind(),
      TensorSlicesOfKind(),
      ListFilesKind(),
      TFRecordKind(),
      TFRecordOfKind(),
      TextLineKind(),
      TextLineOfKind(),
      FixedLengthRecordKind(),
      FixedLengthRecordOfKind(),
      TarShardsKind(),
      TarShardsOfKind(),
      TokenShardsKind(),
      TokenShardsOfKind(),
      NpyKind(),
      NpyOfKind(),
      ImageDirectoryKind(),
      RegisteredSourceKind(),
      PythonGeneratorKind(),
  };
  for (NodeKind& kind : ParquetKinds()) kinds.push_back(std::move(kind));
  return kinds;
}

}  // namespace penstock
