// SPDX-License-Identifier: Apache-2.0
// A sequence of files whose elements are numbered consecutively.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock {

struct NumberedFile {
  std::string name;
  int64_t count = 0;  // elements
};

// Maps the number of an element to its file. A value type.
class NumberedFiles {
 public:
  // ResourceExhausted if the number of elements does not fit in int64.
  static absl::StatusOr<NumberedFiles> Of(std::vector<NumberedFile> files);

  int64_t count() const { return begins_.back(); }  // elements
  int64_t file_count() const { return static_cast<int64_t>(files_.size()); }
  const std::string& name(int64_t file) const { return files_[file].name; }
  // The number of the first element of `file`, or count() if `file` is file_count().
  int64_t begin(int64_t file) const { return begins_[file]; }

  struct Place {
    int64_t file;
    int64_t n;  // index of the element in the file
  };
  // REQUIRES: 0 ≤ n < count().
  Place Find(int64_t n) const;

 private:
  NumberedFiles() = default;

  std::vector<NumberedFile> files_;
  std::vector<int64_t> begins_;  // one more entry than there are files
};

}  // namespace penstock
