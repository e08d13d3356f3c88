// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/formats/file_bytes.h"

#include "absl/strings/str_cat.h"
#include "dataplane/element/copy_bytes.h"
#include "include/status_macros.h"

namespace penstock {

std::optional<absl::Span<const std::byte>> FileBytes::Find(int64_t offset, int64_t bytes) const {
  if (!mapped_.has_value() || offset > size() || bytes > size() - offset) return std::nullopt;
  return absl::Span<const std::byte>(reinterpret_cast<const std::byte*>(mapped_->data()) + offset,
                                     bytes);
}

absl::Status FileBytes::Read(int64_t offset, absl::Span<std::byte> into) const {
  if (offset <= size() && static_cast<int64_t>(into.size()) <= size() - offset) {
    if (mapped_.has_value()) {
      CopyBytes(into.data(), mapped_->data() + offset, into.size());
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const size_t got,
                     file_->ReadAt(offset, {reinterpret_cast<char*>(into.data()), into.size()}));
    if (got == into.size()) return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(name(), " ends before byte ",
                                          offset + static_cast<int64_t>(into.size()),
                                          ": it became shorter while it was read"));
}

absl::Status FileBytes::ReadOn(int64_t offset, absl::Span<std::byte> into) {
  const bool onward = last_offset_.has_value() && offset >= *last_offset_;
  if (!onward && !mapped_.has_value()) file_->WillReadInOrder(offset);
  last_offset_ = offset;
  return Read(offset, into);
}

}  // namespace penstock
