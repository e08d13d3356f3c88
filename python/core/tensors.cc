// SPDX-License-Identifier: Apache-2.0
#include "python/core/tensors.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "python/core/casters.h"
#include "python/core/dlpack.h"
#include "python/core/errors.h"

namespace penstock::python {

namespace py = pybind11;

namespace {

// As the struct module writes it; a bfloat16 is its 16 bits.
const char* FormatOf(DType dtype) {
  switch (dtype) {
    case kBool:
      return "?";
    case kInt8:
      return "b";
    case kInt16:
      return "h";
    case kInt32:
      return "i";
    case kInt64:
      return "l";
    case kUInt8:
      return "B";
    case kUInt16:
    case kBFloat16:
      return "H";
    case kUInt32:
      return "I";
    case kUInt64:
      return "L";
    case kFloat16:
      return "e";
    case kFloat32:
      return "f";
    case kFloat64:
      return "d";
    case kComplex64:
      return "Zf";
    case kComplex128:
      return "Zd";
    default:
      return nullptr;
  }
}

dlpack::DataType DlpackTypeOf(DType dtype) {
  const auto bits = static_cast<uint8_t>(SizeOf(dtype) * 8);
  switch (dtype) {
    case kBool:
      return {dlpack::kBool, bits, 1};
    case kFloat16:
    case kFloat32:
    case kFloat64:
      return {dlpack::kFloat, bits, 1};
    case kBFloat16:
      return {dlpack::kBfloat, bits, 1};
    case kComplex64:
    case kComplex128:
      return {dlpack::kComplex, bits, 1};
    default:
      return {FormatOf(dtype)[0] >= 'a' ? dlpack::kInt : dlpack::kUInt, bits, 1};
  }
}

// One dense part of an element.
class Leaf {
 public:
  Leaf(std::shared_ptr<Held> held, Tensor tensor)
      : held_(std::move(held)), tensor_(tensor), dims_(tensor.dims().begin(), tensor.dims().end()) {
    strides_.resize(dims_.size());
    int64_t stride = 1;
    for (size_t i = dims_.size(); i-- > 0; stride *= std::max<int64_t>(dims_[i], 1)) {
      strides_[i] = stride;
    }
    for (int64_t dim : dims_) count_ *= dim;
  }

  // The values, where they may be read; dims() are the tensor's.
  const Tensor& values() const {
    if (!held_->usable()) {
      Raise(absl::FailedPreconditionError(
          "this tensor was lent to the process that this one was forked from; copy what a child is "
          "to read before forking"));
    }
    return tensor_;
  }
  DType dtype() const { return tensor_.dtype(); }
  const std::vector<int64_t>& dims() const { return dims_; }
  const std::vector<int64_t>& strides() const { return strides_; }  // in values
  bool writable() const { return held_->writable(); }
  int64_t count() const { return count_; }
  size_t bytes() const { return count_ * SizeOf(tensor_.dtype()); }  // 0 for strings
  const std::shared_ptr<Held>& held() const { return held_; }

 private:
  std::shared_ptr<Held> held_;
  Tensor tensor_;  // its own dims may be gone
  std::vector<int64_t> dims_;
  std::vector<int64_t> strides_;
  int64_t count_ = 1;
};

// --- Buffers -------------------------------------------------------------------

// What a Py_buffer points to beside the values.
struct BufferShape {
  std::vector<Py_ssize_t> dims;
  std::vector<Py_ssize_t> strides;  // in bytes
};

int FillBuffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  try {
    const Leaf& leaf = py::handle(self).cast<const Leaf&>();
    const Tensor& values = leaf.values();
    const char* const format = FormatOf(leaf.dtype());
    const bool writable = (flags & PyBUF_WRITABLE) == PyBUF_WRITABLE;
    if (format == nullptr || (writable && !leaf.writable())) {
      PyErr_SetString(PyExc_BufferError, format == nullptr
                                             ? "a tensor of strings has no buffer; see numpy()"
                                             : "others read this tensor too, so it is read-only");
      return -1;
    }
    const auto item = static_cast<int64_t>(SizeOf(leaf.dtype()));
    auto shape = std::make_unique<BufferShape>();
    shape->dims.assign(leaf.dims().begin(), leaf.dims().end());
    for (int64_t stride : leaf.strides()) shape->strides.push_back(stride * item);
    view->buf = const_cast<void*>(values.raw());
    view->len = static_cast<Py_ssize_t>(leaf.bytes());
    view->readonly = leaf.writable() ? 0 : 1;
    view->itemsize = item;
    view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format) : nullptr;
    view->ndim = static_cast<int>(leaf.dims().size());
    view->shape = (flags & PyBUF_ND) != 0 ? shape->dims.data() : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? shape->strides.data() : nullptr;
    view->suboffsets = nullptr;
    view->internal = shape.release();
    view->obj = self;
    Py_INCREF(self);
    return 0;
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
  }
  return -1;
}

void ReleaseBuffer(PyObject*, Py_buffer* view) {
  delete static_cast<BufferShape*>(view->internal);
}

// --- DLPack --------------------------------------------------------------------

// What a capsule's array points to, until its consumer calls the deleter, on any thread.
template <class M>
struct Exported {
  Leaf leaf;
  M managed{};
};

template <class M>
M* Export(const Leaf& leaf) {
  auto* exported = new Exported<M>{.leaf = leaf};
  exported->managed.array = {
      .data = const_cast<void*>(leaf.values().raw()),
      .device = {dlpack::kCpu, 0},
      .ndim = static_cast<int32_t>(leaf.dims().size()),
      .dtype = DlpackTypeOf(leaf.dtype()),
      .shape = const_cast<int64_t*>(exported->leaf.dims().data()),
      .strides = const_cast<int64_t*>(exported->leaf.strides().data()),
      .byte_offset = 0,
  };
  exported->managed.context = exported;
  exported->managed.deleter = [](M* self) { delete static_cast<Exported<M>*>(self->context); };
  return &exported->managed;
}

