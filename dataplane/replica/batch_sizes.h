// SPDX-License-Identifier: Apache-2.0
// How many rows the replicas get of a batch, and how many steps that makes.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "penstock/dataset.h"
#include "penstock/spec.h"

namespace penstock::replica {

// Sizes of `parts` parts of `rows` rows: the first rows mod parts have one more.
std::vector<int64_t> PartSizes(int64_t rows, int64_t parts);

// For each of several pipelines with so many replicas, the sizes of its batches,
// which take turns: in every step all replicas have `batch_size` rows together,
// and the larger parts move on from step to step. Seven rows for two pipelines of
// two: [2,2,2,1] and [2,1,2,2].
std::vector<std::vector<int64_t>> BatchSizes(int64_t batch_size,
                                             absl::Span<const int> replicas_of_pipeline);

// Rows of the batches of `dataset`, as its spec or the node that batches it says;
// kUnknownDim if neither does, or a Map or the like stands behind that node.
int64_t BatchSizeOf(const Dataset& dataset);

// Rows of all its batches together.
Cardinality RowsOf(const Dataset& dataset);

// Steps of a pipeline of so many replicas whose `rows` are cut to `sizes` in turns:
// all that have a row, or only those that are `whole`. REQUIRES: rows ≥ 0, a size > 0.
int64_t StepsOf(int64_t rows, absl::Span<const int64_t> sizes, int replicas, bool whole);

}  // namespace penstock::replica
