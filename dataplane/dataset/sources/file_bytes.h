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

// An open file as bytes to copy from anywhere: from memory where it is mapped.
class FileBytes {
 public:
  explicit FileBytes(std::unique_ptr<File> file) : file_(std::move(file)), mapped_(file_->Map()) {}

  const std::string& name() const { return file_->name(); }
  int64_t size() const { return file_->size(); }
  // So many bytes from `offset`, where they lie, for as long as this does; nullopt
  // where they must be read. Whoever writes the file meanwhile changes them.
  std::optional<absl::Span<const std::byte>> Find(int64_t offset, int64_t bytes) const;
  // All of `into`, from `offset`. DataLoss if the file ends before.
  absl::Status Read(int64_t offset, absl::Span<std::byte> into) const;
  // The same, when what lies behind is likely to be read next.
  absl::Status ReadOn(int64_t offset, absl::Span<std::byte> into);

 private:
  std::unique_ptr<File> file_;
  std::optional<absl::Span<const char>> mapped_;
  std::optional<int64_t> last_offset_;  // of ReadOn()
};

}  // namespace penstock
