// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/kinds.h"

#include "dataplane/dataset/sources/list_files.h"
#include "dataplane/dataset/sources/range.h"
#include "dataplane/dataset/sources/record_datasets.h"
#include "dataplane/dataset/sources/tensors.h"

namespace penstock {

std::vector<NodeKind> SourceKinds() {
  return {
      RangeKind(),      RangeOfKind(),        FromTensorsKind(), FromTensorSlicesKind(),
      TensorsOfKind(),  TensorSlicesOfKind(), ListFilesKind(),   TFRecordKind(),
      TFRecordOfKind(), TextLineKind(),       TextLineOfKind(),
  };
}

}  // namespace penstock
