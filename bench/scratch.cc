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

absl::StatusOr<std::string> MakeFolderIn(const std::string& folder, size_t number) {
  const std::string made = absl::StrCat(folder, "/", number);
  std::error_code error;
  if (std::filesystem::create_directory(made, error)) return made;
  return absl::UnavailableError(absl::StrCat("cannot make ", made, ": ", error.message()));
}

}  // namespace penstock::bench
