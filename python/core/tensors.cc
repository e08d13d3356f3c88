// SPDX-License-Identifier: Apache-2.0
#include "python/core/tensors.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "python/core/casters.h"
#include "python/core/dlpack.h"
#include "python/core/errors.h"

namespace penstock::python {

namespace py = pybind11;

namespace {

// Returns the code of the struct module; a bfloat16 is its 16 bits. nullptr for strings.
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
  using Dims = absl::InlinedVector<int64_t, 4>;

  Leaf(std::shared_ptr<Held> held, Tensor tensor, bool on_device = false)
      : held_(std::move(held)),
        tensor_(tensor),
        on_device_(on_device),
        dims_(tensor.dims().begin(), tensor.dims().end()) {
    for (int64_t dim : dims_) count_ *= dim;
  }

  // Returns the values; throws TypeError if they are on a device. dims() has the dimensions.
  const Tensor& values() const {
    if (on_device_) {
      throw py::type_error(absl::StrCat("this tensor is on ", device(),
                                        ", where NumPy and buffers cannot read it; use "
                                        "torch.from_dlpack(), cupy.from_dlpack() or the like"));
    }
    return anywhere();
  }
  // Returns the values, in host memory or on a device.
  const Tensor& anywhere() const {
    if (!held_->usable()) {
      Raise(absl::FailedPreconditionError(
          "this tensor belongs to the process that this one was forked from; before forking, copy "
          "what the child needs"));
    }
    return tensor_;
  }
  bool on_device() const { return on_device_; }
  std::string device() const {
    return on_device_ ? absl::StrCat("GPU:", held_->on_device().device()) : "CPU:0";
  }
  dlpack::Device dlpack_device() const {
    if (!on_device_) return {dlpack::kCpu, 0};
    return {dlpack::kCuda, held_->on_device().device()};
  }
  DType dtype() const { return tensor_.dtype(); }
  const Dims& dims() const { return dims_; }
  Dims strides() const {  // in values
    Dims strides(dims_.size());
    int64_t stride = 1;
    for (size_t i = dims_.size(); i-- > 0; stride *= std::max<int64_t>(dims_[i], 1)) {
      strides[i] = stride;
    }
    return strides;
  }
  bool writable() const { return held_->writable(); }
  int64_t count() const { return count_; }
  size_t bytes() const { return count_ * SizeOf(tensor_.dtype()); }  // 0 for strings
  const std::shared_ptr<Held>& held() const { return held_; }

 private:
  std::shared_ptr<Held> held_;
  Tensor tensor_;  // its dims may point to freed memory
  bool on_device_;
  Dims dims_;
  int64_t count_ = 1;
};

py::tuple ShapeOf(const Leaf& leaf) {
  py::tuple dims(leaf.dims().size());
  for (size_t i = 0; i < leaf.dims().size(); ++i) dims[i] = py::int_(leaf.dims()[i]);
  return dims;
}

// --- Buffers -------------------------------------------------------------------

// The arrays to which a Py_buffer points, in addition to the values.
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
                                             ? "a tensor of strings has no buffer; use numpy()"
                                             : "this tensor has other readers, so it is read-only");
      return -1;
    }
    const auto item = static_cast<int64_t>(SizeOf(leaf.dtype()));
    std::unique_ptr<BufferShape> shape;  // only if requested
    if ((flags & PyBUF_ND) != 0) {
      shape = std::make_unique<BufferShape>();
      shape->dims.assign(leaf.dims().begin(), leaf.dims().end());
      for (int64_t stride : leaf.strides()) shape->strides.push_back(stride * item);
    }
    view->buf = const_cast<void*>(values.raw());
    view->len = static_cast<Py_ssize_t>(leaf.bytes());
    view->readonly = leaf.writable() ? 0 : 1;
    view->itemsize = item;
    view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format) : nullptr;
    view->ndim = static_cast<int>(leaf.dims().size());
    view->shape = shape != nullptr ? shape->dims.data() : nullptr;
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