// A capsule that nobody consumed lets go by itself.
template <class M>
py::capsule Capsule(M* managed, const char* name) {
  return py::reinterpret_steal<py::capsule>(PyCapsule_New(managed, name, [](PyObject* capsule) {
    const char* const now = PyCapsule_GetName(capsule);
    if (now == nullptr || std::string_view(now).starts_with("used_")) return;
    auto* const left = static_cast<M*>(PyCapsule_GetPointer(capsule, now));
    left->deleter(left);
  }));
}

py::capsule ToDlpack(const Leaf& leaf, py::object stream,
                     std::optional<std::pair<uint32_t, uint32_t>> max_version,
                     std::optional<std::pair<int32_t, int32_t>> device, std::optional<bool> copy) {
  if (FormatOf(leaf.dtype()) == nullptr) {
    throw py::buffer_error("DLPack has no strings; see numpy()");
  }
  if (!stream.is_none()) throw py::buffer_error("this tensor is in host memory: stream is None");
  if (device.has_value() && *device != std::pair<int32_t, int32_t>(dlpack::kCpu, 0)) {
    throw py::buffer_error("this tensor is in host memory, and goes to no other device by itself");
  }
  if (copy.value_or(false)) throw py::buffer_error("copy first, for instance by numpy().copy()");
  if (max_version.has_value() && max_version->first >= 1) {
    auto* const managed = Export<dlpack::ManagedVersioned>(leaf);
    managed->version = {1, 0};
    managed->flags = leaf.writable() ? 0 : dlpack::kReadOnly;
    return Capsule(managed, "dltensor_versioned");
  }
  if (!leaf.writable()) {
    throw py::buffer_error(
        "others read this tensor too, and DLPack before 1.0 cannot say that it is read-only; copy "
        "it first, for instance by numpy().copy()");
  }
  return Capsule(Export<dlpack::Managed>(leaf), "dltensor");
}

// --- Strings -------------------------------------------------------------------

py::list Strings(const Leaf& leaf) {
  if (leaf.dtype() != kString) throw py::type_error("this tensor has numbers");
  const Tensor& values = leaf.values();
  py::list strings(leaf.count());
  for (int64_t i = 0; i < leaf.count(); ++i) {
    const std::string_view value = values.string(i);
    strings[i] = py::bytes(value.data(), value.size());
  }
  return strings;
}

}  // namespace

Held::~Held() {
  // A child of a fork owns neither the slot nor the threads of its pool.
  if (!made_here_) static_cast<void>(new Element(std::move(element_)));
}

py::tuple LeavesOf(Element element, bool writable) {
  const auto held = std::make_shared<Held>(std::move(element), writable);
  const Element& of = held->element();
  py::tuple leaves(of.size());
  for (size_t i = 0; i < of.size(); ++i) {
    const Tensor tensor = of.tensor(i);
    if (!tensor.present()) {
      leaves[i] = py::none();
      continue;
    }
    // The parts beside the values are int64 vectors.
    const auto part = [&](absl::Span<const int64_t> values) {
      const int64_t dims[] = {static_cast<int64_t>(values.size())};
      return py::cast(Leaf(held, Tensor(kInt64, dims, values.data())));
    };
    switch (tensor.kind()) {
      case TensorSpec::Kind::kDense:
        leaves[i] = py::cast(Leaf(held, tensor));
        break;
      case TensorSpec::Kind::kRagged: {
        py::list parts;
        parts.append(py::cast(Leaf(held, tensor)));
        for (int p = 0; p < tensor.ragged_rank(); ++p) parts.append(part(tensor.row_splits(p)));
        leaves[i] = py::tuple(parts);
        break;
      }
      case TensorSpec::Kind::kSparse:
        leaves[i] =
            py::make_tuple(Leaf(held, tensor), part(tensor.indices()), part(tensor.dense_shape()));
        break;
    }
  }
  return leaves;
}

void BindTensors(py::module_& module) {
  py::class_<Leaf>(
      module, "Tensor",
      "A tensor of an element, on the element's own memory; only iterators make them. Holding one "
      "holds its slot. NumPy's operators work on it, and NumPy, the buffer protocol and DLPack "
      "read "
      "it without a copy.",
      py::custom_type_setup([](PyHeapTypeObject* type) {
        type->ht_type.tp_as_buffer = &type->as_buffer;
        type->as_buffer.bf_getbuffer = FillBuffer;
        type->as_buffer.bf_releasebuffer = ReleaseBuffer;
      }))
      .def_property_readonly(
          "shape",
          [](const Leaf& leaf) {
            py::tuple dims(leaf.dims().size());
            for (size_t i = 0; i < leaf.dims().size(); ++i) dims[i] = py::int_(leaf.dims()[i]);
            return dims;
          },
          "A tuple of integers.")
      .def_property_readonly("dtype", &Leaf::dtype, "The DType of the values.")
      .def_property_readonly("nbytes", &Leaf::bytes, "Bytes that the values take.")
      .def_property_readonly("writable", &Leaf::writable,
                             "False where others read the same element.")
      .def("_strings", &Strings)
      .def("__dlpack__", &ToDlpack, py::kw_only(), py::arg("stream") = py::none(),
           py::arg("max_version") = py::none(), py::arg("dl_device") = py::none(),
           py::arg("copy") = py::none())
      .def("__dlpack_device__",
           [](const Leaf&) { return py::make_tuple(static_cast<int32_t>(dlpack::kCpu), 0); });
}

}  // namespace penstock::python
