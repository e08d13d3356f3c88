// SPDX-License-Identifier: Apache-2.0
// The extension module penstock._core, with only the parts that need C++. The interface for Python
// users is in python/penstock.
#include <pybind11/pybind11.h>

#include <string_view>

#include "dataplane/element/crc32c.h"
#include "python/core/casters.h"
#include "python/core/datasets.h"
#include "python/core/expressions.h"
#include "python/core/functions.h"
#include "python/core/iterators.h"
#include "python/core/lost_consumers.h"
#include "python/core/replicas.h"
#include "python/core/service.h"
#include "python/core/signals.h"
#include "python/core/tensors.h"
#include "python/core/without_gil.h"

PYBIND11_MODULE(_core, module) {
  namespace python = penstock::python;
  python::BindSpecs(module);
  python::BindTensors(module);
  python::BindExpressions(module);
  python::BindIterators(module);
  python::LearnWhoHearsSignals();
  python::BindService(module);
  python::BindDatasets(module);
  python::BindFunctions(module);
  python::BindReplicas(module);
  python::BindLostConsumers(module);
  module.def("masked_crc32c", [](const pybind11::bytes& bytes) {
    return penstock::MaskedCrc32c(std::string_view(bytes));
  });
  module.def("begin_to_leave", &python::BeginToLeave);
  module.def("await_others", &python::AwaitOthers);
  module.attr("__version__") = PENSTOCK_VERSION;
}