// Owns the memory of a capsule's array until the consumer calls the deleter, on any thread.
template <class M>
struct Exported {
  Leaf leaf;
  Leaf::Dims strides = leaf.strides();
  M managed{};
};

template <class M>
M* Export(const Leaf& leaf) {
  auto* exported = new Exported<M>{.leaf = leaf};
  exported->managed.array = {
      .data = const_cast<void*>(leaf.anywhere().raw()),
      .device = leaf.dlpack_device(),
      .ndim = static_cast<int32_t>(leaf.dims().size()),
      .dtype = DlpackTypeOf(leaf.dtype()),
      .shape = const_cast<int64_t*>(exported->leaf.dims().data()),
      .strides = exported->strides.data(),
      .byte_offset = 0,
  };
  exported->managed.context = exported;
  exported->managed.deleter = [](M* self) { delete static_cast<Exported<M>*>(self->context); };
  return &exported->managed;
}

// If a capsule was not consumed, it releases its memory itself.
template <class M>
py::capsule Capsule(M* managed, const char* name) {
  return py::reinterpret_steal<py::capsule>(PyCapsule_New(managed, name, [](PyObject* capsule) {
    const char* const now = PyCapsule_GetName(capsule);
    if (now == nullptr || std::string_view(now).starts_with("used_")) return;
    auto* const left = static_cast<M*>(PyCapsule_GetPointer(capsule, now));
    left->deleter(left);
  }));
}

// Stream numbers with a fixed meaning.
constexpr int64_t kLegacyStream = 1;
constexpr int64_t kNoStream = -1;  // the consumer orders its work itself

// Makes the values ready for a consumer on `stream`, numbered as in DLPack.
void MakeReady(const Leaf& leaf, const py::object& stream) {
  if (!leaf.on_device()) {
    if (!stream.is_none())
      throw py::buffer_error("this tensor is in host memory; stream must be None");
    return;
  }
  const int64_t number = stream.is_none() ? kLegacyStream : stream.cast<int64_t>();
  if (number == kNoStream) return leaf.held()->ReadyByOthers();
  if (number <= 0) {
    throw py::buffer_error(
        absl::StrCat("stream ", number,
                     " is not a CUDA stream; use 1 for the default stream, 2 for the thread's "
                     "default stream, -1 for none, or a stream handle"));
  }
  RaiseIfError(leaf.held()->ReadyOn(reinterpret_cast<void*>(
      static_cast<uintptr_t>(number))));  // NOLINT(performance-no-int-to-ptr)
}

py::capsule ToDlpack(const Leaf& leaf, py::object stream,
                     std::optional<std::pair<uint32_t, uint32_t>> max_version,
                     std::optional<std::pair<int32_t, int32_t>> device, std::optional<bool> copy) {
  if (FormatOf(leaf.dtype()) == nullptr) {
    throw py::buffer_error("DLPack has no strings; use numpy()");
  }
  const dlpack::Device its = leaf.dlpack_device();
  if (device.has_value() && *device != std::pair(its.type, its.id)) {
    throw py::buffer_error(absl::StrCat("this tensor is on ", leaf.device(),
                                        ", and is not copied to other devices implicitly"));
  }
  if (copy.value_or(false)) {
    throw py::buffer_error(
        leaf.on_device()
            ? "copy=True is not supported; import the tensor without it, then copy"
            : "copy=True is not supported; copy first, for example with numpy().copy()");
  }
  MakeReady(leaf, stream);
  if (max_version.has_value() && max_version->first >= 1) {
    auto* const managed = Export<dlpack::ManagedVersioned>(leaf);
    managed->version = {1, 0};
    managed->flags = leaf.writable() ? 0 : dlpack::kReadOnly;
    return Capsule(managed, "dltensor_versioned");
  }
  if (!leaf.writable()) {
    throw py::buffer_error(
        "this tensor has other readers, and DLPack before 1.0 cannot mark it as read-only; copy it "
        "first, for example with numpy().copy()");
  }
  return Capsule(Export<dlpack::Managed>(leaf), "dltensor");
}

