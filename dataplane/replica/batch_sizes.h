// SPDX-License-Identifier: Apache-2.0
// The division of a batch's rows among replicas, and the resulting number of steps.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "penstock/dataset.h"
#include "penstock/spec.h"

namespace penstock::replica {

// Returns the sizes of `parts` parts of `rows` rows: the first (`rows` mod `parts`) parts have one
// row more than the other parts.
std::vector<int64_t> PartSizes(int64_t rows, int64_t parts);

// Returns, for pipelines with these numbers of replicas, the batch sizes that each pipeline uses
// cyclically. In every step all replicas together have `batch_size` rows, and the larger parts move
// to other replicas from step to step. Example: for seven rows and two pipelines of two replicas,
// the sizes are [2,2,2,1] and [2,1,2,2].
std::vector<std::vector<int64_t>> BatchSizes(int64_t batch_size,
                                             absl::Span<const int> replicas_of_pipeline);

// Returns the number of rows per batch of `dataset`, from its spec or from the node that makes the
// batches. Returns kUnknownDim if neither determines the number, or if a Map or a similar node
// follows that node.
int64_t BatchSizeOf(const Dataset& dataset);

// Returns the total number of rows in all batches of `dataset`.
Cardinality RowsOf(const Dataset& dataset);

// Returns the number of steps of a pipeline with `replicas` replicas whose `rows` are cut
// cyclically into `sizes`. Counts all steps that have a row, or, with `whole`, only complete steps.
// REQUIRES: rows ≥ 0, and at least one size is > 0.
int64_t StepsOf(int64_t rows, absl::Span<const int64_t> sizes, int replicas, bool whole);

}  // namespace penstock::replica
