# SPDX-License-Identifier: Apache-2.0
# What the transforms add to the component dataplane/dataset.
set(PENSTOCK_DATASET_TRANSFORMS
  transforms/kinds.cc)
