// SPDX-License-Identifier: Apache-2.0
// The records of one file, from start to end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "dataplane/dataset/sources/formats/buffered_file.h"

namespace penstock {

class RecordReader {
 public:
  virtual ~RecordReader() = default;

  // Returns the next record, valid until the next call; nullopt at the end. An error takes the
  // place of one record. Reading continues after it where possible; otherwise the file ends there.
  virtual absl::StatusOr<std::optional<std::string_view>> Next() = 0;
  // Skips the next record without examining its contents. Returns false at the end.
  virtual absl::StatusOr<bool> Skip() = 0;
  // Returns the position in the file of the next record.
  virtual int64_t position() const = 0;
};

// Makes a reader that starts at the file's position, which is 0 or a value that a reader's
// position() returned.
using MakeRecordReader = std::function<std::unique_ptr<RecordReader>(BufferedFile file)>;

// Reads TFRecord files. A record consists of a length (uint64), the masked CRC-32C of the length,
// the data, and the masked CRC-32C of the data. All numbers are little endian. DataLoss names the
// file and the offset.
std::unique_ptr<RecordReader> ReadTFRecords(BufferedFile file);

// Reads lines, without \n or \r\n. The last line needs no line end.
std::unique_ptr<RecordReader> ReadLines(BufferedFile file);

// Reads records of `record_bytes` bytes between a header and a footer. Returns DataLoss in place of
// bytes that do not fill a record.
struct FixedLength {
  int64_t record_bytes;  // > 0
  int64_t header_bytes = 0;
  int64_t footer_bytes = 0;
};
std::unique_ptr<RecordReader> ReadFixedLength(BufferedFile file, FixedLength format);

}  // namespace penstock
