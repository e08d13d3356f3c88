// SPDX-License-Identifier: Apache-2.0
// The arrays of one .npy or .npz file, in the order of a spec's leaves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/env/files.h"
#include "dataplane/dataset/sources/formats/npy_header.h"
#include "penstock/spec.h"

namespace penstock {

// Used on one thread.
class ArrayFile {
 public:
  // Opens an .npy file if `spec` is a leaf. If `spec` is a dict, opens an .npz file and the members
  // that `spec` names. With `rows`, `spec` is the spec of one row of each array's first dimension,
  // and all arrays must have the same number of rows. InvalidArgument if an array does not match.
  static absl::StatusOr<std::unique_ptr<ArrayFile>> Open(std::unique_ptr<File> file,
                                                         const Spec& spec, bool rows);
  virtual ~ArrayFile() = default;

  const std::vector<NpyHeader>& headers() const { return headers_; }  // one per leaf
  // Fills `into` with the values of leaf `i`, starting at byte `offset` of the values. REQUIRES:
  // the range is inside the values. DataLoss if the file is damaged, or if a bool is neither true
  // nor false.
  absl::Status Read(size_t i, int64_t offset, absl::Span<std::byte> into);
  // Returns `bytes` bytes of the values of leaf `i`, from `offset` on, without a copy, valid as
  // long as this object. nullopt if the values are not in memory as a tensor needs them, so that
  // only Read() can return them.
  std::optional<absl::Span<const std::byte>> Find(size_t i, int64_t offset, int64_t bytes) const;

 protected:
  virtual std::optional<absl::Span<const std::byte>> FindBytes(size_t, int64_t, int64_t) const {
    return std::nullopt;
  }
  virtual absl::Status ReadBytes(size_t i, int64_t offset, absl::Span<std::byte> into) = 0;
  virtual const std::string& name() const = 0;

  std::vector<NpyHeader> headers_;
};

}  // namespace penstock
