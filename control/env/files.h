// SPDX-License-Identifier: Apache-2.0
// Reading files, wherever they are.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock {

// Set from any thread, and never again unset: what waits ends soon with
// Cancelled. nullptr: nobody cancels.
using CancelFlag = const std::atomic<bool>*;

// A file open for reading. Any thread; several at once.
class File {
 public:
  virtual ~File() = default;
  virtual const std::string& name() const = 0;
  virtual int64_t size() const = 0;  // bytes, when it was opened
  // Reads into all of `into` from `offset`; fewer bytes only at the end of the
  // file. The error names the file.
  virtual absl::StatusOr<size_t> ReadAt(int64_t offset, absl::Span<char> into) = 0;
  // What is to come: ReadAt() from `offset` towards the end, perhaps passing
  // over some. A remote file fetches ahead from now on. Other reads stay right.
  virtual void WillReadInOrder(int64_t offset) = 0;
  // All bytes, for as long as this lives, where the file can be mapped into
  // memory; else nullopt: ReadAt() is the way. Touching what was cut off from a
  // mapped file ends the program.
  virtual std::optional<absl::Span<const char>> Map() { return std::nullopt; }
};

// A place where files are. Any thread.
class Files {
 public:
  virtual ~Files() = default;
  // NotFound, PermissionDenied …; InvalidArgument for a directory. Unavailable
  // after a server did not answer for long. `cancelled` outlives the file, and
  // ends its reads too.
  virtual absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name,
                                                     CancelFlag cancelled) = 0;
  // Names of the files (not directories) that match a shell pattern (* ? []),
  // in the order of their bytes. None matching is no error.
  virtual absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern,
                                                        CancelFlag cancelled) = 0;

  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name) {
    return Open(name, nullptr);
  }
  absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern) {
    return Glob(pattern, nullptr);
  }
};

// This machine's file system.
Files& LocalFiles();

// All there are, by the scheme of a name: none and file:// are LocalFiles(),
// http://, https:// and s3://bucket/key are remote (docs/files.md).
Files& DefaultFiles();

}  // namespace penstock
