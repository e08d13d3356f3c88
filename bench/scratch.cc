// SPDX-License-Identifier: Apache-2.0
#include "bench/scratch.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace penstock::bench {

absl::StatusOr<Scratch> Scratch::Make() {
  std::error_code error;
  std::string name = (std::filesystem::temp_directory_path(error) / "penstock-bench-XXXXXX");
  if (error || ::mkdtemp(name.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make the folder ", name));
  }
  return Scratch(std::move(name));
}

Scratch::~Scratch() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

}  // namespace penstock::bench