// CUDA's array interface, version 3. Throws AttributeError where there is none, so that hasattr()
// is false.
py::dict CudaArrayInterface(const Leaf& leaf) {
  const char* const format = FormatOf(leaf.dtype());
  if (!leaf.on_device() || format == nullptr || leaf.dtype() == kBFloat16) {
    throw py::attribute_error(absl::StrCat(
        leaf.on_device() ? "CUDA's array interface has no bfloat16; use DLPack"
                         : "this tensor is in host memory, and has no __cuda_array_interface__"));
  }
  const dlpack::DataType type = DlpackTypeOf(leaf.dtype());
  const char kind = type.code == dlpack::kBool      ? 'b'
                    : type.code == dlpack::kInt     ? 'i'
                    : type.code == dlpack::kUInt    ? 'u'
                    : type.code == dlpack::kComplex ? 'c'
                                                    : 'f';
  MakeReady(leaf, py::int_(kLegacyStream));
  py::dict interface;
  interface["shape"] = ShapeOf(leaf);
  interface["typestr"] =
      absl::StrCat(type.bits == 8 ? "|" : "<", std::string(1, kind), type.bits / 8);
  interface["data"] =
      py::make_tuple(reinterpret_cast<uintptr_t>(leaf.anywhere().raw()), !leaf.writable());
  interface["strides"] = py::none();
  interface["version"] = 3;
  interface["stream"] = kLegacyStream;  // the values are ready on it
  return interface;
}

// Exports the tensor to a consumer that never writes. This includes elements with other readers,
// which DLPack before 1.0 cannot mark as read-only.
py::capsule ToReader(const Leaf& leaf) {
  if (FormatOf(leaf.dtype()) == nullptr) {
    throw py::buffer_error("DLPack has no strings; use numpy()");
  }
  return Capsule(Export<dlpack::Managed>(leaf), "dltensor");
}

// Returns the rows from `begin` to `end` as a tensor of the same element.
Leaf RowsOf(const Leaf& leaf, int64_t begin, int64_t end) {
  const Tensor& values = leaf.values();
  if (FormatOf(leaf.dtype()) == nullptr)
    throw py::type_error("a tensor of strings cannot be divided into rows");
  if (leaf.dims().empty() || begin < 0 || begin > end || end > leaf.dims()[0]) {
    throw py::index_error(absl::StrCat("rows ", begin, " to ", end,
                                       " are outside the tensor, whose number of rows is ",
                                       leaf.dims().empty() ? 0 : leaf.dims()[0]));
  }
  Leaf::Dims dims = leaf.dims();
  dims[0] = end - begin;
  const auto row_bytes = leaf.strides()[0] * static_cast<int64_t>(SizeOf(leaf.dtype()));
  const auto* const first = static_cast<const std::byte*>(values.raw()) + begin * row_bytes;
  return {leaf.held(), Tensor(leaf.dtype(), dims, first)};
}

// --- NumPy ---------------------------------------------------------------------

// NumPy's objects for a dtype. They and NumpyArray() are kept until the process ends, because
// looking them up costs more than an array does.
struct NumpyType {
  PyObject* scalar = nullptr;  // numpy.int64
  PyObject* dtype = nullptr;   // numpy.dtype(numpy.int64)
};
const NumpyType& NumpyTypeOf(DType dtype) {  // REQUIRES: the GIL is held
  static std::array<NumpyType, 256> known;
  NumpyType& type = known[static_cast<uint8_t>(dtype)];
  if (type.dtype == nullptr) {
    py::object scalar = ToPython(dtype).attr("as_numpy_dtype");
    type.dtype = py::module_::import("numpy").attr("dtype")(scalar).release().ptr();
    type.scalar = scalar.release().ptr();
  }
  return type;
}
PyObject* NumpyArray() {  // REQUIRES: the GIL is held
  static PyObject* type = nullptr;
  if (type == nullptr)
    type = py::object(py::module_::import("numpy").attr("ndarray")).release().ptr();
  return type;
}

