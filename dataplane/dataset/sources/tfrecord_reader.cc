// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/sources/buffered_file.h"
#include "dataplane/dataset/sources/crc32c.h"
#include "dataplane/dataset/sources/record_reader.h"
#include "penstock/status.h"

namespace penstock {
namespace {

constexpr int64_t kHeadBytes = 12;  // length and its CRC
constexpr int64_t kTailBytes = 4;   // CRC of the data

template <class T>
T Load(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

class TFRecordReader final : public RecordReader {
 public:
  TFRecordReader(std::unique_ptr<File> file, int64_t position) : file_(std::move(file), position) {}

  absl::StatusOr<std::optional<std::string_view>> Next() override {
    ASSIGN_OR_RETURN(const std::optional<int64_t> length, NextLength());
    if (!length.has_value()) return std::nullopt;
    absl::StatusOr<std::string_view> seen = file_.Peek(kHeadBytes + *length + kTailBytes);
    if (!seen.ok()) return GiveUp(seen.status());
    const int64_t begin = file_.position();
    file_.Advance(kHeadBytes + *length + kTailBytes);
    const std::string_view data = seen->substr(kHeadBytes, *length);
    if (Load<uint32_t>(*seen, kHeadBytes + *length) != MaskedCrc32c(data)) {
      return absl::DataLossError(
          absl::StrCat(file_.name(), ": the record at offset ", begin, " (", *length,
                       " bytes) is damaged: its data do not have the checksum stored behind them"));
    }
    return data;
  }

  absl::StatusOr<bool> Skip() override {
    ASSIGN_OR_RETURN(const std::optional<int64_t> length, NextLength());
    if (!length.has_value()) return false;
    file_.Advance(kHeadBytes + *length + kTailBytes);
    return true;
  }

  int64_t position() const override { return file_.position(); }

 private:
  // Of the record at the position, which lies wholly inside the file; nullopt
  // at the end.
  absl::StatusOr<std::optional<int64_t>> NextLength() {
    if (file_.left() <= 0) return std::nullopt;
    if (file_.left() < kHeadBytes + kTailBytes) return Truncated();
    const absl::StatusOr<std::string_view> head = file_.Peek(kHeadBytes);
    if (!head.ok()) return GiveUp(head.status());
    if (Load<uint32_t>(*head, 8) != MaskedCrc32c(head->substr(0, 8))) {
      return GiveUp(absl::DataLossError(absl::StrCat(
          file_.name(), ": the record at offset ", file_.position(),
          " is damaged: its length does not have the checksum stored behind it (or the file is "
          "compressed, or no TFRecord file)")));
    }
    const auto length = Load<uint64_t>(*head, 0);
    if (length > static_cast<uint64_t>(file_.left() - kHeadBytes - kTailBytes)) return Truncated();
    return static_cast<int64_t>(length);
  }

  absl::Status Truncated() {
    return GiveUp(absl::DataLossError(
        absl::StrCat(file_.name(), ": the record at offset ", file_.position(),
                     " is cut off: the file ends at ", file_.position() + file_.left())));
  }

  // Where the next record begins is not known: the file ends here. Reading that
  // was stopped stays where it is.
  absl::Status GiveUp(const absl::Status& why) {
    if (absl::IsCancelled(why)) return why;
    file_.Advance(file_.left());
    return Annotate(why, "the rest of the file is left out");
  }

  BufferedFile file_;
};

}  // namespace

std::unique_ptr<RecordReader> ReadTFRecords(std::unique_ptr<File> file, int64_t position) {
  return std::make_unique<TFRecordReader>(std::move(file), position);
}

}  // namespace penstock
