// SPDX-License-Identifier: Apache-2.0
// A file read from front to back in large pieces; a compressed one decompressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "control/env/files.h"
#include "dataplane/dataset/sources/inflater.h"
#include "penstock/sources.h"

namespace penstock {

// Positions and counts are of bytes as they are read: decompressed ones.
class BufferedFile {
 public:
  BufferedFile(std::unique_ptr<File> file, int64_t position,
               Compression compression = Compression::kNone);

  const std::string& name() const { return name_; }
  int64_t position() const { return position_; }
  // Bytes from the position to the end; nullopt while that is not known, as in
  // a compressed file before its end was seen.
  std::optional<int64_t> left() const;

  // The next `bytes` bytes, or more; fewer only at the end of the file. Valid
  // until the next call. ResourceExhausted, which ends reading, where they are more than an
  // element may take: what follows them is not known.
  absl::StatusOr<std::string_view> Peek(size_t bytes);
  // Moves on by `bytes`, which may lie behind what was seen.
  void Advance(int64_t bytes) { position_ += bytes; }
  // Nothing is left, and nothing will be for who begins at this position.
  void AdvanceToEnd() { position_ = kBehindAll; }
  // The same because of `why`, which it returns and to which it adds that.
  // Reading that was stopped (Cancelled, IsExhausted()) stays where it is.
  absl::Status GiveUp(const absl::Status& why);

 private:
  static constexpr int64_t kBehindAll = std::numeric_limits<int64_t>::max();

  // What Peek() has to do where the buffer does not hold enough.
  absl::StatusOr<std::string_view> Fill(size_t bytes);
  // How many bytes from the position on are buffered.
  size_t Buffered() const;
  // Puts the `kept` buffered bytes from the position on to the buffer's front,
  // which then holds `capacity` or more.
  void Reserve(size_t capacity, size_t kept);

  std::string name_;
  std::unique_ptr<File> file_;          // read as it is, or
  std::unique_ptr<Inflater> inflater_;  // decompressed
  std::optional<int64_t> size_;         // as far as it is known
  int64_t position_;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  int64_t buffered_from_ = 0;  // where in the file the buffer begins
  size_t buffered_ = 0;        // bytes
};

}  // namespace penstock
