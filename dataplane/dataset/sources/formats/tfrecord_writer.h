// SPDX-License-Identifier: Apache-2.0
// Writes TFRecord files, for examples, tools and tests.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace penstock {

// The bytes of one record as stored in a file.
std::string TFRecordBytes(std::string_view data);

// For one thread at a time. The file is complete once Close() has returned OK.
class TFRecordWriter {
 public:
  // Creates the file, or truncates it.
  static absl::StatusOr<std::unique_ptr<TFRecordWriter>> Create(const std::string& name);

  absl::Status Write(std::string_view data);
  // Writes the buffered bytes. REQUIRES: no Write() after it.
  absl::Status Close();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  TFRecordWriter(std::string name, std::FILE* file) : name_(std::move(name)), file_(file) {}

  std::string name_;
  std::unique_ptr<std::FILE, CloseFile> file_;
};

}  // namespace penstock
