// SPDX-License-Identifier: Apache-2.0
// A file read from front to back in large pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "control/env/files.h"

namespace penstock {

class BufferedFile {
 public:
  BufferedFile(std::unique_ptr<File> file, int64_t position)
      : file_(std::move(file)), position_(position) {
    file_->WillReadInOrder(position);
  }

  const std::string& name() const { return file_->name(); }
  int64_t position() const { return position_; }
  int64_t left() const { return file_->size() - position_; }  // bytes

  // The next `bytes` bytes, or more; fewer only at the end of the file. Valid
  // until the next call.
  absl::StatusOr<std::string_view> Peek(size_t bytes);
  // Moves on by `bytes`, which may lie behind what was seen.
  void Advance(int64_t bytes) { position_ += bytes; }

 private:
  std::unique_ptr<File> file_;
  int64_t position_;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  int64_t buffered_from_ = 0;  // where in the file the buffer begins
  size_t buffered_ = 0;        // bytes
};

}  // namespace penstock
