// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/numbered_files.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "penstock/status.h"

namespace penstock {

absl::StatusOr<NumberedFiles> NumberedFiles::Of(std::vector<NumberedFile> files) {
  NumberedFiles numbered;
  numbered.begins_.push_back(0);
  for (const NumberedFile& file : files) {
    if (file.count > std::numeric_limits<int64_t>::max() - numbered.count()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the files up to ", file.name, " have more elements than can be numbered"));
    }
    numbered.begins_.push_back(numbered.count() + file.count);
  }
  numbered.files_ = std::move(files);
  return numbered;
}

NumberedFiles::Place NumberedFiles::Find(int64_t n) const {
  const int64_t file = std::upper_bound(begins_.begin(), begins_.end(), n) - begins_.begin() - 1;
  return {.file = file, .n = n - begins_[file]};
}

}  // namespace penstock
