// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/record_source.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/sources/scalar_string.h"
#include "dataplane/dataset/state_bytes.h"
#include "penstock/status.h"

namespace penstock {

absl::Status RecordSource::Open(const std::string& name, int64_t position) {
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, site_.OpenFile(name));
  reader_ = make_reader_(std::move(file), position);
  return absl::OkStatus();
}

absl::StatusOr<bool> RecordSource::Advance() {
  RETURN_IF_ERROR(site_.CheckCancelled());
  if (reader_ != nullptr) return true;
  while (span_.begin == span_.end) {
    ASSIGN_OR_RETURN(const std::optional<Span64> next, cursor_.Next());
    if (!next.has_value()) return false;
    span_ = *next;
  }
  const absl::Status opened = Open(files_[span_.begin], 0);
  if (absl::IsCancelled(opened)) return opened;
  ++span_.begin;
  RETURN_IF_ERROR(opened);
  return true;
}

absl::StatusOr<std::optional<Element>> RecordSource::Next() {
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, Advance());
    if (!more) return std::nullopt;
    absl::StatusOr<std::optional<std::string_view>> record = reader_->Next();
    if (!record.ok()) {
      return absl::Status(record.status().code(),
                          absl::StrCat(site_.name(), ": ", record.status().message()));
    }
    if (record->has_value()) return ScalarString(site_.pool(), **record);
    reader_ = nullptr;
  }
}

absl::StatusOr<int64_t> RecordSource::Skip(int64_t count) {
  int64_t passed = 0;
  while (passed < count) {
    absl::StatusOr<bool> more = Advance();
    if (absl::IsCancelled(more.status())) return more.status();
    if (!more.ok()) {  // the place of a file that does not open
      ++passed;
      continue;
    }
    if (!*more) break;
    const absl::StatusOr<bool> skipped = reader_->Skip();
    if (absl::IsCancelled(skipped.status())) return skipped.status();
    if (!skipped.ok() || *skipped) {
      ++passed;
    } else {
      reader_ = nullptr;
    }
  }
  return passed;
}

// Splits begun, files of the last one that are not begun, and the place in the
// open file.
absl::Status RecordSource::Save(StateWriter& writer) {
  writer.WriteInt(cursor_.ordinal());
  writer.WriteInt(span_.end - span_.begin);
  writer.WriteBool(reader_ != nullptr);
  if (reader_ != nullptr) writer.WriteInt(reader_->position());
  return absl::OkStatus();
}

absl::Status RecordSource::Restore(StateReader& reader) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  ASSIGN_OR_RETURN(const int64_t ordinal, reader.ReadIntIn(0, kMax, "the number of splits"));
  ASSIGN_OR_RETURN(const int64_t left, reader.ReadIntIn(0, kMax, "the files left of a split"));
  ASSIGN_OR_RETURN(const bool open, reader.ReadBool());
  cursor_.Seek(ordinal);
  if (left == 0 && !open) return absl::OkStatus();

  const absl::Status outside = absl::DataLossError("a saved position lies outside its split");
  if (ordinal == 0) return outside;
  cursor_.Seek(ordinal - 1);
  ASSIGN_OR_RETURN(const std::optional<Span64> span, cursor_.Next());
  if (!span.has_value() || left > span->end - span->begin - (open ? 1 : 0)) return outside;
  span_ = {span->end - left, span->end};
  if (!open) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t position, reader.ReadIntIn(0, kMax, "a place in a file"));
  return Open(files_[span_.begin - 1], position);
}

}  // namespace penstock
