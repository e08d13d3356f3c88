// SPDX-License-Identifier: Apache-2.0
// Reading files, wherever they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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
  virtual int64_t size() const = 0;  // bytes, when it was opened
  // Reads into all of `into` from `offset`; fewer bytes only at the end of the
  // file. The error names the file.
  virtual absl::StatusOr<size_t> ReadAt(int64_t offset, absl::Span<char> into) = 0;
};

// A place where files are. Any thread.
class Files {
 public:
  virtual ~Files() = default;
  // NotFound, PermissionDenied …; InvalidArgument for a directory.
  virtual absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name) = 0;
  // Names of the files (not directories) that match a shell pattern (* ? []),
  // in the order of their bytes. None matching is no error.
  virtual absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern) = 0;
};

// This machine's file system.
Files& LocalFiles();

}  // namespace penstock