// Returns an array on the memory of `self`, a Leaf, which the array keeps alive; None for strings.
py::object ArrayOn(py::handle self, const Leaf& leaf) {
  if (FormatOf(leaf.dtype()) == nullptr) return py::none();
  const py::tuple shape = ShapeOf(leaf);
  PyObject* const arguments[] = {shape.ptr(), NumpyTypeOf(leaf.dtype()).dtype, self.ptr()};
  PyObject* const array = PyObject_Vectorcall(NumpyArray(), arguments, 3, nullptr);
  if (array == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(array);
}

// Returns a tensor without dimensions as a NumPy scalar; null if only an array can hold it.
py::object ScalarOf(const Tensor& tensor) {
  py::object value;
  switch (tensor.dtype()) {
    case kBool:
      value = py::bool_(tensor.scalar<bool>());
      break;
    case kInt8:
      value = py::int_(tensor.scalar<int8_t>());
      break;
    case kInt16:
      value = py::int_(tensor.scalar<int16_t>());
      break;
    case kInt32:
      value = py::int_(tensor.scalar<int32_t>());
      break;
    case kInt64:
      value = py::int_(tensor.scalar<int64_t>());
      break;
    case kUInt8:
      value = py::int_(tensor.scalar<uint8_t>());
      break;
    case kUInt16:
      value = py::int_(tensor.scalar<uint16_t>());
      break;
    case kUInt32:
      value = py::int_(tensor.scalar<uint32_t>());
      break;
    case kUInt64:
      value = py::int_(tensor.scalar<uint64_t>());
      break;
    case kFloat32:
      value = py::float_(tensor.scalar<float>());
      break;
    case kFloat64:
      value = py::float_(tensor.scalar<double>());
      break;
    default:
      return {};
  }
  PyObject* const scalar = PyObject_CallOneArg(NumpyTypeOf(tensor.dtype()).scalar, value.ptr());
  if (scalar == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(scalar);
}

// --- Strings -------------------------------------------------------------------

py::list Strings(const Leaf& leaf) {
  if (leaf.dtype() != kString) throw py::type_error("this tensor contains numbers, not strings");
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
  // A forked child owns neither the slot nor the threads of its pool, nor the device.
  if (!in_creator_) {
    static_cast<void>(new Element(std::move(element_)));
    static_cast<void>(new DeviceElement(std::move(on_device_)));
  } else if (unknown_readers_) {
    // The default stream waits for all other streams that do not opt out. If ReadBy() fails, the
    // place on the device is not used again.
    on_device_.ReadBy(reinterpret_cast<void*>(kLegacyStream)).IgnoreError();
  }
}

absl::Status Held::ReadyOn(void* stream) {
  std::lock_guard lock(mu_);
  return on_device_.ReadyOn(stream);
}

void Held::ReadyByOthers() {
  std::lock_guard lock(mu_);
  unknown_readers_ = true;
}

namespace {

// Returns the leaves of an Element or a DeviceElement that `held` owns.
template <class E>
py::tuple LeavesIn(const std::shared_ptr<Held>& held, const E& of) {
  constexpr bool kOnDevice = std::is_same_v<E, DeviceElement>;
  py::tuple leaves(of.size());
  for (size_t i = 0; i < of.size(); ++i) {
    const Tensor tensor = of.tensor(i);
    if (!tensor.present()) {
      leaves[i] = py::none();
      continue;
    }
    // The parts other than the values are int64 vectors.
    const auto part = [&](absl::Span<const int64_t> values) {
      const int64_t dims[] = {static_cast<int64_t>(values.size())};
      return py::cast(Leaf(held, Tensor(kInt64, dims, values.data())));
    };
    const Leaf values(held, tensor, kOnDevice && tensor.dtype() != kString);
    switch (tensor.kind()) {
      case TensorSpec::Kind::kDense:
        leaves[i] = py::cast(values);
        break;
      case TensorSpec::Kind::kRagged: {
        py::list parts;
        parts.append(py::cast(values));
        for (int p = 0; p < tensor.ragged_rank(); ++p) parts.append(part(tensor.row_splits(p)));
        leaves[i] = py::tuple(parts);
        break;
      }
      case TensorSpec::Kind::kSparse:
        leaves[i] = py::make_tuple(values, part(tensor.indices()), part(tensor.dense_shape()));
        break;
    }
  }
  return leaves;
}

}  // namespace

py::tuple LeavesOf(Element element, bool writable) {
  const auto held = std::make_shared<Held>(std::move(element), writable);
  return LeavesIn(held, held->element());
}

py::tuple LeavesOf(DeviceElement element) {
  const auto held = std::make_shared<Held>(std::move(element));
  return LeavesIn(held, held->on_device());
}

py::tuple ArraysOf(Element element, bool writable) {
  py::tuple arrays(element.size());
  std::shared_ptr<Held> held;  // made for the first array; scalars are copies
  for (size_t i = 0; i < arrays.size(); ++i) {
    const Tensor tensor = held != nullptr ? held->element().tensor(i) : element.tensor(i);
    if (!tensor.present()) {
      arrays[i] = py::none();
      continue;
    }
    const bool scalar = tensor.dims().empty();
    if (py::object value = scalar ? ScalarOf(tensor) : py::object()) {
      arrays[i] = std::move(value);
      continue;
    }
    if (held == nullptr) held = std::make_shared<Held>(std::move(element), writable);
    const py::object leaf = py::cast(Leaf(held, held->element().tensor(i)));
    const py::object array = ArrayOn(leaf, leaf.cast<const Leaf&>());
    arrays[i] = scalar ? py::object(array[py::tuple()]) : array;
  }
  return arrays;
}

void BindTensors(py::module_& module) {
  py::class_<Leaf>(
      module, "Tensor",
      "A tensor of an element, on the element's own memory; only iterators create tensors. A "
      "tensor keeps its slot. NumPy's operators work on it, and NumPy, the buffer protocol and "
      "DLPack "
      "read it without a copy.",
      py::custom_type_setup([](PyHeapTypeObject* type) {
        type->ht_type.tp_as_buffer = &type->as_buffer;
        type->as_buffer.bf_getbuffer = FillBuffer;
        type->as_buffer.bf_releasebuffer = ReleaseBuffer;
      }))
      .def_property_readonly("shape", &ShapeOf, "A tuple of integers.")
      .def_property_readonly("dtype", &Leaf::dtype, "The DType of the values.")
      .def_property_readonly("nbytes", &Leaf::bytes, "The size of the values in bytes.")
      .def_property_readonly("device", &Leaf::device, "\"CPU:0\" or \"GPU:i\".")
      .def_property_readonly("__cuda_array_interface__", &CudaArrayInterface)
      .def_property_readonly("writable", &Leaf::writable, "False if others read the same element.")
      .def("_array", [](const py::object& self) { return ArrayOn(self, self.cast<const Leaf&>()); })
      .def("_strings", &Strings)
      .def("__dlpack__", &ToDlpack, py::kw_only(), py::arg("stream") = py::none(),
           py::arg("max_version") = py::none(), py::arg("dl_device") = py::none(),
           py::arg("copy") = py::none())
      .def(
          "_to_reader", &ToReader,
          "Same as __dlpack__() before DLPack 1.0, even if others read the element: for a consumer "
          "that never writes.")
      .def("_rows", &RowsOf, py::arg("begin"), py::arg("end"),
           "Returns the rows from `begin` to `end`, as a tensor of the same element.")
      .def("__dlpack_device__", [](const Leaf& leaf) {
        const dlpack::Device device = leaf.dlpack_device();
        return py::make_tuple(device.type, device.id);
      });
}

}  // namespace penstock::python
