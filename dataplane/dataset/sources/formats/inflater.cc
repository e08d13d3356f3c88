// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/formats/inflater.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr size_t kInputBytes = 64 << 10;
constexpr size_t kPassedOverBytes = 64 << 10;  // skipped per step

// The window bits for inflateInit2: 15 is the largest window, and 16 more selects gzip.
int WindowBits(Compression compression) {
  return compression == Compression::kGzip ? 15 + 16 : 15;
}

const char* FormatName(Compression compression) {
  return compression == Compression::kGzip ? "gzip" : "zlib";
}

}  // namespace

Inflater::Inflater(std::unique_ptr<File> file, Compression compression)
    : file_(std::move(file)), compression_(compression) {
  file_->WillReadInOrder(0);
}

Inflater::~Inflater() {
  if (begun_) inflateEnd(&stream_);
}

absl::StatusOr<size_t> Inflater::ReadAt(int64_t position, absl::Span<char> into) {
  if (position < position_) RETURN_IF_ERROR(Rewind());
  std::unique_ptr<char[]> passed_over;
  while (position_ < position) {
    if (passed_over == nullptr)
      passed_over = std::make_unique_for_overwrite<char[]>(kPassedOverBytes);
    const size_t wanted = std::min<int64_t>(kPassedOverBytes, position - position_);
    ASSIGN_OR_RETURN(const size_t got, Read({passed_over.get(), wanted}));
    if (got == 0) return 0;
  }
  return Read(into);
}

absl::Status Inflater::Rewind() {
  if (begun_ && inflateReset(&stream_) != Z_OK) return absl::InternalError("zlib cannot be reset");
  stream_.avail_in = 0;
  state_ = State::kBetweenMembers;
  file_->WillReadInOrder(0);
  read_ = 0;
  position_ = 0;
  failure_ = absl::OkStatus();
  return absl::OkStatus();
}

absl::StatusOr<size_t> Inflater::Read(absl::Span<char> into) {
  RETURN_IF_ERROR(failure_);
  const size_t room = std::min<size_t>(into.size(), std::numeric_limits<uInt>::max());
  stream_.next_out = reinterpret_cast<Bytef*>(into.data());
  stream_.avail_out = static_cast<uInt>(room);
  while (stream_.avail_out == room && state_ != State::kAtEnd && failure_.ok()) {
    if (state_ == State::kBetweenMembers) {
      absl::StatusOr<bool> more = NextMember();
      failure_ = more.status();
      if (more.ok()) state_ = *more ? State::kInMember : State::kAtEnd;
      continue;
    }
    failure_ = Refill();
    if (!failure_.ok()) break;
    const bool file_ended = stream_.avail_in == 0;
    const int outcome = inflate(&stream_, Z_NO_FLUSH);
    if (outcome == Z_STREAM_END) {
      state_ = State::kBetweenMembers;
    } else if (outcome == Z_BUF_ERROR && file_ended) {
      failure_ = Damaged(room - stream_.avail_out, absl::StrCat("the file ends at ", read_));
    } else if (outcome != Z_OK && outcome != Z_BUF_ERROR) {
      failure_ = Damaged(room - stream_.avail_out,
                         stream_.msg == nullptr ? "it cannot be read" : stream_.msg);
    }
  }
  const size_t got = room - stream_.avail_out;
  position_ += static_cast<int64_t>(got);
  if (got == 0) RETURN_IF_ERROR(failure_);
  return got;
}

absl::Status Inflater::Refill() {
  if (stream_.avail_in > 0) return absl::OkStatus();
  if (input_ == nullptr) input_ = std::make_unique_for_overwrite<char[]>(kInputBytes);
  ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(read_, {input_.get(), kInputBytes}));
  read_ += static_cast<int64_t>(got);
  stream_.next_in = reinterpret_cast<Bytef*>(input_.get());
  stream_.avail_in = static_cast<uInt>(got);
  return absl::OkStatus();
}

absl::StatusOr<bool> Inflater::NextMember() {
  RETURN_IF_ERROR(Refill());
  if (stream_.avail_in == 0) return false;
  if (!begun_) {
    if (inflateInit2(&stream_, WindowBits(compression_)) != Z_OK)
      return absl::ResourceExhaustedError(absl::StrCat("no memory to decompress ", file_->name()));
    begun_ = true;
    return true;
  }
  const bool at_front = read_ == static_cast<int64_t>(stream_.avail_in);
  while (!at_front && *stream_.next_in == 0) {  // tapes and certain programs pad blocks with zeros
    ++stream_.next_in;
    if (--stream_.avail_in > 0) continue;
    RETURN_IF_ERROR(Refill());
    if (stream_.avail_in == 0) return false;
  }
  if (inflateReset(&stream_) != Z_OK) return absl::InternalError("zlib cannot be reset");
  return true;
}

absl::Status Inflater::Damaged(size_t given, std::string_view why) const {
  return absl::DataLossError(absl::StrCat(
      file_->name(), ": the ", FormatName(compression_), " stream is damaged or cut off after ",
      position_ + static_cast<int64_t>(given), " bytes of its contents: ", std::string(why)));
}

}  // namespace penstock
