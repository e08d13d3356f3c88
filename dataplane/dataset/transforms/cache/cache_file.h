// SPDX-License-Identifier: Apache-2.0
// The file of a disk cache. It consists of TFRecords, so that each part has a length and a
// checksum:
//
//   head      magic, version, fingerprint of the cached dataset, key
//   elements  their blocks (docs/element.md), in order
//   splits    the splits that the elements were made from: answers of the split feed
//   tail      magic, number of elements, offset of the record of splits; of
//             fixed size, so it is found from the end of the file
//
// The file is written under a temporary name, synced to the disk and renamed. A file under the
// cache's name is therefore complete.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "control/env/disk.h"
#include "control/env/files.h"
#include "dataplane/dataset/sources/formats/tfrecord_writer.h"

namespace penstock {

// One answer of a split feed.
struct AnsweredSplit {
  int provider = 0;
  int64_t repetition = 0;
  int64_t ordinal = 0;
  int64_t split = -1;  // -1: no more splits
};

struct CacheFileHead {
  uint64_t fingerprint = 0;
  uint64_t key = 0;
};

// An existing cache whose elements have not been examined yet.
struct CacheFile {
  std::shared_ptr<File> file;
  CacheFileHead head;
  std::vector<AnsweredSplit> splits;
  int64_t elements = 0;
  int64_t elements_begin = 0;  // an offset in the file, as is elements_end
  int64_t elements_end = 0;
};

// NotFound if the file does not exist. FailedPrecondition if it is damaged or not a cache; the
// message names the file and the remedy.
absl::StatusOr<CacheFile> OpenCacheFile(const std::string& name, Files& files = LocalFiles());
absl::Status DamagedCache(const std::string& name, const absl::Status& why);

// Returns a File for one reader, which shares the open file with other readers.
std::unique_ptr<File> Shared(std::shared_ptr<File> file);

// Writes a cache. A cache that is not committed is removed. If the process is killed, the next
// writer of the same cache removes the file.
class CacheFileWriter {
 public:
  // NotFound, PermissionDenied, … if the file cannot be written.
  static absl::StatusOr<std::unique_ptr<CacheFileWriter>> Create(const std::string& name,
                                                                 const CacheFileHead& head,
                                                                 Disk& disk = LocalDisk());
  ~CacheFileWriter();

  absl::Status Append(std::string_view element);
  // When this returns OK, the file exists and has replaced any older file. REQUIRES: this is the
  // last call.
  absl::Status Commit(const std::vector<AnsweredSplit>& splits);

 private:
  CacheFileWriter(std::string name, std::unique_ptr<DiskFile> file, Disk& disk)
      : disk_(disk), name_(std::move(name)), records_(std::move(file)) {}

  Disk& disk_;
  const std::string name_;
  TFRecordWriter records_;  // to a file of another name until it is complete
  bool committed_ = false;
  int64_t elements_ = 0;
};

}  // namespace penstock
