// SPDX-License-Identifier: Apache-2.0
// The node kinds that this folder defines. A new transform needs a file, a line here and a line in
// kinds.cc.
#pragma once

#include <vector>

#include "dataplane/dataset/graph/registry.h"

namespace penstock {

std::vector<NodeKind> TransformKinds();

NodeKind BatchKind();
NodeKind BucketBySequenceLengthKind();
NodeKind CacheKind();
NodeKind ChooseFromDatasetsKind();
NodeKind ConcatenateKind();
NodeKind EnumerateKind();
NodeKind FilterKind();
NodeKind FlatMapKind();
NodeKind GroupByWindowKind();
NodeKind IgnoreErrorsKind();
NodeKind InterleaveKind();
NodeKind MapKind();
NodeKind OptionsKind();
NodeKind PackKind();
NodeKind PaddedBatchKind();
NodeKind PrefetchKind();
NodeKind RaggedBatchKind();
NodeKind RebatchKind();
NodeKind RegisteredTransformKind();
NodeKind RepeatKind();
NodeKind RoundsKind();
NodeKind SampleFromDatasetsKind();
NodeKind ScanKind();
NodeKind ShardKind();
NodeKind ShuffleKind();
NodeKind SkipKind();
NodeKind TakeKind();
NodeKind TakeWhileKind();
NodeKind UnbatchKind();
NodeKind WindowKind();
NodeKind ZipKind();

}  // namespace penstock
