// SPDX-License-Identifier: Apache-2.0
// Files one after the other as one row of numbered elements.
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

// Whose element number n is. A value.
class NumberedFiles {
 public:
  // ResourceExhausted if there are more than int64 can say.
  static absl::StatusOr<NumberedFiles> Of(std::vector<NumberedFile> files);

  int64_t count() const { return begins_.back(); }  // elements
  int64_t file_count() const { return static_cast<int64_t>(files_.size()); }
  const std::string& name(int64_t file) const { return files_[file].name; }
  // Where the elements of `file` begin; of file_count(): count().
  int64_t begin(int64_t file) const { return begins_[file]; }

  struct Place {
    int64_t file;
    int64_t n;  // of the element in it
  };
  // REQUIRES: 0 ≤ n < count().
  Place Find(int64_t n) const;

 private:
  NumberedFiles() = default;

  std::vector<NumberedFile> files_;
  std::vector<int64_t> begins_;  // one more than files
};

}  // namespace penstock
