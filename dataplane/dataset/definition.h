// SPDX-License-Identifier: Apache-2.0
// A dataset as bytes (dataset.proto) and back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/dataset.h"

namespace penstock {

// The definition, the same bytes for equal datasets. The error of a dataset
// that has one.
absl::StatusOr<std::string> Serialize(const Dataset& dataset);

// Checks everything before it builds anything: known nodes and operations,
// attributes of the right types, inferred specs equal to the stored ones.
// InvalidArgument names the node and the argument.
absl::StatusOr<Dataset> ParseDataset(std::string_view bytes);

// An element's spec as bytes, and back. InvalidArgument for bytes that are none.
std::string SerializeSpec(const Spec& spec);
absl::StatusOr<Spec> ParseSpec(std::string_view bytes);

// One 64-bit number per node in topological order, to say where two
// definitions differ.
struct NodeSummary {
  std::string name;
  uint64_t fingerprint;
};
std::vector<NodeSummary> Summarize(const Dataset& dataset);

// Whether it is sure to end: nothing in it repeats for ever, and nothing is of the user's own code,
// which may go on without end.
bool SurelyEnds(const Dataset& dataset);

// The name of the first node in which the two differ; empty if equal.
std::string FirstDifference(const std::vector<NodeSummary>& a, const std::vector<NodeSummary>& b);

}  // namespace penstock
