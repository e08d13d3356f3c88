// SPDX-License-Identifier: Apache-2.0
// A file read from start to end in large pieces, and decompressed if it is compressed.
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
#include "dataplane/dataset/sources/formats/inflater.h"
#include "penstock/sources.h"

namespace penstock {

// Positions and sizes are in decompressed bytes.
class BufferedFile {
 public:
  BufferedFile(std::unique_ptr<File> file, int64_t position,
               Compression compression = Compression::kNone);

  const std::string& name() const { return name_; }
  int64_t position() const { return position_; }
  // Bytes from the position to the end. nullopt while that is unknown, as in a compressed file that
  // has not been read to its end.
  std::optional<int64_t> left() const;

  // The next `bytes` bytes, or more; fewer only at the end of the file. Valid until the next call.
  // ResourceExhausted if `bytes` is more than an element may have. This error ends reading, because
  // the position of the next record is unknown.
  absl::StatusOr<std::string_view> Peek(size_t bytes);
  // Advances the position by `bytes`, which may be more than Peek() returned.
  void Advance(int64_t bytes) { position_ += bytes; }
  // Advances to the end of the file. A reader that starts at the resulting position finds no bytes.
  void AdvanceToEnd() { position_ = kBehindAll; }
  // Advances to the end of the file because of `why`. Returns `why` with a note that the rest of
  // the file is skipped. If `why` is Cancelled or IsExhausted(), returns it unchanged and keeps the
  // position.
  absl::Status GiveUp(const absl::Status& why);

 private:
  static constexpr int64_t kBehindAll = std::numeric_limits<int64_t>::max();

  // Does the work of Peek() when the buffer has too few bytes.
  absl::StatusOr<std::string_view> Fill(size_t bytes);
  // The number of buffered bytes from the position on.
  size_t Buffered() const;
  // Moves the `kept` buffered bytes from the position on to the start of the buffer, and makes its
  // capacity at least `capacity`.
  void Reserve(size_t capacity, size_t kept);

  std::string name_;
  std::unique_ptr<File> file_;          // if not compressed
  std::unique_ptr<Inflater> inflater_;  // if compressed
  std::optional<int64_t> size_;         // nullopt while unknown
  int64_t position_;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  int64_t buffered_from_ = 0;  // position in the file of the buffer's first byte
  size_t buffered_ = 0;        // bytes
};

}  // namespace penstock
