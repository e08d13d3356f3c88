// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace penstock::python {

// Binds _core.ReplicaGroup, DistributedDataset and DistributedIterator: penstock/replica.h and
// distributed_dataset.h, for the package's penstock/distribute.py.
void BindReplicas(pybind11::module_& module);

}  // namespace penstock::python
