// SPDX-License-Identifier: Apache-2.0
// Reads files, local and remote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock {

// A file open for reading. Any thread; several at once.
class File {
 public:
  virtual ~File() = default;
  virtual const std::string& name() const = 0;
  virtual int64_t size() const = 0;  // bytes, at the time of opening
  // Fills all of `into` from `offset`; reads fewer bytes only at the end of the file. The error
  // names the file.
  virtual absl::StatusOr<size_t> ReadAt(int64_t offset, absl::Span<char> into) = 0;
  // Announces reads by ReadAt() from `offset` towards the end, perhaps with gaps. A remote file
  // then fetches ahead. Other reads remain correct.
  virtual void WillReadInOrder(int64_t offset) = 0;
  // Returns all bytes, valid while this object lives, if the file can be mapped into memory;
  // otherwise nullopt, and the caller uses ReadAt(). Touching a part that was truncated after the
  // mapping kills the program.
  virtual std::optional<absl::Span<const char>> Map() { return std::nullopt; }
};

// A file system, local or remote. Any thread.
class Files {
 public:
  virtual ~Files() = default;
  // NotFound, PermissionDenied …; InvalidArgument for a directory; Unavailable if a server has not
  // answered for FilesConfig::retry_for. A requested `stop` ends waits, also those of the file's
  // reads, with Cancelled.
  virtual absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name,
                                                     std::stop_token stop) = 0;
  // Returns the names of the files (not directories) that match a shell pattern (* ? []), sorted by
  // their bytes. No match is not an error.
  virtual absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern,
                                                        std::stop_token stop) = 0;

  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name) { return Open(name, {}); }
  absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern) {
    return Glob(pattern, {});
  }
};

// This machine's file system.
Files& LocalFiles();

// Opens files according to the scheme of their name. Names without a scheme, or with file://, are
// those of LocalFiles(); http://, https:// and s3://bucket/key are remote (docs/files.md).
Files& DefaultFiles();

}  // namespace penstock
