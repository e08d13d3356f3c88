// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/kinds.h"

namespace penstock {

std::vector<NodeKind> TransformKinds() {
  return {
      BatchKind(),
      BucketBySequenceLengthKind(),
      CacheKind(),
      ChooseFromDatasetsKind(),
      ConcatenateKind(),
      EnumerateKind(),
      FilterKind(),
      FlatMapKind(),
      GroupByWindowKind(),
      IgnoreErrorsKind(),
      InterleaveKind(),
      MapKind(),
      OptionsKind(),
      PackKind(),
      PaddedBatchKind(),
      PrefetchKind(),
      RaggedBatchKind(),
      RebatchKind(),
      RegisteredTransformKind(),
      RepeatKind(),
      RoundsKind(),
      SampleFromDatasetsKind(),
      ScanKind(),
      ShardKind(),
      ShuffleKind(),
      SkipKind(),
      TakeKind(),
      TakeWhileKind(),
      UnbatchKind(),
      WindowKind(),
      ZipKind(),
  };
}

}  // namespace penstock
