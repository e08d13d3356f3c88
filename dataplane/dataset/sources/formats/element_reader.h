// SPDX-License-Identifier: Apache-2.0
// The elements of one file, from start to end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "control/env/files.h"
#include "penstock/element.h"

namespace penstock {

class ElementReader {
 public:
  virtual ~ElementReader() = default;

  // Returns the next element; nullopt at the end. An error takes the place of one element. Reading
  // continues after it where possible; otherwise the file ends there.
  virtual absl::StatusOr<std::optional<Element>> Next() = 0;
  // Skips the next element and examines as little of it as possible. Returns false at the end.
  virtual absl::StatusOr<bool> Skip() = 0;
  // Returns the position in the file of the next element.
  virtual int64_t position() const = 0;
};

// Opens a file at `position`, which is 0 or a value that a reader's position() returned.
using MakeElementReader = std::function<absl::StatusOr<std::unique_ptr<ElementReader>>(
    std::unique_ptr<File> file, int64_t position)>;

}  // namespace penstock
