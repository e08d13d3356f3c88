// SPDX-License-Identifier: Apache-2.0
// Records of one file, from front to back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "control/env/files.h"

namespace penstock {

class RecordReader {
 public:
  virtual ~RecordReader() = default;

  // The next record, valid until the next call; nullopt at the end. An error
  // takes the place of a record; what follows is read on where that is
  // possible, else the file ends there.
  virtual absl::StatusOr<std::optional<std::string_view>> Next() = 0;
  // Passes over the next record without examining its contents; false at the end.
  virtual absl::StatusOr<bool> Skip() = 0;
  // Where in the file the next record begins.
  virtual int64_t position() const = 0;
};

// Opens a file at `position`, which is 0 or was a reader's position().
using MakeRecordReader = std::unique_ptr<RecordReader> (*)(std::unique_ptr<File> file,
                                                           int64_t position);

// TFRecord: length (uint64), its masked CRC-32C, data, their masked CRC-32C;
// little endian. DataLoss names file and offset.
std::unique_ptr<RecordReader> ReadTFRecords(std::unique_ptr<File> file, int64_t position);

// Lines, without \n or \r\n. A last line without an end is one too.
std::unique_ptr<RecordReader> ReadLines(std::unique_ptr<File> file, int64_t position);

}  // namespace penstock
