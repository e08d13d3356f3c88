// SPDX-License-Identifier: Apache-2.0
// The file of a disk cache: TFRecords, so that each has its length and its
// checksum, of
//
//   head      magic, version, fingerprint of the cached dataset, key
//   elements  their blocks (docs/element.md), in order
//   splits    what the elements were made of: answers of the split feed
//   tail      magic, number of elements, offset of the record of splits; of
//             fixed size, so that it is found from the file's end
//
// It is written under a name of its own, forced to the disk and renamed: a file
// under the cache's name is whole.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "control/env/files.h"

namespace penstock {

// One answer of a split feed.
struct AnsweredSplit {
  int provider = 0;
  int64_t repetition = 0;
  int64_t ordinal = 0;
  int64_t split = -1;  // -1: there are no more
};

struct CacheFileHead {
  uint64_t fingerprint = 0;
  uint64_t key = 0;
};

// A cache that is there, its elements not yet examined.
struct CacheFile {
  std::shared_ptr<File> file;
  CacheFileHead head;
  std::vector<AnsweredSplit> splits;
  int64_t elements = 0;
  int64_t elements_begin = 0;  // offsets in the file
  int64_t elements_end = 0;
};

// NotFound if there is no such file. FailedPrecondition for one that is damaged
// or no cache, naming it and what to do.
absl::StatusOr<CacheFile> OpenCacheFile(const std::string& name, Files& files = LocalFiles());
absl::Status DamagedCache(const std::string& name, const absl::Status& why);

// The same file, for a reader that wants one of its own.
std::unique_ptr<File> Shared(std::shared_ptr<File> file);

// Writes a cache. Whoever does not commit leaves nothing behind; what a killed
// process left is removed by the next one that writes this cache.
class CacheFileWriter {
 public:
  // NotFound, PermissionDenied … for a name that cannot be written.
  static absl::StatusOr<std::unique_ptr<CacheFileWriter>> Create(const std::string& name,
                                                                 const CacheFileHead& head);
  ~CacheFileWriter();

  absl::Status Append(std::string_view element);
  // The file is there, in place of another, when it returns OK. No call after it.
  absl::Status Commit(const std::vector<AnsweredSplit>& splits);

 private:
  CacheFileWriter(std::string name, std::string partial, std::FILE* file)
      : name_(std::move(name)), partial_(std::move(partial)), file_(file) {}
  absl::Status Write(std::string_view record);
  absl::Status Failed(std::string_view what) const;

  const std::string name_;
  const std::string partial_;  // the name until it is whole
  std::FILE* file_;            // nullptr: closed
  bool committed_ = false;
  int64_t offset_ = 0;
  int64_t elements_ = 0;
};

}  // namespace penstock
