// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/kinds.h"

namespace penstock {

std::vector<NodeKind> TransformKinds() {
  return {
      BatchKind(),    ConcatenateKind(), EnumerateKind(), FilterKind(),
      FlatMapKind(),  InterleaveKind(),  MapKind(),       OptionsKind(),
      PrefetchKind(), RaggedBatchKind(), RepeatKind(),    ShardKind(),
      ShuffleKind(),  SkipKind(),        TakeKind(),      ZipKind(),
  };
}

}  // namespace penstock
