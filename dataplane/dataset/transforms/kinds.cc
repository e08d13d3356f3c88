// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/kinds.h"

namespace penstock {

std::vector<NodeKind> TransformKinds() {
  return {
      BatchKind(),       CacheKind(),        ChooseFromDatasetsKind(),
      ConcatenateKind(), EnumerateKind(),    FilterKind(),
      FlatMapKind(),     IgnoreErrorsKind(), InterleaveKind(),
      MapKind(),         OptionsKind(),      PrefetchKind(),
      RaggedBatchKind(), RepeatKind(),       SampleFromDatasetsKind(),
      ScanKind(),        ShardKind(),        ShuffleKind(),
      SkipKind(),        TakeKind(),         TakeWhileKind(),
      ZipKind(),
  };
}

}  // namespace penstock
