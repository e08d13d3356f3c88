// SPDX-License-Identifier: Apache-2.0
// The header of an array that NumPy saved (numpy.lib.format, versions 1 to 3).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/dataset/sources/file_bytes.h"
#include "penstock/dtype.h"
#include "penstock/spec.h"

namespace penstock {

struct NpyHeader {
  DType dtype = DType::kInvalid;
  std::vector<int64_t> dims;
  int64_t data_offset = 0;  // bytes from the file's front to the values
  int64_t data_bytes = 0;   // of all values; they fit int64

  // "float32 [7,2,3]"
  std::string ToString() const;
};

// As many bytes of a file's front as a header may have.
inline constexpr int64_t kMaxNpyHeaderBytes = 64 << 10;

// `front`: the first kMaxNpyHeaderBytes of the file, or all of it. `file` is its
// name in messages. DataLoss for what is no header; Unimplemented for values in
// Fortran order (of two dimensions and more), big-endian ones, and dtypes that
// no tensor has.
absl::StatusOr<NpyHeader> ParseNpyHeader(std::string_view front, std::string_view file);

// The header of an .npy file whose values are all there; else DataLoss.
absl::StatusOr<NpyHeader> ReadNpyHeader(const FileBytes& file);

// OK if the array, or (`rows`) a row of its first dimension, is what `spec`
// admits; InvalidArgument names `file`.
absl::Status CheckNpy(const NpyHeader& header, const TensorSpec& spec, bool rows,
                      std::string_view file);

}  // namespace penstock
