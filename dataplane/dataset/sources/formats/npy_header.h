// SPDX-License-Identifier: Apache-2.0
// The header of an array that NumPy saved (numpy.lib.format, versions 1 to 3).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/dataset/sources/formats/file_bytes.h"
#include "penstock/dtype.h"
#include "penstock/spec.h"

namespace penstock {

struct NpyHeader {
  DType dtype = DType::kInvalid;
  std::vector<int64_t> dims;
  int64_t data_offset = 0;  // from the start of the file to the values
  int64_t data_bytes = 0;   // of all values; fits in int64

  // Returns for example "float32 [7,2,3]".
  std::string ToString() const;
};

// The maximum size of a header in bytes, from the start of the file.
inline constexpr int64_t kMaxNpyHeaderBytes = 64 << 10;

// Parses the header. `front` is the first kMaxNpyHeaderBytes of the file, or the whole file. `file`
// is the name for messages. DataLoss if there is no valid header. Unimplemented for values in
// Fortran order (of two or more dimensions), for big-endian values, and for dtypes that no tensor
// has.
absl::StatusOr<NpyHeader> ParseNpyHeader(std::string_view front, std::string_view file);

// Reads the header of an .npy file. DataLoss also if the file is too short for the values.
absl::StatusOr<NpyHeader> ReadNpyHeader(const FileBytes& file);

// Checks that `spec` admits the array or, with `rows`, one row of its first dimension.
// InvalidArgument names `file`.
absl::Status CheckNpy(const NpyHeader& header, const TensorSpec& spec, bool rows,
                      std::string_view file);

}  // namespace penstock
