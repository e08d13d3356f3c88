// SPDX-License-Identifier: Apache-2.0
// The contents of a compressed file, decompressed with zlib. Positions count decompressed bytes.
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

// Used on one thread.
class Inflater {
 public:
  // REQUIRES: `compression` is not kNone.
  Inflater(std::unique_ptr<File> file, Compression compression);
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater();

  const File& file() const { return *file_; }

  // Copies the bytes at `position` into `into`: at least one byte, and as many as are available at
  // once. Returns the number of bytes; 0 at the end. A forward skip decompresses the bytes in
  // between. A step back decompresses again from the beginning of the file.
  //
  // DataLoss if the bytes are not in this format or the stream is cut off. The error is returned
  // where the damage is found, so all bytes before the damage can be read. Later calls return the
  // error too.
  absl::StatusOr<size_t> ReadAt(int64_t position, absl::Span<char> into);

 private:
  enum class State { kInMember, kBetweenMembers, kAtEnd };

  absl::Status Rewind();
  // Reads the next bytes, like ReadAt().
  absl::StatusOr<size_t> Read(absl::Span<char> into);
  // Reads more of the file if no input is left to decompress.
  absl::Status Refill();
  // Called at the start and after each member: returns whether another member follows. Zeros may
  // follow the last member.
  absl::StatusOr<bool> NextMember();
  // Makes the DataLoss status. The first `given` bytes of the current Read() are good.
  absl::Status Damaged(size_t given, std::string_view why) const;

  std::unique_ptr<File> file_;
  Compression compression_;
  z_stream stream_ = {};
  bool begun_ = false;  // stream_ is initialised
  State state_ = State::kBetweenMembers;
  std::unique_ptr<char[]> input_;
  int64_t read_ = 0;      // bytes of the file read into input_ so far
  int64_t position_ = 0;  // decompressed bytes that Read() returned
  absl::Status failure_;
};

}  // namespace penstock
