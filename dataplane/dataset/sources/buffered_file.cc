// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/buffered_file.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "penstock/status.h"

namespace penstock {
namespace {

// Large enough that a system call costs little beside the copy, small enough
// for the second-level cache.
constexpr size_t kBufferBytes = 256 << 10;

}  // namespace

absl::StatusOr<std::string_view> BufferedFile::Peek(size_t bytes) {
  const int64_t buffered_to = buffered_from_ + static_cast<int64_t>(buffered_);
  size_t have = 0;  // buffered bytes from position_ on
  if (position_ >= buffered_from_ && position_ < buffered_to) have = buffered_to - position_;
  const size_t wanted = std::min<size_t>(bytes, std::max<int64_t>(left(), 0));
  char* from = have == 0 ? buffer_.get() : buffer_.get() + (position_ - buffered_from_);
  if (have >= wanted) return std::string_view(from, have);

  if (wanted > capacity_) {
    const size_t capacity = std::max(wanted, kBufferBytes);
    auto larger = std::make_unique_for_overwrite<char[]>(capacity);
    if (have > 0) std::memcpy(larger.get(), from, have);
    buffer_ = std::move(larger);
    capacity_ = capacity;
  } else if (have > 0) {
    std::memmove(buffer_.get(), from, have);
  }
  buffered_from_ = position_;
  buffered_ = have;
  const size_t room = std::min<int64_t>(capacity_, left()) - have;
  ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(position_ + static_cast<int64_t>(have),
                                                   {buffer_.get() + have, room}));
  buffered_ += got;
  if (buffered_ < wanted) {
    return absl::DataLossError(absl::StrCat(
        name(), " became shorter while it was read: it ends at ", position_ + buffered_));
  }
  return std::string_view(buffer_.get(), buffered_);
}

}  // namespace penstock
