// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/batch_sizes.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/transforms/batch/batch_spec.h"

namespace penstock::replica {
namespace {

bool Batches(const Dataset::Node& node) {
  return node.op == "Batch" || node.op == "PaddedBatch" || node.op == "RaggedBatch";
}

// Returns true for nodes that return batches of their input unchanged, but possibly not all
// batches, some more than once, or in a different order.
bool KeepsBatches(const Dataset::Node& node) {
  static const std::set<std::string> ops = {"Cache",    "Distribute", "IgnoreErrors", "Options",
                                            "Prefetch", "Repeat",     "Shard",        "Shuffle",
                                            "Skip",     "Take"};
  return ops.contains(node.op) && node.inputs.size() == 1;
}

// Returns true for nodes that return every batch of their input exactly once.
bool KeepsAll(const Dataset::Node& node) {
  static const std::set<std::string> ops = {"Cache", "Options", "Prefetch", "Shuffle"};
  return ops.contains(node.op);
}

int64_t LeadingDim(const Spec& spec) {
  int64_t rows = kUnknownDim;
  for (const TensorSpec& leaf : spec.leaves()) {
    if (!leaf.shape.has_rank() || leaf.shape.rank() == 0) return kUnknownDim;
    const int64_t dim = leaf.shape.dim(0);
    if (dim == kUnknownDim || (rows != kUnknownDim && dim != rows)) return kUnknownDim;
    rows = dim;
  }
  return rows;
}

int64_t BatchSizeOfNode(const Dataset::Node& node) {
  if (const int64_t rows = LeadingDim(node.spec); rows != kUnknownDim) return rows;
  if (Batches(node)) return Get<int64_t>(node.attrs, "batch_size");
  if (node.op == "Rebatch") {
    const auto& sizes = Get<std::vector<int64_t>>(node.attrs, "batch_sizes");
    const bool one =
        std::count(sizes.begin(), sizes.end(), sizes[0]) == static_cast<int64_t>(sizes.size());
    return one ? sizes[0] : kUnknownDim;
  }
  return KeepsBatches(node) ? BatchSizeOfNode(*node.inputs[0]) : kUnknownDim;
}

Cardinality RowsOfNode(const Dataset::Node& node) {
  if (node.cardinality == kInfinite) return kInfinite;
  if (Batches(node)) {
    const Cardinality rows = node.inputs[0]->cardinality;
    const auto size = Get<int64_t>(node.attrs, "batch_size");
    return rows >= 0 && Get<bool>(node.attrs, "drop_remainder") ? rows / size * size : rows;
  }
  if (KeepsAll(node)) return RowsOfNode(*node.inputs[0]);
  if (node.op == "Repeat") {
    const Cardinality once = RowsOfNode(*node.inputs[0]);
    Cardinality all;
    const bool fits =
        once >= 0 && !__builtin_mul_overflow(once, Get<int64_t>(node.attrs, "count"), &all);
    return fits ? all : kUnknown;
  }
  return LeadingDim(node.spec) == kUnknownDim ? kUnknown
                                              : UnbatchedCount(node.spec, node.cardinality);
}

}  // namespace

std::vector<int64_t> PartSizes(int64_t rows, int64_t parts) {
  std::vector<int64_t> sizes(static_cast<size_t>(parts), rows / parts);
  std::fill_n(sizes.begin(), rows % parts, rows / parts + 1);
  return sizes;
}

std::vector<std::vector<int64_t>> BatchSizes(int64_t batch_size,
                                             absl::Span<const int> replicas_of_pipeline) {
  int replicas = 0;
  int turn = 0;  // in each step, the parts move by this many replicas
  for (const int of_pipeline : replicas_of_pipeline) {
    replicas += of_pipeline;
    turn = std::gcd(turn, of_pipeline);
  }
  const std::vector<int64_t> parts = PartSizes(batch_size, replicas);
  std::vector<std::vector<int64_t>> all;
  int first = 0;
  for (const int of_pipeline : replicas_of_pipeline) {
    std::vector<int64_t>& sizes = all.emplace_back();
    for (int moved = 0; moved < replicas; moved += turn)
      for (int i = 0; i < of_pipeline; ++i) sizes.push_back(parts[(first + moved + i) % replicas]);
    first += of_pipeline;
  }
  return all;
}

int64_t BatchSizeOf(const Dataset& dataset) {
  return BatchSizeOfNode(*NodeOf(dataset));
}

Cardinality RowsOf(const Dataset& dataset) {
  return RowsOfNode(*NodeOf(dataset));
}

int64_t StepsOf(int64_t rows, absl::Span<const int64_t> sizes, int replicas, bool whole) {
  const int64_t all = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  int64_t steps = rows / all * static_cast<int64_t>(sizes.size()) / replicas;
  rows %= all;
  for (size_t first = 0; rows > 0; first += replicas) {
    const int64_t step =
        std::accumulate(sizes.begin() + first, sizes.begin() + first + replicas, int64_t{0});
    if (rows < step && whole) break;
    rows -= std::min(rows, step);
    ++steps;
  }
  return steps;
}

}  // namespace penstock::replica
