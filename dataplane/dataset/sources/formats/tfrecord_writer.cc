// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/formats/tfrecord_writer.h"

#include <cstring>

#include "dataplane/element/crc32c.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// Large enough that the overhead of a system call is negligible.
constexpr size_t kBufferBytes = 64 << 10;

template <class T>
std::string RawBytes(T value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

}  // namespace

std::string TFRecordBytes(std::string_view data) {
  std::string bytes = RawBytes<uint64_t>(data.size());
  bytes += RawBytes(MaskedCrc32c(bytes));
  bytes += data;
  bytes += RawBytes(MaskedCrc32c(data));
  return bytes;
}

absl::StatusOr<std::unique_ptr<TFRecordWriter>> TFRecordWriter::Create(const std::string& name) {
  ASSIGN_OR_RETURN(std::unique_ptr<DiskFile> file,
                   LocalDisk().Create(name, Disk::Readers::kByUmask));
  return std::make_unique<TFRecordWriter>(std::move(file));
}

absl::Status TFRecordWriter::Write(std::string_view data) {
  const std::string record = TFRecordBytes(data);
  bytes_ += static_cast<int64_t>(record.size());
  buffer_ += record;
  return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
}

absl::Status TFRecordWriter::Flush() {
  RETURN_IF_ERROR(file_->Append(buffer_));
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status TFRecordWriter::Finish() {
  RETURN_IF_ERROR(Flush());
  return file_->Sync();
}

}  // namespace penstock
