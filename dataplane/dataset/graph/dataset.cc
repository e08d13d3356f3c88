// SPDX-License-Identifier: Apache-2.0
// Accessors of Dataset. Sources and transforms are defined with their nodes, and iterators in
// dataplane/dataset/engine.
#include "penstock/dataset.h"

#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/graph/registry.h"

namespace penstock {
Dataset::Dataset() : Dataset(FromTensors({}, Spec())) {}

const absl::Status& Dataset::status() const {
  return node_->status;
}
const Spec& Dataset::element_spec() const {
  return node_->spec;
}
Cardinality Dataset::cardinality() const {
  return node_->cardinality;
}
uint64_t Dataset::fingerprint() const {
  return node_->fingerprint;
}

Dataset DatasetFunction::operator()(const Expr& element) const {
  return trace_(element);
}

}  // namespace penstock
