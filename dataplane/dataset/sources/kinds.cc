// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/kinds.h"

#include <utility>

#include "dataplane/dataset/sources/image_directory.h"
#include "dataplane/dataset/sources/list_files.h"
#include "dataplane/dataset/sources/npy_dataset.h"
#include "dataplane/dataset/sources/parquet.h"
#include "dataplane/dataset/sources/python_generator.h"
#include "dataplane/dataset/sources/range.h"
#include "dataplane/dataset/sources/record_datasets.h"
#include "dataplane/dataset/sources/registered_source.h"
#include "dataplane/dataset/sources/tar_shards.h"
#include "dataplane/dataset/sources/tensors.h"
#include "dataplane/dataset/sources/token_shards.h"

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
