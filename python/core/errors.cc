// SPDX-License-Identifier: Apache-2.0
#include "python/core/errors.h"

#include <pybind11/pybind11.h>

namespace penstock::python {

namespace py = pybind11;

void Raise(const absl::Status& status) {
  // The message may hold users' data, which need not be UTF-8.
  const py::object message = py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(status.message().data(),
                           static_cast<Py_ssize_t>(status.message().size()), "backslashreplace"));
  const py::object error = py::module_::import("penstock.errors")
                               .attr("of_code")(static_cast<int>(status.code()), message);
  PyErr_SetObject(py::type::handle_of(error).ptr(), error.ptr());
  throw py::error_already_set();
}

}  // namespace penstock::python
