// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/sources/formats/record_reader.h"
#include "dataplane/element/crc32c.h"
#include "dataplane/memory/element_limit.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr int64_t kHeadBytes = 12;       // length and its CRC
constexpr int64_t kRecordTailBytes = 4;  // CRC of the data
// The limit for a record in a compressed file, since the size of such a file does not limit the
// size of its records. This is the maximum size of an element's string.
constexpr int64_t kMaxRecordBytes = int64_t{1} << 32;

template <class T>
T LoadAt(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

class TFRecordReader final : public RecordReader {
 public:
  explicit TFRecordReader(BufferedFile file) : file_(std::move(file)) {}

  absl::StatusOr<std::optional<std::string_view>> Next() override {
    ASSIGN_OR_RETURN(const std::optional<int64_t> length, NextLength());
    if (!length.has_value()) return std::nullopt;
    const int64_t bytes = kHeadBytes + *length + kRecordTailBytes;
    const int64_t begin = file_.position();
    if (bytes > MostElementBytes()) {
      file_.Advance(bytes);
      return AboveElementLimit(absl::StrCat(file_.name(), ": the record at offset ", begin, ", of ",
                                            *length, " bytes,"));
    }
    absl::StatusOr<std::string_view> seen = file_.Peek(bytes);
    if (!seen.ok()) return file_.GiveUp(seen.status());
    if (static_cast<int64_t>(seen->size()) < bytes) return Truncated();
    file_.Advance(bytes);
    const std::string_view data = seen->substr(kHeadBytes, *length);
    if (LoadAt<uint32_t>(*seen, kHeadBytes + *length) != MaskedCrc32c(data)) {
      return absl::DataLossError(
          absl::StrCat(file_.name(), ": the record at offset ", begin, " (", *length,
                       " bytes) is damaged: its data do not match the checksum stored after them"));
    }
    return data;
  }

  absl::StatusOr<bool> Skip() override {
    ASSIGN_OR_RETURN(const std::optional<int64_t> length, NextLength());
    if (!length.has_value()) return false;
    const int64_t bytes = kHeadBytes + *length + kRecordTailBytes;
    // In a compressed file, only reading shows whether the record is complete.
    if (!file_.left().has_value() && bytes <= MostElementBytes()) {
      const absl::StatusOr<std::string_view> seen = file_.Peek(bytes);
      if (!seen.ok()) return file_.GiveUp(seen.status());
      if (static_cast<int64_t>(seen->size()) < bytes) return Truncated();
    }
    file_.Advance(bytes);
    return true;
  }

  int64_t position() const override { return file_.position(); }

 private:
  // The length of the record at the position; nullopt at the end. If the file's size is known, the
  // record is inside the file.
  absl::StatusOr<std::optional<int64_t>> NextLength() {
    const absl::StatusOr<std::string_view> head = file_.Peek(kHeadBytes);
    if (!head.ok()) return file_.GiveUp(head.status());
    if (head->empty()) return std::nullopt;
    const int64_t most = file_.left().value_or(kMaxRecordBytes) - kHeadBytes - kRecordTailBytes;
    if (static_cast<int64_t>(head->size()) < kHeadBytes || most < 0) return Truncated();
    if (LoadAt<uint32_t>(*head, 8) != MaskedCrc32c(head->substr(0, 8))) {
      return file_.GiveUp(absl::DataLossError(absl::StrCat(
          file_.name(), ": the record at offset ", file_.position(),
          " is damaged: its length does not match the checksum stored after it (or the file is "
          "compressed, or not a TFRecord file)")));
    }
    const auto length = LoadAt<uint64_t>(*head, 0);
    if (length > static_cast<uint64_t>(most)) return Truncated();
    return static_cast<int64_t>(length);
  }

  absl::Status Truncated() {
    const std::optional<int64_t> left = file_.left();
    return file_.GiveUp(absl::DataLossError(absl::StrCat(
        file_.name(), ": the record at offset ", file_.position(), " is cut off: ",
        left.has_value()
            ? absl::StrCat("the file ends at ", file_.position() + *left)
            : absl::StrCat("it claims to have more than ", kMaxRecordBytes, " bytes"))));
  }

  BufferedFile file_;
};

}  // namespace

std::unique_ptr<RecordReader> ReadTFRecords(BufferedFile file) {
  return std::make_unique<TFRecordReader>(std::move(file));
}

}  // namespace penstock
