// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "control/env/files.h"

namespace penstock {

// Reads the bytes of an open file, in any order. If the file can be mapped, copies them from the
// mapping.
class FileBytes {
 public:
  explicit FileBytes(std::unique_ptr<File> file) : file_(std::move(file)), mapped_(file_->Map()) {}

  const std::string& name() const { return file_->name(); }
  int64_t size() const { return file_->size(); }
  // Returns `bytes` bytes from `offset` without a copy, valid as long as this object. nullopt if
  // the file is not mapped, or ends before those bytes. If another process writes to the file
  // meanwhile, the bytes change.
  std::optional<absl::Span<const std::byte>> Find(int64_t offset, int64_t bytes) const;
  // Fills all of `into`, from `offset`. DataLoss if the file ends too early.
  absl::Status Read(int64_t offset, absl::Span<std::byte> into) const;
  // Does the same as Read(), for a caller that will probably read the following bytes next.
  absl::Status ReadOn(int64_t offset, absl::Span<std::byte> into);

 private:
  std::unique_ptr<File> file_;
  std::optional<absl::Span<const char>> mapped_;
  std::optional<int64_t> last_offset_;  // of ReadOn()
};

}  // namespace penstock
