# SPDX-License-Identifier: Apache-2.0
# What the transforms add to the component dataplane/dataset.
set(PENSTOCK_DATASET_TRANSFORMS
  transforms/batch.cc
  transforms/concatenate.cc
  transforms/decides_by_value.cc
  transforms/enumerate.cc
  transforms/filter.cc
  transforms/interleave.cc
  transforms/kinds.cc
  transforms/map.cc
  transforms/map_batch.cc
  transforms/map_step.cc
  transforms/options.cc
  transforms/ordered_calls.cc
  transforms/positioned_input.cc
  transforms/prefetch.cc
  transforms/repeat.cc
  transforms/shard.cc
  transforms/shuffle.cc
  transforms/shuffle_order.cc
  transforms/stack_rows.cc
  transforms/static_batch.cc
  transforms/take_skip.cc
  transforms/thread_pool.cc
  transforms/zip.cc)
