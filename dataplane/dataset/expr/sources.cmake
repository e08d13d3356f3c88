# SPDX-License-Identifier: Apache-2.0
# What the functions add to the component dataplane/dataset.
set(PENSTOCK_DATASET_EXPR)
