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
#include "dataplane/dataset/sources/npy_header.h"
#include "penstock/spec.h"

namespace penstock {

// One thread.
class ArrayFile {
 public:
  // With a leaf as `spec` an .npy file, with a dict the members of an .npz file.
  // `rows`: the spec is that of a row of each array's first dimension, of which
  // all have as many. InvalidArgument for arrays that are not so.
  static absl::StatusOr<std::unique_ptr<ArrayFile>> Open(std::unique_ptr<File> file,
                                                         const Spec& spec, bool rows);
  virtual ~ArrayFile() = default;

  const std::vector<NpyHeader>& headers() const { return headers_; }  // of each leaf
  // Fills `into` with the values of leaf `i` from byte `offset` of them on.
  // REQUIRES: they lie inside. DataLoss for damage, and for a bool that is neither.
  absl::Status Read(size_t i, int64_t offset, absl::Span<std::byte> into);
  // As many bytes of them where they lie, for as long as this does; nullopt where
  // only Read() gets at them as a tensor needs them.
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
