// SPDX-License-Identifier: Apache-2.0
// A folder for the files of a case.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace penstock::bench {

// A folder that is removed with its contents on destruction.
class Scratch {
 public:
  static absl::StatusOr<Scratch> Make();
  Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch();
  const std::string& path() const { return path_; }

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Makes the folder `number` in `folder`. Returns its path.
absl::StatusOr<std::string> MakeFolderIn(const std::string& folder, size_t number);

}  // namespace penstock::bench
