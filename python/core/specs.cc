// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "python/core/casters.h"
#include "python/core/errors.h"

namespace penstock::python {

namespace py = pybind11;

DType DTypeFrom(py::handle value) {
  const py::object dtype = py::module_::import("penstock.dtypes").attr("as_dtype")(value);
  return ValueOrRaise(DTypeFromName(dtype.attr("name").cast<std::string>()));
}

py::object ToPython(DType dtype) {
  // Kept until the process ends, because tensors look up their dtypes often. Guarded by the GIL.
  static std::array<PyObject*, 256> known{};
  PyObject*& object = known[static_cast<uint8_t>(dtype)];
  if (object == nullptr) {
    object = py::module_::import("penstock.dtypes").attr("as_dtype")(Name(dtype)).release().ptr();
  }
  return py::reinterpret_borrow<py::object>(object);
}

Shape ShapeFrom(py::handle value) {
  if (value.is_none()) return Shape::UnknownRank();
  std::vector<int64_t> dims;
  for (py::handle dim : value) dims.push_back(dim.is_none() ? kUnknownDim : dim.cast<int64_t>());
  return Shape(std::move(dims));
}

py::object ToPython(const Shape& shape) {
  if (!shape.has_rank()) return py::none();
  py::tuple dims(shape.rank());
  for (int i = 0; i < shape.rank(); ++i) {
    dims[i] = shape.dim(i) == kUnknownDim ? py::object(py::none()) : py::int_(shape.dim(i));
  }
  return dims;
}

Spec SpecFrom(py::handle value) {
  if (py::isinstance<TensorSpec>(value)) return value.cast<TensorSpec>();
  if (py::isinstance<py::dict>(value)) {
    std::vector<std::pair<std::string, Spec>> members;
    for (const auto& [key, member] : py::reinterpret_borrow<py::dict>(value)) {
      members.emplace_back(key.cast<std::string>(), SpecFrom(member));
    }
    return Spec::Dict(std::move(members));
  }
  std::vector<Spec> members;
  for (py::handle member : value.cast<py::tuple>()) members.push_back(SpecFrom(member));
  return Spec::Tuple(std::move(members));
}

py::object ToPython(const Spec& spec) {
  switch (spec.kind()) {
    case Spec::Kind::kLeaf:
      return py::cast(spec.leaf());
    case Spec::Kind::kTuple: {
      py::tuple members(spec.size());
      for (size_t i = 0; i < spec.size(); ++i) members[i] = ToPython(spec.member(i));
      return members;
    }
    case Spec::Kind::kDict: {
      py::dict members;
      for (size_t i = 0; i < spec.size(); ++i) {
        members[py::str(spec.key(i))] = ToPython(spec.member(i));
      }
      return members;
    }
  }
  return py::none();
}

void BindSpecs(py::module_& module) {
  py::enum_<TensorSpec::Kind>(module, "Kind")
      .value("DENSE", TensorSpec::Kind::kDense)
      .value("RAGGED", TensorSpec::Kind::kRagged)
      .value("SPARSE", TensorSpec::Kind::kSparse);
  py::class_<TensorSpec>(module, "LeafSpec")
      .def(py::init(
               [](Shape shape, DType dtype, TensorSpec::Kind kind, int ragged_rank, bool optional) {
                 return TensorSpec{.dtype = dtype,
                                   .shape = std::move(shape),
                                   .kind = kind,
                                   .ragged_rank = ragged_rank,
                                   .optional = optional};
               }),
           py::arg("shape"), py::arg("dtype"), py::arg("kind") = TensorSpec::Kind::kDense,
           py::arg("ragged_rank") = 0, py::arg("optional") = false)
      .def_property_readonly("shape", [](const TensorSpec& spec) { return spec.shape; })
      .def_property_readonly("dtype", [](const TensorSpec& spec) { return spec.dtype; })
      .def_readonly("kind", &TensorSpec::kind)
      .def_readonly("ragged_rank", &TensorSpec::ragged_rank)
      .def_readonly("optional", &TensorSpec::optional)
      .def("__repr__", &TensorSpec::ToString);
}

}  // namespace penstock::python
