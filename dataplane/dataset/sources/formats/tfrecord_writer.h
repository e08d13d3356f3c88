// SPDX-License-Identifier: Apache-2.0
// Writes TFRecord files, for caches, examples, tools and tests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "control/env/disk.h"

namespace penstock {

// The bytes of one record as stored in a file.
std::string TFRecordBytes(std::string_view data);

// For one thread at a time. The file is complete once Finish() has returned OK.
class TFRecordWriter {
 public:
  // Creates the file, or truncates it.
  static absl::StatusOr<std::unique_ptr<TFRecordWriter>> Create(const std::string& name);
  explicit TFRecordWriter(std::unique_ptr<DiskFile> file) : file_(std::move(file)) {}

  absl::Status Write(std::string_view data);
  // Writes the buffered bytes and syncs the file. REQUIRES: Write() is not called afterwards.
  absl::Status Finish();

  int64_t bytes() const { return bytes_; }  // of all records
  DiskFile& file() { return *file_; }

 private:
  absl::Status Flush();

  const std::unique_ptr<DiskFile> file_;
  std::string buffer_;
  int64_t bytes_ = 0;
};

}  // namespace penstock
