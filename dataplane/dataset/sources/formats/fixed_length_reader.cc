// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/sources/formats/record_reader.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

class FixedLengthReader final : public RecordReader {
 public:
  FixedLengthReader(BufferedFile file, FixedLength format)
      : file_(std::move(file)), format_(format) {}

  absl::StatusOr<std::optional<std::string_view>> Next() override {
    ASSIGN_OR_RETURN(const bool more, FindNext());
    if (!more) return std::nullopt;
    absl::StatusOr<std::string_view> seen = file_.Peek(format_.record_bytes);
    if (!seen.ok()) return file_.GiveUp(seen.status());
    file_.Advance(format_.record_bytes);
    return seen->substr(0, format_.record_bytes);
  }

  absl::StatusOr<bool> Skip() override {
    ASSIGN_OR_RETURN(const bool more, FindNext());
    if (more) file_.Advance(format_.record_bytes);
    return more;
  }

  int64_t position() const override { return file_.position(); }

 private:
  // Returns whether a record follows. Skips the header, and at the end the footer.
  absl::StatusOr<bool> FindNext() {
    const bool at_front = file_.position() == 0;
    if (!at_front && file_.left() == 0) return false;
    const int64_t header = at_front ? format_.header_bytes : 0;
    const int64_t wanted = header + format_.record_bytes + format_.footer_bytes;
    int64_t there;  // available bytes, counted up to `wanted`
    if (const std::optional<int64_t> left = file_.left(); left.has_value()) {
      there = *left;
      const int64_t records = there - header - format_.footer_bytes;
      if (records < 0 || records % format_.record_bytes != 0) return DoesNotFit(there);
    } else {
      const absl::StatusOr<std::string_view> seen = file_.Peek(wanted);
      if (!seen.ok()) return file_.GiveUp(seen.status());
      there = static_cast<int64_t>(seen->size());
    }
    if (there >= wanted) {
      file_.Advance(header);
      return true;
    }
    if (there != header + format_.footer_bytes) return DoesNotFit(there);
    file_.AdvanceToEnd();
    return false;
  }

  // Skips the rest of the file: `left` bytes that are not whole records. Returns DataLoss.
  absl::Status DoesNotFit(int64_t left) {
    return file_.GiveUp(absl::DataLossError(absl::StrCat(
        file_.name(), " has ", file_.position() + left, " bytes; minus a header of ",
        format_.header_bytes, " bytes and a footer of ", format_.footer_bytes,
        " bytes, this is not a whole number of records of ", format_.record_bytes, " bytes")));
  }

  BufferedFile file_;
  FixedLength format_;
};

}  // namespace

std::unique_ptr<RecordReader> ReadFixedLength(BufferedFile file, FixedLength format) {
  return std::make_unique<FixedLengthReader>(std::move(file), format);
}

}  // namespace penstock
