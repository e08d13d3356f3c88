// SPDX-License-Identifier: Apache-2.0
// Records of one file, from front to back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "dataplane/dataset/sources/buffered_file.h"

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

// Reads a file from its position on, which is 0 or was a reader's position().
using MakeRecordReader = std::function<std::unique_ptr<RecordReader>(BufferedFile file)>;

// TFRecord: length (uint64), its masked CRC-32C, data, their masked CRC-32C;
// little endian. DataLoss names file and offset.
std::unique_ptr<RecordReader> ReadTFRecords(BufferedFile file);

// Lines, without \n or \r\n. A last line without an end is one too.
std::unique_ptr<RecordReader> ReadLines(BufferedFile file);

// Records of `record_bytes` bytes between a header and a footer. DataLoss, in
// the place of what does not fill a record.
struct FixedLength {
  int64_t record_bytes;  // > 0
  int64_t header_bytes = 0;
  int64_t footer_bytes = 0;
};
std::unique_ptr<RecordReader> ReadFixedLength(BufferedFile file, FixedLength format);

}  // namespace penstock
