# SPDX-License-Identifier: Apache-2.0
# One line per file of this folder; ../CMakeLists.txt makes them part of the component.
set(PENSTOCK_DATASET_ENGINE
  engine/background_task.cc
  engine/body.cc
  engine/build_site.cc
  engine/element_sink.cc
  engine/epochs.cc
  engine/iterator.cc
  engine/node_iterator.cc
  engine/pending_deliveries.cc
  engine/plugin.cc
  engine/profile.cc
  engine/read_ahead.cc
  engine/registered_node.cc
  engine/running_dataset.cc
  engine/state_head.cc
  engine/state_sections.cc
  engine/states_of_ranks.cc
  engine/static_shard.cc)
