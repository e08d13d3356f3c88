# SPDX-License-Identifier: Apache-2.0
# One line per file of this folder; ../CMakeLists.txt makes them part of the component.
set(PENSTOCK_DATASET_GRAPH
  graph/attr_proto.cc
  graph/dataset.cc
  graph/decides_by_value.cc
  graph/definition.cc
  graph/definition_proto.cc
  graph/definition_size.cc
  graph/element_proto.cc
  graph/fingerprint.cc
  graph/graph.cc
  graph/position_versions.cc
  graph/registry.cc
  graph/spec_proto.cc
  graph/split.cc
  graph/state_bytes.cc)
