// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/formats/tfrecord_writer.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/element/crc32c.h"

namespace penstock {
namespace {

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
  std::FILE* file = std::fopen(name.c_str(), "wbe");
  if (file == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", name));
  return std::unique_ptr<TFRecordWriter>(new TFRecordWriter(name, file));
}

absl::Status TFRecordWriter::Write(std::string_view data) {
  const std::string bytes = TFRecordBytes(data);
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size())
    return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot write to ", name_));
}

absl::Status TFRecordWriter::Close() {
  if (std::fclose(file_.release()) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot write to ", name_));
}

}  // namespace penstock
