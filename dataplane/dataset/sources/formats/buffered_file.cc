// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/formats/buffered_file.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "dataplane/memory/catch_exhausted.h"
#include "dataplane/memory/element_limit.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// Large enough that a system call costs little compared to the copy, small enough for the
// second-level cache.
constexpr size_t kBufferBytes = 256 << 10;

}  // namespace

BufferedFile::BufferedFile(std::unique_ptr<File> file, int64_t position, Compression compression)
    : name_(file->name()), position_(position) {
  if (compression == Compression::kNone) {
    size_ = file->size();
    file->WillReadInOrder(position);
    file_ = std::move(file);
  } else {
    inflater_ = std::make_unique<Inflater>(std::move(file), compression);
  }
}

std::optional<int64_t> BufferedFile::left() const {
  if (position_ == kBehindAll) return 0;
  if (!size_.has_value()) return std::nullopt;
  return std::max<int64_t>(*size_ - position_, 0);
}

absl::Status BufferedFile::GiveUp(const absl::Status& why) {
  if (absl::IsCancelled(why) || IsExhausted(why)) return why;
  AdvanceToEnd();
  return Annotate(why, "the rest of the file is skipped");
}

size_t BufferedFile::Buffered() const {
  const int64_t buffered_to = buffered_from_ + static_cast<int64_t>(buffered_);
  if (position_ < buffered_from_ || position_ >= buffered_to) return 0;
  return buffered_to - position_;
}

absl::StatusOr<std::string_view> BufferedFile::Peek(size_t bytes) {
  const size_t have = Buffered();
  const std::optional<int64_t> rest = left();
  const size_t wanted = rest.has_value() ? std::min<size_t>(bytes, *rest) : bytes;
  if (have < wanted) return Fill(wanted);
  if (have == 0) return std::string_view();
  return std::string_view(buffer_.get() + (position_ - buffered_from_), have);
}

void BufferedFile::Reserve(size_t capacity, size_t kept) {
  const char* from = kept == 0 ? nullptr : buffer_.get() + (position_ - buffered_from_);
  if (capacity > capacity_) {
    auto larger = std::make_unique_for_overwrite<char[]>(capacity);
    if (kept > 0) std::memcpy(larger.get(), from, kept);
    buffer_ = std::move(larger);
    capacity_ = capacity;
  } else if (kept > 0 && from != buffer_.get()) {
    std::memmove(buffer_.get(), from, kept);
  }
  buffered_from_ = position_;
  buffered_ = kept;
}

absl::StatusOr<std::string_view> BufferedFile::Fill(size_t bytes) {
  if (bytes > std::max<size_t>(MostElementBytes(), kBufferBytes)) {
    return OfReading(AboveElementLimit(absl::StrCat(name(), ": the data at offset ", position_,
                                                    ", of ", bytes, " bytes or more,")));
  }
  size_t have = Buffered();
  if (file_ != nullptr) {
    Reserve(bytes <= capacity_ ? capacity_ : std::max(bytes, kBufferBytes), have);
    const size_t room = std::min<int64_t>(capacity_, *left()) - have;
    ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(position_ + static_cast<int64_t>(have),
                                                     {buffer_.get() + have, room}));
    buffered_ += got;
    if (buffered_ >= bytes) return std::string_view(buffer_.get(), buffered_);
    return absl::DataLossError(absl::StrCat(
        name(), " became shorter while it was read: it ends at ", position_ + buffered_));
  }
  // The available size is unknown until the bytes are read. `bytes` may be a damaged number, so the
  // buffer grows only with the bytes that arrive.
  for (;;) {
    const size_t enough = std::min(bytes, std::max(2 * have, kBufferBytes));
    Reserve(std::max(enough, capacity_), have);
    ASSIGN_OR_RETURN(const size_t got, inflater_->ReadAt(position_ + static_cast<int64_t>(have),
                                                         {buffer_.get() + have, capacity_ - have}));
    have += got;
    buffered_ = have;
    if (got == 0) size_ = position_ + static_cast<int64_t>(have);
    if (got == 0 || have >= bytes) return std::string_view(buffer_.get(), have);
  }
}

}  // namespace penstock
