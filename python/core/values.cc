// SPDX-License-Identifier: Apache-2.0
#include "python/core/values.h"

#include <string_view>
#include <utility>

namespace penstock::python {

namespace py = pybind11;

Values::Values(DType dtype, std::vector<int64_t> dims, py::object data)
    : dtype_(dtype), dims_(std::move(dims)), data_(std::move(data)) {
  int64_t count = 1;
  for (int64_t dim : dims_) count *= dim;
  if (dtype_ == kString) {
    offsets_.push_back(0);
    for (py::handle item : data_) {
      bytes_ += std::string_view(py::reinterpret_borrow<py::bytes>(item));
      offsets_.push_back(bytes_.size());
    }
  } else {
    buffer_ = py::reinterpret_borrow<py::buffer>(data_).request();
  }
  const int64_t given =
      dtype_ == kString ? static_cast<int64_t>(offsets_.size()) - 1
                        : buffer_.size * buffer_.itemsize / static_cast<int64_t>(SizeOf(dtype_));
  if (given != count) throw py::value_error("the number of values does not match the shape");
}

Tensor Values::tensor() const {
  if (dtype_ == kString) return Tensor(kString, dims_, offsets_.data(), bytes_.data());
  return Tensor(dtype_, dims_, buffer_.ptr);
}

}  // namespace penstock::python
