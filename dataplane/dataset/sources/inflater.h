// SPDX-License-Identifier: Apache-2.0
// What a compressed file holds, by zlib. Positions count decompressed bytes.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/env/files.h"
#include "penstock/sources.h"

namespace penstock {

// One thread.
class Inflater {
 public:
  // REQUIRES: `compression` is not kNone.
  Inflater(std::unique_ptr<File> file, Compression compression);
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater();

  const File& file() const { return *file_; }

  // The bytes at `position`: at least one, as many as come at once; 0 at the
  // end. Passing over bytes decompresses them; going back begins at the front.
  // DataLoss for bytes that are not so compressed and for a stream that is cut
  // off, where it is found: every byte before can be read. Then it is the
  // answer for good.
  absl::StatusOr<size_t> ReadAt(int64_t position, absl::Span<char> into);

 private:
  enum class State { kInMember, kBetweenMembers, kAtEnd };

  absl::Status Rewind();
  // The next bytes; as ReadAt.
  absl::StatusOr<size_t> Read(absl::Span<char> into);
  // Reads on in the file if nothing of it is left to decompress.
  absl::Status Refill();
  // Behind a member: whether another follows. Zeros may follow the last.
  absl::StatusOr<bool> NextMember();
  // `given` bytes of the current Read() are good.
  absl::Status Damaged(size_t given, std::string_view why) const;

  std::unique_ptr<File> file_;
  Compression compression_;
  z_stream stream_ = {};
  bool begun_ = false;  // stream_ is initialised
  State state_ = State::kBetweenMembers;
  std::unique_ptr<char[]> input_;
  int64_t read_ = 0;      // bytes of the file that went into input_
  int64_t position_ = 0;  // decompressed bytes that Read() gave
  absl::Status failure_;
};

}  // namespace penstock
