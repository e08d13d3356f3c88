// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/file_source.h"

#include <limits>
#include <utility>

#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/sources/file_nodes.h"
#include "include/status_macros.h"

namespace penstock {

absl::Status FileSource::Open(const std::string& name, int64_t position) {
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, site_.OpenFile(name));
  absl::StatusOr<std::unique_ptr<ElementReader>> reader = make_reader_(std::move(file), position);
  if (!reader.ok()) return AtNode(site_, reader.status());
  reader_ = *std::move(reader);
  return absl::OkStatus();
}

absl::StatusOr<bool> FileSource::Advance() {
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

absl::StatusOr<std::optional<Element>> FileSource::Next() {
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, Advance());
    if (!more) return std::nullopt;
    absl::StatusOr<std::optional<Element>> element = reader_->Next();
    if (!element.ok()) return AtNode(site_, element.status());
    if (element->has_value()) return element;
    reader_ = nullptr;
  }
}

absl::StatusOr<int64_t> FileSource::Skip(int64_t count) {
  int64_t passed = 0;
  while (passed < count) {
    absl::StatusOr<bool> more = Advance();
    if (absl::IsCancelled(more.status())) return more.status();
    if (!more.ok()) {  // a file that cannot be opened counts as one element
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

// Saves the number of splits begun, the number of files in the last split that have not been
// opened, and the position in the open file.
absl::Status FileSource::Save(StateWriter& writer) {
  writer.WriteInt(cursor_.ordinal());
  writer.WriteInt(span_.end - span_.begin);
  writer.WriteBool(reader_ != nullptr);
  if (reader_ != nullptr) writer.WriteInt(reader_->position());
  cursor_.NoteNeeded(writer, span_.begin < span_.end || reader_ != nullptr);
  return absl::OkStatus();
}

absl::Status FileSource::Restore(StateReader& reader) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  ASSIGN_OR_RETURN(const int64_t ordinal, reader.ReadIntIn(0, kMax, "the number of splits"));
  ASSIGN_OR_RETURN(const int64_t left, reader.ReadIntIn(0, kMax, "the files left in a split"));
  ASSIGN_OR_RETURN(const bool open, reader.ReadBool());
  cursor_.Seek(ordinal);
  if (left == 0 && !open) return absl::OkStatus();

  const absl::Status outside = absl::DataLossError("a saved position is outside its split");
  if (ordinal == 0) return outside;
  cursor_.Seek(ordinal - 1);
  ASSIGN_OR_RETURN(const std::optional<Span64> span, cursor_.Next());
  if (!span.has_value() || left > span->end - span->begin - (open ? 1 : 0)) return outside;
  span_ = {span->end - left, span->end};
  if (!open) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t position, reader.ReadIntIn(0, kMax, "an offset in a file"));
  return Open(files_[span_.begin - 1], position);
}

}  // namespace penstock
