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

// A file that is open for reading. Any thread may call any method; calls may overlap.
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
  // If the file can be mapped into memory, returns all its bytes, which are valid while this object
  // lives. Otherwise returns nullopt, and the caller must use ReadAt(). If the file is truncated
  // after the mapping, access to the missing part kills the program.
  virtual std::optional<absl::Span<const char>> Map() { return std::nullopt; }
};

// A file system, local or remote. Any thread may call any method.
class Files {
 public:
  virtual ~Files() = default;
  // Errors: NotFound, PermissionDenied …; InvalidArgument for a directory; Unavailable if a server
  // has not answered for FilesConfig::retry_for. Once `stop` is requested, waits end with
  // Cancelled, including waits in the file's reads.
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
// files of LocalFiles(). Names with http:// or https://, and s3://bucket/key, are remote files
// (docs/files.md).
Files& DefaultFiles();

}  // namespace penstock
