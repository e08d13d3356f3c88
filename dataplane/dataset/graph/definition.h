// SPDX-License-Identifier: Apache-2.0
// Converts a dataset to bytes (dataset.proto) and back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/dataset.h"

namespace penstock {

// Returns the definition. Equal datasets have the same bytes. If the dataset has an error, returns
// that error.
absl::StatusOr<std::string> Serialize(const Dataset& dataset);

// Checks everything before it builds anything: nodes and operations are known, attributes have the
// right types, inferred specs equal the stored ones. InvalidArgument names the node and the
// argument.
absl::StatusOr<Dataset> ParseDataset(std::string_view bytes);

// Convert an element's spec to bytes and back. InvalidArgument for bytes that are not a spec.
std::string SerializeSpec(const Spec& spec);
absl::StatusOr<Spec> ParseSpec(std::string_view bytes);

// A node's name and fingerprint. The summaries of all nodes, in topological order, show where two
// definitions differ.
struct NodeSummary {
  std::string name;
  uint64_t fingerprint;
};
std::vector<NodeSummary> Summarize(const Dataset& dataset);

// True if the dataset certainly ends: nothing in it repeats forever, and it has no generator,
// registered source or registered transform of unknown cardinality, which might never end.
bool SurelyEnds(const Dataset& dataset);

// Returns the name of the first node in which `a` and `b` differ; empty if they are equal.
std::string FirstDifference(const std::vector<NodeSummary>& a, const std::vector<NodeSummary>& b);

}  // namespace penstock
