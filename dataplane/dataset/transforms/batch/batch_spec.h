// SPDX-License-Identifier: Apache-2.0
// Specs and counts of batches, and the names of their components.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "penstock/spec.h"

namespace penstock {

// Returns the spec of a batch of `rows` elements of `row`. `rows` is kUnknownDim if the number
// varies. Each leaf gets one more dimension in front, ragged leaves one more level. InvalidArgument
// names a leaf that gets too many dimensions or levels.
absl::StatusOr<Spec> StackedSpec(const Spec& row, int64_t rows);

// Does the same, but makes dense leaves ragged up to their last unknown dimension.
absl::StatusOr<Spec> RaggedSpec(const Spec& row, int64_t rows);

// Returns the number of batches of `size` that these elements make.
Cardinality BatchCount(Cardinality elements, int64_t size, bool drop_remainder);
// Returns the total number of rows of `elements` elements of `batch`.
Cardinality UnbatchedCount(const Spec& batch, Cardinality elements);

// The name of component `i` of an element in messages.
inline std::string ComponentName(const Spec& spec, size_t i) {
  std::string name = spec.LeafName(i);
  return name.empty() ? "the element" : name;
}

}  // namespace penstock
