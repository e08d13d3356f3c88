// SPDX-License-Identifier: Apache-2.0
#include "python/core/errors.h"

#include <pybind11/pybind11.h>

#include <string>

namespace penstock::python {

namespace py = pybind11;

void Raise(const absl::Status& status) {
  const py::object error =
      py::module_::import("penstock.errors")
          .attr("of_code")(static_cast<int>(status.code()), std::string(status.message()));
  PyErr_SetObject(py::type::handle_of(error).ptr(), error.ptr());
  throw py::error_already_set();
}

}  // namespace penstock::python
