// SPDX-License-Identifier: Apache-2.0
// Python values (prepared by penstock/values.py) as a Tensor.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/tensor.h"

namespace penstock::python {

// Owns the memory that its tensor() refers to.
class Values {
 public:
  // `data` is a contiguous buffer of that dtype and shape, or for strings a list of bytes in
  // row-major order.
  Values(DType dtype, std::vector<int64_t> dims, pybind11::object data);
  Tensor tensor() const;

 private:
  DType dtype_;
  std::vector<int64_t> dims_;
  pybind11::object data_;
  pybind11::buffer_info buffer_;
  std::vector<uint64_t> offsets_;  // of strings
  std::string bytes_;
};

}  // namespace penstock::python
