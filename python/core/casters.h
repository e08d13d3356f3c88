// SPDX-License-Identifier: Apache-2.0
// Conversions of dtypes, shapes and specs between Python and C++. In Python a dtype is a
// penstock.DType (or any value that penstock.as_dtype accepts). A shape is a tuple, with None for
// unknown dimensions, or None for an unknown rank. A nest of specs is a nest of tuples and dicts
// whose leaves are _core.LeafSpec.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "penstock/dtype.h"
#include "penstock/spec.h"

namespace penstock::python {

// The conversions from Python throw Python's exceptions for a value that does not convert.
DType DTypeFrom(pybind11::handle value);
pybind11::object ToPython(DType dtype);
Shape ShapeFrom(pybind11::handle value);
pybind11::object ToPython(const Shape& shape);
Spec SpecFrom(pybind11::handle value);
pybind11::object ToPython(const Spec& spec);

void BindSpecs(pybind11::module_& module);

}  // namespace penstock::python

namespace pybind11::detail {

template <>
struct type_caster<penstock::DType> {
  PYBIND11_TYPE_CASTER(penstock::DType, const_name("DType"));
  bool load(handle from, bool) {
    value = penstock::python::DTypeFrom(from);
    return true;
  }
  static handle cast(penstock::DType from, return_value_policy, handle) {
    return penstock::python::ToPython(from).release();
  }
};

template <>
struct type_caster<penstock::Shape> {
  PYBIND11_TYPE_CASTER(penstock::Shape, const_name("Shape"));
  bool load(handle from, bool) {
    value = penstock::python::ShapeFrom(from);
    return true;
  }
  static handle cast(const penstock::Shape& from, return_value_policy, handle) {
    return penstock::python::ToPython(from).release();
  }
};

template <>
struct type_caster<penstock::Spec> {
  PYBIND11_TYPE_CASTER(penstock::Spec, const_name("Spec"));
  bool load(handle from, bool) {
    value = penstock::python::SpecFrom(from);
    return true;
  }
  static handle cast(const penstock::Spec& from, return_value_policy, handle) {
    return penstock::python::ToPython(from).release();
  }
};

}  // namespace pybind11::detail
